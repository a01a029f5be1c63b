/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - the memory that the agent (inside the target) and the collector (outside) share.
 *
 * The collector creates one memory file, the session. Its name, /proc/PID/fd/N, reaches every process of the
 * target in the environment variable WIRE_ENV. An agent opens it, maps the session page and one process slot,
 * and closes it: no descriptor stays open in the target.
 *
 *   session page | slot 0 | slot 1 | ...
 *   slot: struct wire_proc | template area | buffer 0 | guard page | buffer 1 | guard page | ...
 *
 * Life of a slot: FREE -> (agent, compare-and-swap) LIVE -> (collector, when the process has ended and
 * everything is drained) FREE.
 *
 * Life of a buffer: FREE -> (agent) OWNED -> (agent, after filling its descriptor) READY -> (collector, after
 * reading) FREE. Every READY buffer has one descriptor, wire_proc.desc[] of the same index; `seq` orders them
 * within the process.
 *
 * A buffer holds records. A record is one execution of a block: a header word, id | nwords << 20 (id: 20
 * bits, an index into the template table; nwords includes the header), then nwords - 1 words, which the
 * block's template explains. See struct wire_ref.
 *
 * If lines are filtered (wire_session.filters), all headers have WIRE_FILTERED added, and there are two kinds
 * of records. That of a block with plain references only is a header of one word, followed by the addresses
 * of those touches whose lines are in the sample (wire_filter_address). All other blocks have the record
 * above.
 *
 * All of this is internal: both sides come from one build, and the agent refuses another WIRE_VERSION.
 */
#ifndef CACHEGRAM_WIRE_H
#define CACHEGRAM_WIRE_H

#include <stdint.h>

#define WIRE_ENV "CACHEGRAM_SESSION"
#define WIRE_MAGIC 0x6d61726765686361ull /* "achegram" */
#define WIRE_VERSION 36u
/* The agent does not start in a process whose limit on memory leaves less: three times what it maps
 * (docs/agent-rules.md), so that the process does not reach the limit because of the agent. */
#define WIRE_ROOM_MB 1056
#define WIRE_PAGE 4096u
#define WIRE_PAGES_TRIED 128u     /* pages that wire_session.page_ns is the mean of */
#define WIRE_SESSION_BYTES 65536u /* the session page, rounded up */
#define WIRE_MAX_BUFFERS 64u
#define WIRE_MAX_SLOTS 256u /* a multiple of 64 */
/* Ids 1 .. WIRE_MAX_BLOCKS - 1; 0 is never used. Half as many were too few for cc1plus. */
#define WIRE_MAX_BLOCKS (1u << 19)
#define WIRE_OWN_SPANS 4160u /* pieces of the agent's memory: one for each thread, and some for all */
#define WIRE_ID_BITS 20
#define WIRE_ID_MASK ((1u << WIRE_ID_BITS) - 1)

/*
 * The filter: full mode on a sample of lines, where the agent leaves out the touches of most lines that are
 * not in the sample. A line belongs to one of WIRE_FILTER_CLASSES classes by a hash of its low 32 bits, and
 * the filter lets the lines of some classes pass. The hash is the low 8 bits of what the crc32 instruction
 * makes of them with a source of four zero bytes.
 */
#define WIRE_FILTER_CLASSES 256u
/* wire_session.filter: an address is 8 bytes, by which a record grows if its class passes. */
#define WIRE_FILTER_PASSES 8u
/* Added to headers. A user address never has the highest bit. */
#define WIRE_FILTERED 0xffffffff80000000u
#define WIRE_FILTERED_WORDS(header) ((uint32_t)(header) >> WIRE_ID_BITS & 0x7ffu)
/*
 * Address of a touch, in a record: bits 0 .. 47. Above that, of the first touch of a group of references that
 * differ by constants: the number of the group, from 1. The references of that group have it in
 * wire_ref.slot2, and their distance from the address in `disp`: so the collector sees how many of them touch
 * two lines. 0: none does.
 */
#define WIRE_FILTER_ADDRESS_BITS 48
#define WIRE_FILTER_GROUPS 127u

/* How references are counted between bursts. */
enum wire_clock {
    WIRE_CLOCK_CPUTIME = 0,
    WIRE_CLOCK_COUNT /* for a stretch before each burst; in WIRE_MODE_COUNT whenever no burst is recorded */
};

/* Perf events by which the collector triggers threads. */
enum wire_events { WIRE_EVENTS_NONE = 0, WIRE_EVENTS_OF_TIME, WIRE_EVENTS_OF_COUNTERS };

enum wire_mode {
    WIRE_MODE_BURST = 0, /* native execution, and bursts at random moments of CPU time */
    WIRE_MODE_FULL,      /* every reference is recorded */
    WIRE_MODE_IDLE,
    WIRE_MODE_COUNT /* every reference is counted, and bursts are placed by references */
};

/* Why a buffer was handed over. Every reason but WIRE_END_MORE ends the burst. */
enum wire_end {
    WIRE_END_MORE = 0,    /* full mode: the burst continues in the next buffer */
    WIRE_END_FULL,        /* the buffer is full: the usual end of a burst */
    WIRE_END_SYSCALL,     /* a system call that a burst cannot contain (end_detail: its number) */
    WIRE_END_INSTRUCTION, /* an instruction that is not translated (end_detail: Zydis mnemonic) */
    WIRE_END_CODE,        /* code that may change: not backed by a file, or writable */
    WIRE_END_FAULT,       /* a fault of the target's own (end_detail: signal) */
    WIRE_END_SIGNAL,      /* a signal for the target arrived (end_detail: signal) */
    WIRE_END_EXIT,        /* thread or process ended */
    WIRE_END_SPACE,       /* no room for more translations */
    WIRE_END_SEQUENCE,    /* a restartable sequence of the target's */
    WIRE_END_COUNT
};

enum { WIRE_BUF_FREE = 0, WIRE_BUF_OWNED = 1, WIRE_BUF_READY = 2 };
enum { WIRE_PROC_FREE = 0, WIRE_PROC_LIVE = 1 };

/* Kinds of reference in a template. */
enum wire_ref_kind {
    WIRE_REF_PLAIN = 0, /* address = disp + (slot ? word[slot] : 0) + (fs ? fs_base : 0) */
    WIRE_REF_REP,       /* string instruction with a repeat prefix, all elements; see below */
    /* PLAIN, and word[slot2] is the element mask (bit i: element i is accessed); elem_bytes each; mask 0: no
     * reference. */
    WIRE_REF_MASKED,
    WIRE_REF_PACKED, /* compress/expand: popcount(word[slot2] & mask of elements) elements, contiguous */
    /* For each set bit i < size / elem_bytes of word[slot2]: one reference of elem_bytes at disp + word[slot]
     * + scale * index i (signed, index_bytes each, packed from word[slot3] on); slot 0: no base. */
    WIRE_REF_GATHER,
};
#define WIRE_LOAD 1u
#define WIRE_STORE 2u
#define WIRE_FS 1u         /* flags: add the descriptor's fs_base */
#define WIRE_REP_SRC 2u    /* flags, REP: reads [rsi] */
#define WIRE_REP_DST 4u    /* flags, REP: accesses [rdi] */
#define WIRE_REP_DST_RD 8u /* flags, REP: [rdi] is read (scas, cmps), not written */

/*
 * One reference of a block. A read-modify-write instruction has one entry with LOAD | STORE, which means two
 * references, the load first.
 *
 * REP: the words slot..slot+4 are rcx, rsi, rdi before the instruction, then rcx and one pointer after it:
 * rdi if WIRE_REP_DST is set, else rsi. Elements = rcx before - rcx after, direction = sign of the pointer's
 * change. Per element: a load of [rsi] if REP_SRC, then a load or store of [rdi] if REP_DST.
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

/* How a block ends. The last reference of a call stores the return address, that of a return loads it. A
 * return of the agent's own code has no reference: the only word of its record is where the return address
 * lies. */
enum wire_block_end { WIRE_BLOCK_OTHER = 0, WIRE_BLOCK_CALL, WIRE_BLOCK_RETURN };

/* A block's template; `nrefs` wire_ref follow it. */
struct wire_block {
    uint64_t pc;
    uint16_t nwords; /* header included; 0: the block records nothing */
    uint16_t nrefs;
    uint16_t ninsns;
    uint16_t loads, stores; /* sums of plain references (REP, MASKED, GATHER not counted) */
    uint16_t special;       /* 1 if any reference is not PLAIN */
    uint32_t module;        /* index into wire_proc.module, or UINT32_MAX */
    uint32_t ends;          /* enum wire_block_end */
    uint32_t bytes;         /* length of its instructions: what follows a call is at pc + bytes */
    struct wire_ref refs[];
};

/* The descriptor of a buffer that was handed over. Words [first_word, first_word + words) of the buffer are
 * valid. */
struct wire_desc {
    uint64_t seq; /* order within the process, from 1 */
    uint32_t tid;
    uint32_t end; /* enum wire_end */
    uint32_t end_detail;
    /* Of the last record only this many instructions were executed (UINT32_MAX: all); its words may be
     * incomplete after these. */
    uint32_t last_insns;
    uint64_t first_word, words;
    uint64_t burst;                    /* number of the burst within the process, from 1 */
    uint64_t start_ns, end_ns;         /* CLOCK_MONOTONIC */
    uint64_t cpu_start_ns, cpu_end_ns; /* thread CPU time at start and end of this buffer */
    uint64_t fs_base;
    uint64_t heap_start, heap_end; /* wire_heap.head at the start and end of this buffer */
    uint64_t new_blocks;           /* blocks translated while this buffer was filled */
    uint64_t pc;                   /* address at which the burst began */
    uint64_t gap_ns; /* the mean gap when this burst was planned: the length of its stratum in CPU time */
    /* Nonzero: the thread waits for the answer to this question about the burst (wire_watching.question). */
    uint32_t question;
    uint32_t full; /* the burst began in full mode */
    /* CPU time of the process before the burst, without what profiling took. All time in translated code
     * counts as profiling's. */
    uint64_t app_cpu_ns;
    uint64_t thread_ns; /* the same of the thread alone */
    /* References that the process made in translated code before the burst, except in recorded bursts. */
    uint64_t translated_refs;
    /* Clock `count`: right before the burst, so many references took so much CPU time of the thread in
     * counting code (translator/x86_64/count.h), which is slower than native code; system calls between them
     * took count_call_ns in addition. 0: unknown. */
    uint64_t count_refs, count_ns, count_call_ns;
    /* Counting blocks of that code; those that end with a return or an indirect branch. */
    uint64_t count_blocks, count_turns;
    /* The last of these references. 0: unknown, since an alarm ended the counting; else it ended at a mark.
     */
    uint64_t near_refs, near_ns;
    /* The same for what the thread executed before them to warm up, from the trigger on; 0: unknown. And the
     * time, in both parts, in which the kernel provided pages, where no trigger can fire. */
    uint64_t warm_ns, warm_blocks, warm_turns, paging_ns;
    /* Clock `count-always`: references of the thread before the burst, without those of other recorded
     * bursts; and the length of the burst's stratum in references. */
    uint64_t count_before, count_gap;
    /* All these counts include a repeated string instruction as one step for its source and one for its
     * destination, however many elements it has. Steps that the thread counted since its last burst; and
     * those elements which are no steps and lie in the same line as the previous element. */
    uint64_t string_steps, string_hits;
    uint64_t stack_words; /* of wire_proc.stack[]; 0: nothing was copied for this buffer */
};

/* The top of the thread's stack when a burst began, from which its callers are found. */
#define WIRE_STACK_WORDS 1022u
struct wire_stack {
    uint64_t sp, rbp;
    uint64_t words[WIRE_STACK_WORDS]; /* from the stack pointer on */
};

/*
 * wire_trigger.hold. While the collector opens an event on a thread, that thread must not execute another
 * program: Linux (at least up to 6.18) would remove the event from its owner's list before it has been added,
 * and crash. Nor may the process give its signals back until the event is open (`armed`) or was given up.
 * FREE -> (collector) OPENING -> (collector) FREE; FREE -> (thread) EXECUTING, right before it executes a
 * program -> (thread, if that fails) FREE.
 */
enum wire_trigger_hold { WIRE_TRIGGER_FREE = 0, WIRE_TRIGGER_OPENING, WIRE_TRIGGER_EXECUTING };

/*
 * A thread that requests triggers. Where perf events are allowed (wire_session.perf), the collector opens an
 * event on the thread from outside. Its SIGTRAP arrives with WIRE_MAGIC as data, and only in user code.
 * `armed` shows that there is one. To set the period of an event is expensive, so that is only done for each
 * new request (`requested`) while gaps are short, or where the moment matters (`exact`). Otherwise the event
 * ticks several times in a mean gap, and the agent obeys the tick next to the moment that it has planned
 * (`tick_ns`).
 */
struct wire_trigger {
    uint32_t tid;       /* atomic; 0: free */
    uint32_t requested; /* atomic; incremented after gap_ns was set */
    uint64_t gap_ns;    /* CPU time of the thread until the trigger */
    uint32_t armed;     /* atomic; set by the collector: the tid that it has an event for */
    uint32_t served;    /* atomic; set by the collector: the last request that it has served */
    /* Address of a copy of wire_proc.cookie in private memory. It is gone once the process has executed
     * another program, which the signal would kill. */
    uint64_t cookie_at;
    uint32_t hold;    /* atomic; enum wire_trigger_hold */
    uint32_t exact;   /* atomic; nonzero: after exactly gap_ns, not at the tick next to that */
    uint64_t tick_ns; /* atomic; set by the collector: period of the ticks; 0: the event does not tick */
};
#define WIRE_MAX_TRIGGERS 512u

/*
 * Watched lines. At a burst's end the thread waits (a few milliseconds at most, without using CPU time) for
 * the collector to examine the burst: which of the lines watched so far it touched, and which of its
 * survivors are watched from now on. That is a question and its answer. Only the collector writes to watch[]
 * while it answers, and only the agent at all other times. Until the next burst the agent protects the pages
 * of the pending lines, and notes what happened to them.
 */
enum wire_watch_means {
    WIRE_WATCH_BY_NOTHING = 0,
    WIRE_WATCH_BY_PAGES,
};
enum wire_watch_state {
    WIRE_WATCH_FREE = 0,
    WIRE_WATCH_PENDING,
    WIRE_WATCH_HIT,      /* the program touched it, at app_cpu_ns */
    WIRE_WATCH_CENSORED, /* observation ended first, for a reason that has nothing to do with the line */
    WIRE_WATCH_UNMAPPED, /* the target unmapped the memory */
    WIRE_WATCH_REFUSED,  /* never watched: on a thread's stack, or in a mapping that changed in the burst */
};
struct wire_watch {
    uint32_t state;      /* enum wire_watch_state */
    uint32_t protection; /* PROT_* of its page, as found by the collector */
    uint64_t line;       /* address of its first byte */
    uint64_t app_cpu_ns; /* wire_desc.app_cpu_ns at the moment at which the state stopped being PENDING */
    uint64_t translated_refs; /* wire_desc.translated_refs at that moment */
    uint64_t pc;              /* of the instruction that touched it; 0: not known */
    uint32_t tid;             /* of the thread that did */
    uint64_t thread_ns;       /* wire_desc.thread_ns of it at that moment; 0: not known */
    /* The same two when the thread whose survivor the line is got its answer, if other threads ran while it
     * waited for that; from_cpu_ns also includes what they ran while faults delayed the thread later. If the
     * thread had run alone, they would not have been ahead of it. 0: the values at the burst's end. */
    uint64_t from_cpu_ns, from_refs;
    uint64_t id; /* the collector's */
};
#define WIRE_MAX_WATCHES 64u
/* Bytes below and above a thread pointer in which no line is watched: there are what the kernel writes to
 * (rseq, the list of robust mutexes), and thread-local variables. */
#define WIRE_TLS_BYTES UINT64_C(8192)
enum {
    WIRE_QUESTION_NONE = 0,
    WIRE_QUESTION_ASKED = 1,
    WIRE_QUESTION_ANSWERING = 2
}; /* low bits of the question */
#define WIRE_QUESTION_BITS 2
struct wire_watching {
    uint32_t question; /* futex: number of the question << WIRE_QUESTION_BITS | its state */
    uint32_t off;      /* nonzero: this process is not watched any more; enum wire_unwatched */
    /* Set by the collector: the CPU time that watching may cost until the next question; the kernel's time
     * for a fault or a diverted system call, entry and return; and for the entry alone. */
    uint64_t allowance_ns, fault_ns, fault_entry_ns;
    uint32_t threads; /* threads of the process that the agent knows, at the question */
    struct wire_watch watch[WIRE_MAX_WATCHES];
};
enum wire_unwatched {
    WIRE_UNWATCHED_NOT = 0,
    WIRE_UNWATCHED_KERNEL,    /* no syscall user dispatch (Linux 5.11) */
    WIRE_UNWATCHED_SIGNALS,   /* the target installed a handler for SIGSEGV or SIGSYS without libc */
    WIRE_UNWATCHED_ASYNC,     /* the kernel may write to the target's memory on its own (io_uring, devices) */
    WIRE_UNWATCHED_DISPATCH,  /* the target uses syscall user dispatch itself */
    WIRE_UNWATCHED_COLLECTOR, /* it did not answer for seconds */
    WIRE_UNWATCHED_THREADS,   /* too many, or created without libc */
    WIRE_UNWATCHED_GROWS      /* a mapping grows by faults below it, which a protected page would prevent */
};

/* Full mode, and while every reference is counted: why a thread executed natively. */
enum wire_native_why {
    WIRE_NATIVE_CODE = 0, /* code that cannot be translated: not from a file, or not readable */
    WIRE_NATIVE_SEQUENCE, /* a restartable sequence */
    WIRE_NATIVE_SPACE,    /* no room for more translations */
    WIRE_NATIVE_BUFFER,   /* no buffer was free: the recorder was too slow, or threads too many */
    WIRE_NATIVE_GS,       /* the thread uses the GS base itself */
    WIRE_NATIVE_SIGNAL,   /* waited for a signal that did not arrive */
    WIRE_NATIVE_EXEC,     /* a thread executed another program, or tried to */
    WIRE_NATIVE_AGENT,    /* functions of the agent that must run natively */
    WIRE_NATIVE_OFF,      /* the agent was off, or the recording had ended */
    WIRE_NATIVE_UNKNOWN,  /* threads that the agent does not know */
    WIRE_NATIVE_COUNT     /* at most 16 */
};

/* User-mode CPU time that a thread executed natively. */
struct wire_native {
    /* Atomic; thread id << 4 | enum wire_native_why; 0: free, or shared by all that found no free entry. */
    uint32_t key;
    uint64_t user_ns; /* atomic */
};
#define WIRE_MAX_NATIVE 256u

struct wire_module {
    uint64_t start, end, file_offset;
    char path[232];
};
#define WIRE_MAX_MODULES 256u
/* Path of a module whose code may change while the process runs: anonymous, writable or shared memory. */
#define WIRE_JIT_MODULE "[jit]"

/* Counters, which the agent only increases. The profile shows them under these names. */
struct wire_counters {
    uint64_t triggers;         /* triggers obeyed */
    uint64_t ticks;            /* triggers ignored, since they were not the planned ones */
    uint64_t bursts;           /* recorded bursts begun */
    uint64_t skipped_buffer;   /* triggers without a free buffer */
    uint64_t skipped_code;     /* triggers in code that cannot be translated */
    uint64_t skipped_busy;     /* triggers when a signal was pending */
    uint64_t skipped_gs;       /* triggers in a thread that uses the GS base itself */
    uint64_t skipped_handlers; /* triggers while the program had replaced the agent's fault handlers */
    uint64_t stepped;          /* instructions executed natively in the middle of a burst */
    uint64_t syscalls;         /* system calls made in translated code */
    uint64_t blocks;           /* blocks translated */
    uint64_t insns;            /* instructions translated */
    uint64_t flushes;          /* times that all translations were discarded */
    uint64_t threads;          /* threads attached */
    uint64_t translate_ns;
    uint64_t stalled_ns;   /* full mode: real time spent waiting for a free buffer */
    uint64_t cpu_ns;       /* CPU time of the process when last read */
    uint64_t burst_cpu_ns; /* CPU time spent inside bursts */
    /* CPU time that the agent took before the program began, or before a forked child continued. */
    uint64_t start_cpu_ns;
    uint64_t watch_faults;  /* faults of protected pages */
    uint64_t watch_hits;    /* of these, by a touch of the watched line */
    uint64_t watch_probes;  /* probe bursts, after the other faults */
    uint64_t watch_refs;    /* references made in probe bursts */
    uint64_t watch_calls;   /* diverted system calls */
    uint64_t watch_unasked; /* bursts whose question was withdrawn, or could not be asked */
    uint64_t watch_cpu_ns;  /* CPU time that watching took, the kernel's part estimated */
    uint64_t watch_pauses;  /* pauses of the call tracker, because calls alone cost too much */
    /* CPU time of the program, summed over lines: while watched; and of that, while the page was accessible
     * to other threads unnoticed */
    uint64_t watch_line_ns, watch_unseen_ns;
    uint64_t counts;     /* counting stretches */
    uint64_t count_refs; /* references counted in them; repeated string instructions counted in steps */
    uint64_t count_string_refs; /* elements of these that are no steps */
    uint64_t all_refs;          /* of both: while every reference was counted (WIRE_MODE_COUNT) */
    /* Counting blocks executed; those that end with a return or indirect branch. */
    uint64_t count_blocks, count_turns;
    /* CPU time spent in the stretches; of that, in C code of the agent. */
    uint64_t count_cpu_ns, count_agent_ns;
    uint64_t memory_bytes;    /* memory of the agent: all that it ever touched */
    uint64_t unknown_threads; /* created by calls that the agent does not handle */
    /* While every reference is recorded or counted: processes with a copy of this one's memory that clone,
     * _Fork or a system call of the program's made, and that have executed no program. */
    uint64_t unknown_children;
    /* Full mode: threads that were recording when another one ended the process, and lost their last buffer;
     * and the CPU time in which these buffers were filled. */
    uint64_t lost_threads, lost_ns;
    uint64_t
        known_cpu_ns;  /* full mode, and while every reference is counted: CPU time of all followed threads */
    uint64_t disabled; /* nonzero: the agent has turned itself off; enum wire_disabled */
};
enum wire_disabled {
    WIRE_OFF_NOT = 0,
    WIRE_OFF_CPU /* lacks SSE4.2 */,
    WIRE_OFF_MEMORY,
    WIRE_OFF_SLOTS,
    WIRE_OFF_COLLECTOR /* is gone */,
    WIRE_OFF_TIMER,
    WIRE_OFF_TROUBLE /* an unexpected fault in translated code or the agent */,
    WIRE_OFF_SECCOMP,  /* the target is about to forbid system calls, also the agent's */
    WIRE_OFF_DISPATCH, /* or to have them sent to itself */
    WIRE_OFF_GO,       /* a Go runtime is in the program, or in a library */
    WIRE_OFF_EMULATED, /* Valgrind or qemu runs it */
    WIRE_OFF_TRACED,   /* another process traces it */
    WIRE_OFF_COUNT
};

/* Addresses [low, high); high 0: none. */
struct wire_span {
    uint64_t low, high; /* atomic */
};

/* What an environment does not have of what the agent needs in the program that gets it. */
enum wire_lacks { WIRE_LACKS_NOTHING, WIRE_LACKS_SESSION, WIRE_LACKS_LIBRARY };

/* A process is about to execute that file, as the call named it (empty: by a descriptor); the call may fail.
 */
struct wire_execution {
    uint32_t pid;    /* atomic; 0: the entry is being written */
    uint32_t number; /* which announcement it is, from 0 on; until it is written, that is an earlier one */
    uint32_t lacks;  /* enum wire_lacks */
    char path[236];
    uint64_t
        hidden; /* signals that the calling thread believes to be blocked, but the kernel does not block */
};
#define WIRE_MAX_EXECUTIONS 64u
#define WIRE_SPAWNED UINT64_MAX /* as `hidden`: its parent announces it, which knows of no such signals */

/*
 * A sample of the blocks that the target allocates, and of what it maps (agent/interpose/heap.c). The agent
 * puts reports into a ring of words; the collector takes them out and sets the words to 0. The first word of
 * a report is its kind and its number of words; it is written last. A ring that is full loses reports.
 */
enum wire_heap_kind {
    WIRE_HEAP_NONE = 0, /* not written yet */
    WIRE_HEAP_BLOCK,    /* address, bytes, interval, stack pointer, rbp, return address, stack */
    WIRE_HEAP_MAP,      /* the same of a mapping without a file; not sampled */
    WIRE_HEAP_FILE,     /* address, bytes, four words of 0, name: a mapping of a file; not sampled */
    WIRE_HEAP_FREE,     /* address, 0: a reported block is about to be freed */
    WIRE_HEAP_UNMAP,    /* address, bytes: about to be unmapped */
};
#define WIRE_HEAP_KIND_BITS 8u
#define WIRE_HEAP_HEAD_WORDS 7u
/* From the stack pointer on, as the caller has it after the call. Code of rustc that is not optimized has
 * seven calls in 1 to 2 KB, from Vec::push to malloc. */
#define WIRE_HEAP_STACK_WORDS 256u
#define WIRE_HEAP_NAME_WORDS 128u /* in its place; shorter, as the name is on the target's stack at first */
#define WIRE_HEAP_BLOCK_WORDS (WIRE_HEAP_HEAD_WORDS + WIRE_HEAP_STACK_WORDS)
#define WIRE_HEAP_WORDS (1u << 19)
#define WIRE_HEAP_FILTER (1u << 20)
#define WIRE_HEAP_SETS (1u << 14)
#define WIRE_HEAP_WAYS 8u
#define WIRE_HEAP_FIRST_INTERVAL 2048u
#define WIRE_HEAP_MOST_INTERVAL (1u << 26)
struct wire_heap {
    uint64_t head, tail; /* atomic; words ever written, and taken out */
    uint64_t lost;       /* atomic; reports for which there was no room */
    uint64_t interval; /* atomic; set by the collector: mean bytes between two sampled blocks; 0: the first */
    uint32_t replaced; /* the program has a malloc of its own: its blocks are not seen */
    /* Blocks that were reported and not freed since: by address, their number (255: that many or more, for
     * good), and their addresses, in sets. Only the agent uses them. */
    uint8_t filter[WIRE_HEAP_FILTER];
    uint64_t known[WIRE_HEAP_SETS][WIRE_HEAP_WAYS]; /* atomic; 0: free */
    uint64_t ring[WIRE_HEAP_WORDS];
};

/* Blocks side by side have entries side by side. */
static inline uint32_t wire_heap_filter(uint64_t address)
{
    return (uint32_t)(address >> 4 ^ (address >> 24) * 0x9e3779b1u) & (WIRE_HEAP_FILTER - 1);
}

/*
 * Where threads were when their triggers ticked: samples of code. Agents reserve elements by compare-and-swap
 * and write `number` last; the collector takes them out in order.
 */
struct wire_tick {
    uint64_t number;            /* atomic; from 1; anything else than the expected one: not written yet */
    uint64_t pc, cpu_ns, at_ns; /* the thread's CPU time, and CLOCK_MONOTONIC */
    uint32_t tid;
};
#define WIRE_TICKS 4096u
struct wire_ticks {
    uint64_t head, tail; /* atomic; elements ever reserved, and taken out */
    uint64_t lost;       /* atomic; those for which there was no room */
    struct wire_tick ring[WIRE_TICKS];
};

struct wire_proc {
    uint32_t state; /* atomic */
    uint32_t pid, ppid;
    uint32_t copied_pid; /* the process of which fork has made it, with its memory; 0: none */
    uint64_t start_ns;
    char exe[1024];
    uint64_t next_seq;      /* atomic */
    uint64_t next_burst;    /* atomic */
    uint64_t template_used; /* atomic; bytes of the template area in use */
    uint32_t nmodules;      /* atomic, release */
    struct wire_counters count;
    uint32_t buf_state[WIRE_MAX_BUFFERS]; /* atomic */
    uint32_t buf_freed;                   /* futex: incremented when one was freed or should be looked for */
    uint32_t triggers_changed;            /* atomic; incremented after any change of trigger[] */
    uint64_t cookie;                      /* a random number */
    uint32_t timer_errno;                 /* why no timer could be created (WIRE_OFF_TIMER); 0: unknown */
    uint64_t mapped_at;                   /* address of this struct in the process */
    uint64_t stack_top;                   /* an address in the last pages of the main stack; 0: not known */
    struct wire_trigger trigger[WIRE_MAX_TRIGGERS];
    /* Threads that have given up their trigger and use their own timer; atomic; 0: free. */
    uint32_t timer_tid[WIRE_MAX_TRIGGERS];
    struct wire_desc desc[WIRE_MAX_BUFFERS];
    struct wire_stack stack[WIRE_MAX_BUFFERS]; /* of the burst that begins in the buffer of the same index */
    struct wire_module module[WIRE_MAX_MODULES];
    struct wire_native native[WIRE_MAX_NATIVE];
    struct wire_watching watching;
    /* All memory of the agent in the process. Entries are only added; `high` is written last. */
    uint32_t own_spans; /* atomic */
    struct wire_span own[WIRE_OWN_SPANS];
    /* Offset of block id's template in the template area; 0: none. Filled by the agent before a record with
     * that id can be handed over. An id stays with its template. */
    uint32_t block_offset[WIRE_MAX_BLOCKS];
    struct wire_heap heap;
    struct wire_ticks ticks;
};

/* Whether any of [low, high) is the agent's memory. */
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
    uint32_t mode;                                       /* atomic; enum wire_mode; may change, see below */
    uint64_t session_bytes;                              /* size of the memory file */
    uint32_t nslots;                                     /* <= WIRE_MAX_SLOTS */
    uint32_t nbuffers;                                   /* per slot, <= WIRE_MAX_BUFFERS */
    uint64_t slot_bytes, slot_offset;                    /* slot i starts at slot_offset + i * slot_bytes */
    uint64_t template_offset, template_bytes;            /* within a slot; multiples of the page */
    uint64_t buffer_offset, buffer_bytes, buffer_stride; /* stride = bytes + one guard page */
    uint64_t long_bytes; /* of a slot's last buffer, at least buffer_bytes: for long tails of bursts */
    uint64_t full_bytes; /* while every reference is recorded, only this last part of a buffer is used */
    uint64_t gap_ns;     /* mean CPU time between bursts of a thread */
    uint64_t seed;
    uint32_t follow; /* 0: children are not profiled */
    uint32_t heap;   /* nonzero: data objects are identified, and the agent reports allocations */
    uint32_t stacks; /* nonzero: call paths are recorded, and the agent copies stacks */
    uint32_t collector_pid;
    uint32_t doorbell;         /* futex: agents increment it when they hand something over */
    uint32_t collector_sleeps; /* nonzero: wake it through the doorbell */
    uint32_t stop;             /* nonzero: threads become native and stay native */
    uint32_t attached;         /* atomic: number of processes that ever attached */
    uint32_t refused_slots;    /* atomic: processes that found no free slot */
    uint32_t refused_pids;     /* atomic: processes in another PID namespace than the collector */
    uint32_t refused_roots;    /* atomic: programs executed where the agent's file cannot be opened */
    uint32_t perf;             /* enum wire_events: whether the collector serves wire_proc.trigger[] */
    uint32_t watch;            /* enum wire_watch_means */
    uint32_t line_bytes;       /* of a cache line */
    uint32_t clock;            /* enum wire_clock */
    uint32_t count_vector;     /* the vector register that references are counted in */
    uint32_t filters;          /* nonzero: full mode, and the agent filters lines */
    uint8_t filter[WIRE_FILTER_CLASSES]; /* by class: WIRE_FILTER_PASSES or 0 */
    uint64_t pid_namespace;              /* inode number of the collector's; 0: unknown */
    uint32_t slot_wanted;    /* atomic; nonzero: a process waits for a free slot; the collector clears it */
    uint64_t waited_vain_ns; /* atomic; when a process last waited for one in vain; 0: never */
    uint64_t page_ns;        /* CPU time of a page fault: the mean of WIRE_PAGES_TRIED */
    /* Atomic; bit i % 64 of element i / 64: slot i is taken, so a process that looks for a slot skips it, and
     * the collector looks at it. Set after a slot was claimed, before `attached` is incremented; cleared
     * before the slot's state is FREE. */
    uint64_t slots_taken[WIRE_MAX_SLOTS / 64];
    /* By slot: 1 + the slot of the process of which fork has made the one that has it (wire_proc.copied_pid);
     * 0: none. Set before its bit in slots_taken. */
    uint32_t copied_slot[WIRE_MAX_SLOTS];
    /* Nonzero: the run is recorded in full mode at first, then perhaps counted, and in bursts later. The
     * collector changes `mode`; a thread notices at its next full buffer, when its counting code stops for a
     * moment (COUNT_LAP_NS), or when it is triggered or attached. */
    uint32_t begins_full;
    uint32_t executions; /* atomic: announced so far; the last ones: */
    struct wire_execution execution[WIRE_MAX_EXECUTIONS];
};

/* Size of a slot's buffer i. */
static inline uint64_t wire_buffer_bytes(const struct wire_session *session, uint32_t i)
{
    return i + 1 == session->nbuffers ? session->long_bytes : session->buffer_bytes;
}

#endif
