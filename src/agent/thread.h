/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - the state of a followed thread, of all storeys together: it is one piece of memory, which the GS
 * base points to in translated code, so that each part finds its own without a lookup.
 */
#ifndef CACHEGRAM_AGENT_THREAD_H
#define CACHEGRAM_AGENT_THREAD_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>
#include "agent/memory.h"
#include "agent/tunables.h"
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

/* What a thread is doing. */
enum thread_state {
    THREAD_NATIVE = 0,
    THREAD_BURST,    /* in the code cache */
    THREAD_STEPPING, /* one instruction natively, with the trap flag, then back into the burst */
};

/* The clock: counting stretches. */
struct counting {
    int part; /* 0: warms up. 1: is timed. */
    int timer, has_timer;
    int timed;      /* the timer is set */
    int closed;     /* the page that blocks write to is closed: the thread stops at the next such one */
    int paused;     /* for a system call, behind which the stretch goes on */
    uint64_t total; /* references counted so far, but for those since it last stopped; of a repeated
                     * string instruction's operand, one */
    uint64_t string_refs_taken; /* of what the thread's `strings` say, in the process' counters already */
    /* At the last burst's end: what count_string_hits said, and `total`. */
    int64_t string_hits_before;
    uint64_t string_total_before;
    uint64_t part_total;                /* at the start of this part */
    uint64_t cpu_start_ns, part_cpu_ns; /* thread CPU time at the start of the stretch, of this part */
    uint64_t alarm_cpu_ns;              /* when the timer interrupted counting code; 0: it did not */
    int near;                           /* part 1 has lasted long enough. 2: and the burst begins here. */
    uint64_t near_left;                 /* references from the last mark to there */
    unsigned marks;                     /* of part 1, met so far; the last COUNT_MARKS of them: */
    struct count_mark {
        uint64_t total, in; /* the processor's clock there */
        uint64_t out_ns;    /* of the stretch till then, in none of the target's code */
        uint64_t faults;    /* pages that the kernel made for the thread */
    } mark[COUNT_MARKS];
    uint64_t part_ticks, ticks_per_us; /* of that clock: at the part's start; about so many */
    uint64_t away_ns;                  /* of the stretch, in C code that the target would not have run */
    uint64_t calls_ns, idle_ns;        /* of it, in the target's system calls; the time that these waited */
    uint64_t part_away_ns, part_calls_ns, part_idle_ns; /* these, at the part's start */
    uint64_t call_cpu_ns, call_ticks; /* when the call began that is being made; 0: none is */
    uint64_t part_ns;                 /* that the part had taken at the last mark */
    uint64_t warm_ns, warm_blocks;    /* of the part before, if a mark ended it */
    uint64_t faults;                  /* pages that the kernel had made when that began, or else this part */
    /* What the next burst takes along: references, and the CPU time that they took. */
    uint64_t refs, ns, blocks, turns, call_ns, paging_ns;
    uint64_t near_refs, near_ns; /* the last of them */
    /* Counting always: bursts are one in each stratum of so many references, the next at `burst_at` of total.
     */
    uint64_t gap_refs, burst_at, stratum_end;
    uint64_t per_us;    /* references in a microsecond, to plan with */
    uint64_t burst_gap; /* gap_refs with which the burst was planned that is recorded now */
};

/* How long a thread's system call lasts, whose memory is not closed meanwhile. */
enum watch_call {
    CALL_NONE,
    CALL_IN_HANDLER, /* until watch_call_ends */
    CALL_THROUGH,    /* until call_through (arch) has made it */
    CALL_OPEN_ENDED, /* until the thread is seen again, outside of any call */
};

/* A thread executes another program. */
struct executing {
    struct thread *thread;
    uint64_t ignored; /* signals that the kernel ignores meanwhile, as the target does */
    int forbids;      /* and so bursts are forbidden */
};

/* What watching knows of a thread (watch/watch.h). */
struct watch_thread {
    int holds;           /* pages stay open: a function of ours is in a system call for the target */
    uint64_t quiet_mask; /* what watch_quiet_end puts back */
    struct thread *next; /* in the list of all */
    enum watch_call call;
    int anything;         /* what the call may touch is not known */
    int changes;          /* it changes the mappings of that memory */
    struct memory memory; /* else this */
    uint64_t guard;       /* number of the last guard since whose beginning the thread was seen */
    int in_burst;         /* for the collector: its calls are noted in the code cache */
    int unfit;            /* it blocks SIGSEGV or SIGSYS */
    int let_through;      /* for a call that makes a thread or a process, at its own place */
    int exits;
    int let_go;                /* its calls are not diverted any more while the guard rests */
    unsigned calls_at_rest;    /* that were, in this rest */
    int is_starting, creating; /* in pthread_create: the new one is not there yet; calls of it in progress */
    uint64_t stack_bytes, stack_low, stack_high, fs_base;
    /* probe bursts */
    uint64_t probe_page, probe_ended_ns, probe_cpu_ns; /* CPU time: when it began */
    unsigned probe_words;
    /* CPU time: that was not its own; and when the burst in progress was begun */
    uint64_t overhead_ns, burst_cpu_ns, burst_overhead_ns;
    uint64_t others_ns;    /* own time of the other threads in the fault so far; 0: there are none */
    uint64_t fault_end_ns; /* when the last fault, or the short burst behind it, was over */
};

/* What generated code addresses, from the GS base: it knows the offsets (translator/x86_64/layout.h). */
struct generated_state {
    struct thread *self;
    uint64_t *cursor; /* where the next record goes; valid outside of blocks */
    uint64_t spill_a, spill_b;
    uint64_t scratch;
    uint64_t jump_to;
    uint64_t exit_id;
    void *dispatch;
    uint64_t dispatch_stack;
    uint64_t app_rsp;
    uint64_t indirect_target;
    uint64_t saved[8]; /* registers of the system call gate */
    uint64_t gate_resume;
    uint64_t app_mask;   /* the target's signal mask while in a burst */
    uint64_t burst_mask; /* what is blocked in a burst */
    /* For counting code (translator/x86_64/count.h): a register borrowed for one instruction, which bits of
     * an address are its index in tables, rcx before a string instruction, and while the target's vector is
     * back in its register, the counter; else that vector. */
    uint64_t spill_extra, table_mask;
    uint64_t elements[2], counter[2];
    uint64_t goal; /* at which the counter is at its mark; a constant */
    uint64_t vector[8] __attribute__((aligned(64)));
    /* Of repeated string instructions, by the size of their elements, 1, 2, 4 or 8 bytes: elements read or
     * written, and operands for which the counter has counted one; and rcx after such an instruction. */
    struct string_count {
        uint64_t elements, counted;
    } strings[4];
    uint64_t left[2];
};

/* Its tables, in pages of their own. */
struct generated_tables {
    uint64_t steps[512] __attribute__((aligned(4096))); /* two pages: see translator/x86_64/count.h */
    uint64_t stop[512] __attribute__((aligned(4096)));
    uint64_t targets[2u << TARGET_BITS] __attribute__((aligned(4096)));
    uint64_t jumps[1u << COUNT_TABLE_BITS], returns[1u << COUNT_TABLE_BITS];
};

/* translator: how the thread leaves translated code, and what its tables refer to. */
struct translation_state {
    uint64_t exit_pc; /* where native code goes on after the leave gate */
    uint64_t syscall_pc;
    int leave_end; /* enum wire_end, or LEAVE_STEP, LEAVE_RETURN */
    uint32_t leave_detail;
    uint32_t leave_insns; /* of the last record, how many instructions were executed (see wire_desc) */
    uint64_t abort_pc;    /* leave there instead: a restartable sequence was met; 0: no */
    uint64_t app_gs_base;
    uint64_t generation;     /* of the translations that the target table refers to */
    int inside;              /* see arch_inside */
    int left_sequence;       /* it came to a restartable sequence, and is where one is aborted */
    int return_trap_blocked; /* the context that rt_sigreturn leads to has SIGTRAP blocked */
    int buffer;              /* index of the record buffer, or -1 */
    uint64_t *buffer_end;    /* a store there is the end of the record buffer */
    uint32_t has_tables;     /* which of the shared tables it has */
    /* Counting code. */
    int counts;              /* the burst that the thread is in only counts */
    uint64_t counter_aim;    /* references from where the counter was last set to its mark */
    uint64_t counter_taken;  /* of what the counter says, in the clock's total already */
    uint64_t counted_blocks; /* arch_count_blocks, when it last stopped */
};

/* threads: when the thread is interrupted next. */
struct timing_state {
    uint64_t gap_ns; /* with which the next burst was planned */
    /* Thread CPU time at the last trigger that began a burst (0: it is armed again since), when the next
     * one was planned, and where the stratum begins that this is a random point of. */
    uint64_t entered_ns, planned_ns, stratum_ns;
    int is_reached;     /* that moment has come */
    int exactly;        /* it was asked for as such: no tick will do */
    int takes_any_tick; /* the next tick will do, however late it is */
    int is_first;       /* no burst of the thread was planned before */
    int was_counted;    /* the next burst is to be recorded: it was counted before it, if only in part */
    int timer, has_timer;
    struct wire_trigger *trigger; /* NULL: none, the timer must do */
    uint64_t cookie;              /* by which the collector knows that this is still the same program */
    uint64_t random;
    uint64_t retired_cpu_ns; /* its CPU time when all triggers were closed for good */
};

/* burst (native.c): whether the thread is native and should not be, why (enum wire_native_why), and its
 * times at that moment. */
struct native_state {
    int is_on;
    uint32_t why;
    uint64_t cpu_ns, user_ns;
    uint64_t known_cpu_ns; /* CPU time up to which it is accounted for */
    int creating_followed; /* calls of pthread_create and thrd_create in progress whose thread is followed */
    uint32_t refused;      /* enum wire_native_why: why it did not enter, when it last tried */
};

/* signals: what the target believes. */
struct signal_state {
    uint64_t hidden;                  /* signals that the target believes are blocked */
    uint64_t blocked_with_hidden;     /* those really blocked when it last changed its mask through libc */
    uint64_t mask_asked, mask_before; /* for the kernel, which must not be pointed to the stack */
    stack_t app_altstack;             /* what the target believes; with SS_AUTODISARM, while it is armed, */
    /* which the size of what the kernel has tells, as it puts that back at sigreturn. [0]: disarmed, [1]:
     * armed, or without that flag; and room for what it has. */
    stack_t kernel_altstack[2], altstack_now;
    /* Signals that are usually a fault's but were sent, and came in translated code, which cannot be left at
     * any instruction, or in a handler of ours: they are sent again when it is over. */
    uint64_t held_signals;
    siginfo_t held[6];
};

/* divert: syscall user dispatch. */
struct divert_state {
    int is_on; /* it is set up, with the next as its selector */
    char selector;
    int was_on; /* at some time */
};

/* burst. */
struct burst_state {
    uint64_t *buffer_start;
    uint64_t number;
    uint64_t pc, start_ns, cpu_start_ns, fs_base, blocks_before;
    int step_trap_blocked; /* the target blocks SIGTRAP, which stepping needs */
    int step_executes;     /* ... one that executes another program: nobody comes back, if it succeeds */
    int step_makes_thread; /* what is stepped over is a call that makes one, which inherits the trap flag */
    /* Full mode, counting always: it has left the code cache and is to be put back there before it executes
     * anything, after the next instruction if `left_because` is one that it cannot do there (main/signals.c).
     */
    int must_return;
    int left_because;           /* enum wire_end */
    unsigned consecutive_steps; /* instructions in a row that it was stepped over because they have no code */
    int is_probe;               /* the burst is one of watching's own */
    int trigger_pending;        /* a trigger came in such a burst */
    int enter_after_step;       /* a trigger found a signal waiting: that comes first */
};

/* interpose: the thread is made, or executes another program. */
struct start_state {
    void *(*routine)(void *);
    int (*c11)(void *);
    void *argument;
    struct executing executing;
};

/*
 * A followed thread. The GS base points here in translated code. Each part belongs to the storey that its
 * comment names: storeys below do not touch it.
 */
struct thread {
    struct generated_state generated;

    /* threads: the registry. */
    uint32_t tid;
    unsigned index; /* of this structure; threads that end pass it on */
    enum thread_state state;
    int ending; /* the thread is about to be forgotten: no more bursts */
    uint8_t *signal_stack;
    uint64_t *probe_buffer; /* MINI_WORDS, and a guard page */
    struct thread *next_free;

    struct translation_state translation;
    struct timing_state timing;
    struct native_state native;
    struct signal_state signals;
    struct divert_state divert;
    struct counting clock;
    struct burst_state burst;
    struct watch_thread watch;
    struct start_state start;

    struct generated_tables tables;
};

#pragma GCC visibility pop
#endif
