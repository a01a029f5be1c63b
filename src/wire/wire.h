/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - what the agent (inside the target) and the collector (outside) share.
 *
 * One memory file ("the session") is made by the collector. Its name, /proc/PID/fd/N, reaches
 * every process of the target in the environment variable WIRE_ENV. An agent opens it, maps the
 * session page and one process slot, and closes it: no descriptor stays open in the target.
 *
 *   session page | slot 0 | slot 1 | ...
 *   slot: struct wire_proc | template area | buffer 0 | guard | buffer 1 | guard | ...
 *
 * Life of a slot: FREE -> (agent, compare-and-swap) LIVE -> (agent at exit, or collector on
 * seeing that the process is gone) DEAD -> (collector, when all is drained) FREE.
 *
 * Life of a buffer: FREE -> (agent) OWNED -> (agent, after filling its descriptor) READY ->
 * (collector, after reading) FREE. Every READY buffer has one descriptor in wire_proc.desc[],
 * same index as the buffer; `seq` orders them within the process.
 *
 * A buffer holds records. A record is one executed block: a header word, id | nwords << 20
 * (id: 20 bits, an index into the template table; nwords counts the header), then nwords - 1
 * words which the block's template explains. See struct wire_ref.
 */
#ifndef CACHEGRAM_WIRE_H
#define CACHEGRAM_WIRE_H

#include <stdint.h>

#define WIRE_ENV "CACHEGRAM_SESSION"
#define WIRE_MAGIC 0x6d61726765686361ull /* "achegram" */
#define WIRE_VERSION 12u
#define WIRE_PAGE 4096u
#define WIRE_PAGES_TRIED 128u     /* of wire_session.page_ns */
#define WIRE_SESSION_BYTES 65536u /* the session page, rounded up */
#define WIRE_MAX_BUFFERS 64u
#define WIRE_MAX_SLOTS 64u
#define WIRE_MAX_BLOCKS (1u << 18) /* ids 1 .. WIRE_MAX_BLOCKS-1; 0 is never used */
#define WIRE_OWN_SPANS 4160u       /* memory of the agent's: one for each thread, and some for all */
#define WIRE_ID_BITS 20
#define WIRE_ID_MASK ((1u << WIRE_ID_BITS) - 1)

/* How references are counted between bursts. */
enum wire_clock {
    WIRE_CLOCK_CPUTIME = 0, /* not at all */
    WIRE_CLOCK_COUNT,       /* for a stretch before each burst */
    WIRE_CLOCK_COUNT_ALWAYS /* whenever no burst is recorded */
};

/* Events by which the collector interrupts threads. */
enum wire_events { WIRE_EVENTS_NONE = 0, WIRE_EVENTS_OF_TIME, WIRE_EVENTS_OF_COUNTERS };

enum wire_mode { WIRE_MODE_BURST = 0, WIRE_MODE_FULL = 1, WIRE_MODE_IDLE = 2 };

/* Why a buffer was handed over. All but WIRE_END_MORE end the burst. */
enum wire_end {
    WIRE_END_MORE = 0,    /* full mode: the burst goes on in the next buffer */
    WIRE_END_FULL,        /* burst mode: the buffer is full, the ordinary end */
    WIRE_END_SYSCALL,     /* a system call that bursts do not span (end_detail: its number) */
    WIRE_END_INSTRUCTION, /* an instruction that is not translated (end_detail: Zydis mnemonic) */
    WIRE_END_CODE,        /* code that may change: not backed by a file, or writable */
    WIRE_END_FAULT,       /* a fault of the target's own (end_detail: signal) */
    WIRE_END_SIGNAL,      /* a signal for the target arrived (end_detail: signal) */
    WIRE_END_EXIT,        /* thread or process ended */
    WIRE_END_SPACE,       /* no room for more translations */
    WIRE_END_COUNT
};

enum { WIRE_BUF_FREE = 0, WIRE_BUF_OWNED = 1, WIRE_BUF_READY = 2 };
enum { WIRE_PROC_FREE = 0, WIRE_PROC_LIVE = 1, WIRE_PROC_DEAD = 2 };

/* Kinds of reference in a template. */
enum wire_ref_kind {
    WIRE_REF_PLAIN = 0, /* address = disp + (slot ? word[slot] : 0) + (fs ? fs_base : 0) */
    WIRE_REF_REP,       /* string instruction with a repeat prefix, all elements; see below */
    WIRE_REF_MASKED,    /* PLAIN, and word[slot2] is the element mask (bit i: element i is touched);
                         * elem_bytes each; mask 0: no reference */
    WIRE_REF_PACKED,    /* compress/expand: popcount(word[slot2] & mask of elements) elements, contiguous */
    WIRE_REF_GATHER,    /* each set bit i < size / elem_bytes of word[slot2]: one reference of elem_bytes at
                         * disp + word[slot] + scale * index i (signed, index_bytes each, packed from
                         * word[slot3] on); slot 0: no base */
};
#define WIRE_LOAD 1u
#define WIRE_STORE 2u
#define WIRE_FS 1u         /* flags: add the descriptor's fs_base */
#define WIRE_REP_SRC 2u    /* flags, REP: reads [rsi] */
#define WIRE_REP_DST 4u    /* flags, REP: touches [rdi] */
#define WIRE_REP_DST_RD 8u /* flags, REP: [rdi] is read (scas, cmps), not written */

/*
 * One reference of a block. A read-modify-write instruction has one entry with LOAD|STORE and
 * stands for two references, load first.
 * REP: words slot..slot+4 hold rcx, rsi, rdi before, then rcx, rdi-or-rsi after (rdi when
 * WIRE_REP_DST is set, else rsi). Elements = rcx before - rcx after, direction = sign of the
 * pointer's change. Per element: load of [rsi] if REP_SRC, then load or store of [rdi] if REP_DST.
 */
struct wire_ref {
    int64_t disp;
    uint16_t size; /* bytes of the whole operand */
    uint8_t rw;    /* WIRE_LOAD | WIRE_STORE */
    uint8_t kind;  /* enum wire_ref_kind */
    uint8_t slot, slot2, slot3;
    uint8_t flags;
    uint8_t insn; /* index of its instruction in the block */
    uint8_t elem_bytes;
    uint8_t scale;
    uint8_t index_bytes;
    uint32_t pc_offset; /* of its instruction, from the block's pc */
};

/* A block's template; `nrefs` wire_ref follow it. */
struct wire_block {
    uint64_t pc;
    uint16_t nwords; /* header included; 0: the block records nothing */
    uint16_t nrefs;
    uint16_t ninsns;
    uint16_t loads, stores; /* sums of plain references (REP, MASKED, GATHER not counted) */
    uint16_t special;       /* 1 if any reference is not PLAIN */
    uint32_t module;        /* index into wire_proc.module, or UINT32_MAX */
    struct wire_ref refs[];
};

/* A handed-over buffer. Words [0, words) of the buffer are valid. */
struct wire_desc {
    uint64_t seq; /* order within the process, from 1 */
    uint32_t tid;
    uint32_t end; /* enum wire_end */
    uint32_t end_detail;
    uint32_t last_insns; /* of the last record only this many instructions were executed
                          * (UINT32_MAX: all of them); its words may be incomplete beyond */
    uint64_t words;
    uint64_t burst;                    /* number of the burst within the process, from 1 */
    uint64_t start_ns, end_ns;         /* CLOCK_MONOTONIC */
    uint64_t cpu_start_ns, cpu_end_ns; /* thread CPU time at start and end of this buffer */
    uint64_t fs_base;
    uint64_t new_blocks; /* blocks translated while this buffer was filled */
    uint64_t pc;         /* where the burst started */
    uint64_t gap_ns;     /* mean CPU time between bursts when this one was planned: what it stands for */
    uint32_t asks;       /* nonzero: number of the question that the thread waits with (wire_watching.turn) */
    uint32_t pad;
    uint64_t own_ns; /* CPU time of the process before the burst, less what profiling took of it, the time of
                      * all that ran in translated code included */
    uint64_t inside_refs; /* references that the process made before the burst in translated code, bursts
                           * handed over like this one not included */
    /* Clock `count`: just before the burst so many references took so much CPU time of the thread, in
     * counting translation (translator/x86_64/count.h), which is slower than native code; and system calls
     * between them took so much besides. 0: not told. */
    uint64_t count_refs, count_ns, count_call_ns;
    uint64_t count_blocks, count_turns; /* of that code: counting blocks, those that end with a return or an
                                         * indirect branch */
    /* The last of them. 0: not told; then an alarm ended the counting, else it ended at a mark. */
    uint64_t near_refs, near_ns;
    /* What the thread executed before them to warm up, likewise, from the burst's trigger on; 0: not told.
     * And the time, in both, in which the kernel made pages and could not be triggered. */
    uint64_t warm_ns, warm_blocks, warm_turns, paging_ns;
    /* Clock `count-always`: references of the thread before the burst, those of other bursts not among them,
     * and the stratum of references that the burst stands for. */
    uint64_t count_before, count_gap;
    /* Of a repeated string instruction's elements all these counts have but one, or one of its source and one
     * of its target: steps. Of the thread, since its last burst: steps counted; and elements besides that lie
     * in the line of the element before. */
    uint64_t string_steps, string_hits;
};

/*
 * While the collector opens an event on a thread, that thread must not execute another program: Linux up
 * to 6.18 at least takes the event off its owner's list before it is on it, and crashes. Nor does the process
 * give its signals back before the event is there, told by `armed`, or given up. FREE -> (collector) HELD ->
 * (it) FREE; FREE -> (thread) LEAVES, right before it executes a program -> (it, should that fail) FREE.
 */
enum wire_trigger_hold { WIRE_TRIGGER_FREE = 0, WIRE_TRIGGER_OPENING, WIRE_TRIGGER_EXECUTING };

/*
 * A thread that wants to be interrupted. Where perf events are allowed (wire_session.perf) the collector
 * opens a cpu-clock event on it from outside; the event's SIGTRAP comes with WIRE_MAGIC as its data, and only
 * in user code. `armed` says that there is one. Setting its period is dear, and done whenever `wanted`
 * changes only while gaps are short, or the moment matters (`exact`). Else the event ticks, some times in a
 * mean gap, and the agent obeys the tick next to the moment that it has planned (`tick_ns`).
 */
struct wire_trigger {
    uint32_t tid;       /* atomic; 0: free */
    uint32_t wanted;    /* atomic; incremented after gap_ns was set */
    uint64_t gap_ns;    /* CPU time of the thread */
    uint32_t armed;     /* atomic; the collector's: the tid that it has an event for */
    uint32_t served;    /* atomic; the collector's: the last `wanted` that it has dealt with */
    uint64_t cookie_at; /* address of wire_proc.cookie's twin in private memory: gone once the process */
                        /* has executed another program, which would not survive the signal */
    uint32_t hold;      /* atomic; enum wire_trigger_hold */
    uint32_t exact;     /* atomic; nonzero: in gap_ns, and not about then */
    uint64_t tick_ns;   /* atomic; the collector's: from tick to tick; 0: it does not tick */
};
#define WIRE_MAX_TRIGGERS 512u

/*
 * Watched lines. At a burst's end the thread waits (a few milliseconds at most, without using CPU time) for
 * the collector to look at the burst: which of the lines watched so far it touched, and which of its
 * survivors are watched from now on. `turn` says whose turn it is; only the collector writes to watch[] while
 * it answers, and only the agent at all other times. The agent closes the pages of the wanted lines until
 * the next burst, and notes what became of them.
 */
enum wire_watch_means {
    WIRE_WATCH_BY_NOTHING = 0,
    WIRE_WATCH_BY_PAGES,
};
enum wire_watch_state {
    WIRE_WATCH_FREE = 0,
    WIRE_WATCH_WANTED,
    WIRE_WATCH_HIT,      /* touched by the program, at cpu_ns */
    WIRE_WATCH_LOST,     /* given up by the agent, for reasons that have nothing to do with the line */
    WIRE_WATCH_UNMAPPED, /* the target gave the memory back */
    WIRE_WATCH_REFUSED,  /* never watched: on a thread's stack, or in a mapping that changed in the burst */
};
struct wire_watch {
    uint32_t state;       /* enum wire_watch_state */
    uint32_t protection;  /* PROT_* of its page; the collector's to find out */
    uint64_t line;        /* address of its first byte */
    uint64_t own_ns;      /* wire_desc.own_ns' clock at the moment at which the state ceased to be WANTED */
    uint64_t inside_refs; /* wire_desc.inside_refs' count, likewise */
    /* Both when the thread that left the line behind had its answer, if others ran while it waited for that;
     * since_ns with what they ran while faults held it up later. Alone they would not have been ahead of it.
     * 0: the burst's end will do. */
    uint64_t since_ns, since_refs;
    uint64_t id; /* the collector's */
};
#define WIRE_MAX_WATCHES 64u
enum { WIRE_TURN_AGENT = 0, WIRE_TURN_ASKED = 1, WIRE_TURN_ANSWERING = 2 }; /* low bits of turn */
#define WIRE_TURN_BITS 2
struct wire_watching {
    uint32_t turn; /* futex: number of the question << WIRE_TURN_BITS | whose turn */
    uint32_t off;  /* nonzero: this process is not watched any more; enum wire_unwatched */
    /* Told by the collector: CPU time that watching may cost until the next question; and what the kernel
     * takes for a fault or a diverted system call, to and fro, and of that for the way in. */
    uint64_t allowance_ns, fault_ns, fault_entry_ns;
    uint32_t threads; /* of the process that the agent knows, when it asks */
    uint32_t pad;
    struct wire_watch watch[WIRE_MAX_WATCHES];
};
enum wire_unwatched {
    WIRE_UNWATCHED_NOT = 0,
    WIRE_UNWATCHED_KERNEL,    /* no syscall user dispatch (Linux 5.11) */
    WIRE_UNWATCHED_SIGNALS,   /* the target took SIGSEGV or SIGSYS behind libc's back */
    WIRE_UNWATCHED_ASYNC,     /* the kernel may write to the target's memory on its own (io_uring, devices) */
    WIRE_UNWATCHED_DISPATCH,  /* the target uses syscall user dispatch itself */
    WIRE_UNWATCHED_COLLECTOR, /* no answer came for seconds */
    WIRE_UNWATCHED_THREADS    /* too many of them, or made behind libc's back */
};

/* Full mode, counting always: why a thread was native. */
enum wire_native_why {
    WIRE_NATIVE_CODE = 0, /* there is code that is not translated, not a file's or not to be read */
    WIRE_NATIVE_SEQUENCE, /* a restartable sequence */
    WIRE_NATIVE_SPACE,    /* no room for more translations */
    WIRE_NATIVE_BUFFER,   /* the recorder was behind, or there were too many threads */
    WIRE_NATIVE_GS,       /* it uses the GS base itself */
    WIRE_NATIVE_SIGNAL,   /* a signal came first, which did not come */
    WIRE_NATIVE_EXEC,     /* a thread executed another program, or tried to */
    WIRE_NATIVE_AGENT,    /* functions of the agent's that must run natively */
    WIRE_NATIVE_OFF,      /* the agent had turned itself off, or the recording was over */
    WIRE_NATIVE_UNKNOWN,  /* threads that the agent does not know */
    WIRE_NATIVE_COUNT     /* at most 16 */
};

/* User-mode CPU time of a thread that went by natively. */
struct wire_native {
    uint32_t key; /* atomic; its id << 4 | enum wire_native_why; 0: of all that found no entry, or none yet */
    uint32_t pad;
    uint64_t user_ns; /* atomic */
};
#define WIRE_MAX_NATIVE 256u

struct wire_module {
    uint64_t start, end, file_offset;
    char path[232];
};
#define WIRE_MAX_MODULES 256u

/* Counters that the agent only ever increases; the profile shows them. */
struct wire_counters {
    uint64_t triggers;       /* timer signals seen */
    uint64_t ticks;          /* others, which were not obeyed */
    uint64_t bursts;         /* bursts entered */
    uint64_t skipped_buffer; /* triggers without a free buffer */
    uint64_t skipped_code;   /* triggers in code that is not translated */
    uint64_t skipped_busy;   /* triggers at a moment when entering was not safe */
    uint64_t skipped_gs;     /* triggers in a thread that uses the GS base itself */
    uint64_t stepped;        /* instructions executed natively in the middle of a burst */
    uint64_t syscalls;       /* system calls made from inside bursts */
    uint64_t blocks;         /* blocks translated */
    uint64_t insns;          /* instructions translated */
    uint64_t flushes;        /* times that all translations were thrown away */
    uint64_t threads;        /* threads seen */
    uint64_t translate_ns;
    uint64_t stalled_ns;    /* full mode: waited for a free buffer */
    uint64_t cpu_ns;        /* process CPU time when last looked at */
    uint64_t burst_cpu_ns;  /* CPU time spent inside bursts */
    uint64_t start_cpu_ns;  /* CPU time that the agent took before the program began, or went on in a forked
                               child */
    uint64_t watch_faults;  /* touches of closed pages */
    uint64_t watch_hits;    /* of that, of watched lines */
    uint64_t watch_minis;   /* short bursts behind the others */
    uint64_t watch_refs;    /* references made in these */
    uint64_t watch_calls;   /* system calls that were looked at first */
    uint64_t watch_unasked; /* bursts whose question was withdrawn, or could not be asked */
    uint64_t watch_cpu_ns;  /* CPU time that all of it took, the kernel's part estimated */
    uint64_t watch_rests;   /* times that calls alone, of several threads, cost too much */
    /* CPU time of the program's own, summed over lines: watched; and of that, open to other threads unseen */
    uint64_t watch_line_ns, watch_unseen_ns;
    uint64_t counts;                    /* stretches of counting */
    uint64_t count_refs;                /* references counted in them: of string instructions, steps */
    uint64_t count_string_refs;         /* and elements of these besides */
    uint64_t count_blocks, count_turns; /* counting blocks; those that end with a return or indirect branch */
    uint64_t count_cpu_ns, count_away_ns; /* CPU time spent in them; of that, in C code of the agent's */
    uint64_t memory_bytes;                /* that the agent takes, at most: all that it ever touched */
    uint64_t unknown_threads;             /* made by calls that the agent does not handle */
    /* Full mode: threads that recorded when another one ended the process, which lost their last buffers, and
     * the CPU time in which these were filled. */
    uint64_t lost_threads, lost_ns;
    uint64_t known_cpu_ns; /* full mode, counting always: CPU time of all threads that are followed */
    uint64_t disabled;     /* nonzero: the agent turned itself off; enum wire_disabled */
};
enum wire_disabled {
    WIRE_OFF_NOT = 0,
    WIRE_OFF_CPU /* lacks SSE4.2 or XSAVE */,
    WIRE_OFF_MEMORY,
    WIRE_OFF_SLOTS,
    WIRE_OFF_COLLECTOR /* is gone */,
    WIRE_OFF_TIMER,
    WIRE_OFF_TROUBLE /* an unexpected fault in the code cache */,
    WIRE_OFF_SECCOMP,  /* the target is about to forbid system calls, ours among them */
    WIRE_OFF_DISPATCH, /* or to have them sent to itself */
    WIRE_OFF_GO,       /* a Go runtime is in the program, or came with a library */
    WIRE_OFF_EMULATED, /* Valgrind or qemu runs it */
    WIRE_OFF_TRACED,   /* another process traces it */
    WIRE_OFF_COUNT
};

/* Addresses from low to below high; high 0: none. */
struct wire_span {
    uint64_t low, high; /* atomic */
};

/* A process is about to execute that file, as it was named; perhaps in vain. */
struct wire_execution {
    uint32_t pid; /* atomic; 0: it is being written */
    char path[252];
};
#define WIRE_MAX_EXECUTIONS 64u

struct wire_proc {
    uint32_t state; /* atomic */
    uint32_t pid, ppid;
    uint32_t exec_count; /* informative */
    uint64_t start_ns;
    char comm[64];
    char exe[1024];
    uint64_t next_seq;      /* atomic */
    uint64_t next_burst;    /* atomic */
    uint64_t template_used; /* atomic; bytes of the template area in use */
    uint32_t nmodules;      /* atomic, release */
    uint32_t exit_seen;
    struct wire_counters count;
    uint32_t buf_state[WIRE_MAX_BUFFERS]; /* atomic */
    uint32_t buf_freed;                   /* futex: the collector increments it when it frees one */
    uint32_t triggers_changed;            /* atomic; incremented after any change of trigger[] */
    uint64_t cookie;                      /* a random number */
    uint32_t timer_errno;                 /* why there was no timer (WIRE_OFF_TIMER); 0: not known */
    uint64_t mapped_at;                   /* where this struct is in the process */
    struct wire_trigger trigger[WIRE_MAX_TRIGGERS];
    struct wire_desc desc[WIRE_MAX_BUFFERS];
    struct wire_module module[WIRE_MAX_MODULES];
    struct wire_native native[WIRE_MAX_NATIVE];
    struct wire_watching watching;
    /* All memory of the process that is the agent's. Entries are only added; `high` comes last. */
    uint32_t own_spans; /* atomic */
    struct wire_span own[WIRE_OWN_SPANS];
    /* template offset of block id, bytes from the template area's start; 0: none. Filled by the
     * agent before a record with that id can be handed over; ids are never reused within a
     * process unless `generation` of the process slot changes (it does not at present). */
    uint32_t block_offset[WIRE_MAX_BLOCKS];
};

/* Whether something in [low, high) is the agent's. */
static inline int wire_is_own(const struct wire_proc *proc, uint64_t low, uint64_t high)
{
    uint32_t n = __atomic_load_n(&proc->own_spans, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n && i < WIRE_OWN_SPANS; i++)
        if (low < __atomic_load_n(&proc->own[i].high, __ATOMIC_ACQUIRE) && high > proc->own[i].low)
            return 1;
    return 0;
}

#define PID_NAMESPACE "/proc/self/ns/pid"

struct wire_session {
    uint64_t magic;
    uint32_t version;
    uint32_t mode;                                       /* enum wire_mode */
    uint64_t session_bytes;                              /* of the whole memory file */
    uint32_t nslots;                                     /* <= WIRE_MAX_SLOTS */
    uint32_t nbuffers;                                   /* per slot, <= WIRE_MAX_BUFFERS */
    uint64_t slot_bytes, slot_offset;                    /* slot i starts at slot_offset + i * slot_bytes */
    uint64_t template_offset, template_bytes;            /* within a slot; multiples of the page */
    uint64_t buffer_offset, buffer_bytes, buffer_stride; /* stride = bytes + one guard page */
    uint64_t gap_ns;                                     /* mean CPU time between bursts of a thread */
    uint64_t seed;
    uint32_t follow; /* 0: children are left alone */
    uint32_t collector_pid;
    uint32_t doorbell;         /* futex: agents increment it when they hand something over */
    uint32_t collector_sleeps; /* nonzero: wake it through the doorbell */
    uint32_t stop;             /* nonzero: agents go native and stay there */
    uint32_t attached;         /* atomic: number of processes that ever attached */
    uint32_t refused_slots;    /* atomic: processes that found no free slot */
    uint32_t refused_pids;     /* atomic: that are in another PID namespace than the collector */
    uint32_t perf;             /* enum wire_events: whether the collector serves wire_proc.trigger[] */
    uint32_t watch;            /* enum wire_watch_means */
    uint32_t line_bytes;       /* of a line */
    uint32_t clock;            /* enum wire_clock */
    uint32_t count_vector;     /* number of the vector register that references are counted in */
    uint64_t pid_namespace;    /* the collector's, its inode number; 0: not known */
    uint64_t page_ns;          /* CPU time that a new page takes: the mean of WIRE_PAGES_TRIED */
    /* Atomic: a bit for each slot that is not worth a look for who wants one, and is for the collector. Set
     * after a slot was claimed, and before `attached` is; taken back before the slot's state is. */
    uint64_t slots_taken;
    uint32_t executions; /* atomic: begun so far; the last ones are: */
    struct wire_execution execution[WIRE_MAX_EXECUTIONS];
};

#endif
