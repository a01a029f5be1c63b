/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - the state of a followed thread, one struct per storey. All of it is one piece of memory, which
 * the GS base points to in translated code, so that each part finds its own without a lookup.
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

/* The clock: counting stretches (clock/count.c). */
struct counting {
    int part; /* 0: warming; 1: timed */
    int timer, has_timer;
    int timed; /* the timer is set */
    /* The page that blocks write to is protected: the thread stops at the next such block. */
    int stop_requested;
    int paused; /* stopped for a system call; the stretch continues after it */
    /* References counted so far, without those since it last stopped; repeated string instructions counted
     * in steps. */
    uint64_t total;
    /* Elements in the thread's `strings` that are in the process's counters already. */
    uint64_t string_refs_taken;
    /* At the end of the last burst: the result of count_string_hits, and `total`. */
    int64_t string_hits_before;
    uint64_t string_total_before;
    uint64_t part_total;                /* `total` at the start of this part */
    uint64_t cpu_start_ns, part_cpu_ns; /* thread CPU time at the start of the stretch, and of this part */
    uint64_t alarm_cpu_ns;              /* when the timer interrupted counting code; 0: it did not */
    /* The references between the end of the timed part and the burst. APPROACH_OVER: it begins at the next
     * block. */
    enum { APPROACH_NOT_YET, APPROACH_RUNS, APPROACH_OVER } approach;
    uint64_t refs_to_burst; /* from the last mark */
    unsigned marks;         /* marks of the timed part so far; the last COUNT_MARKS of them: */
    struct count_mark {
        uint64_t total;
        uint64_t ticks;       /* the processor's clock */
        uint64_t excluded_ns; /* real time of the stretch until then that was not in the target's code */
        uint64_t faults;      /* page faults of the thread until then */
    } mark[COUNT_MARKS];
    /* The processor's clock at the part's start; and, about, its ticks in a microsecond. */
    uint64_t part_ticks, ticks_per_us;
    uint64_t agent_ns; /* time of the stretch in C code of the agent, and by which that slowed the target */
    /* CPU time of the stretch, and agent_ns, as far as they are in the process's counters already. */
    uint64_t reported_cpu_ns, reported_agent_ns;
    uint64_t calls_ns, idle_ns; /* CPU time of the stretch in system calls; real time that these waited */
    uint64_t part_agent_ns, part_calls_ns, part_idle_ns; /* the values at the part's start */
    uint64_t call_cpu_ns, call_ticks; /* when the current system call began; 0: there is none */
    uint64_t part_ns;                 /* time of the part at the last mark */
    uint64_t warm_ns, warm_blocks;    /* of the warming part, if a mark ended it */
    uint64_t faults; /* page faults at the start of the stretch; of the timed part, if an alarm began it */
    /* Stored with the next burst: references, and the CPU time that they took. */
    uint64_t refs, ns, blocks, turns, call_ns, paging_ns;
    uint64_t near_refs, near_ns; /* the last of these references */
    /* Every reference is counted: the stretch has no end, and one burst is in each stratum of gap_refs
     * references, the next at `burst_at` of `total`. */
    int endless;
    uint64_t gap_refs, burst_at, stratum_end;
    int without_burst;     /* the stratum has none, and ends at `burst_at` */
    uint64_t counted_ns;   /* CPU time of earlier stretches, without the agent's own code */
    uint64_t per_us;       /* references per microsecond, to plan with */
    uint64_t skipped_gaps; /* of strata whose burst found no buffer: the next one represents them, too */
    /* Until the next group of bursts, one of which has a long tail; until that one. */
    uint64_t bursts_to_draw, bursts_to_long;
    uint64_t burst_gap; /* gap_refs of the burst that is being recorded, and those; 0: by CPU time */
};

/* How long a thread's system call lasts, during which its memory must not be protected. */
enum watch_call {
    CALL_NONE,
    CALL_IN_HANDLER, /* until watch_call_ends */
    CALL_THROUGH,    /* until it has returned to the code of call_through */
    CALL_OPEN_ENDED, /* until the thread is known to be outside of any call */
};

/* A thread is about to execute another program. */
struct executing {
    struct thread *thread;
    uint64_t ignored; /* signals that the kernel ignores meanwhile, as the target does */
    uint64_t blocked; /* hidden signals that the kernel blocks meanwhile */
    int forbids;      /* it has forbidden bursts */
};

/* Watching (watch/watch.h). */
struct watch_thread {
    /* Nonzero: pages stay unprotected, since an interposed function makes a system call for the target. */
    int hold_depth;
    uint64_t saved_mask; /* the mask that watch_unblock_signals restores */
    struct thread *next; /* list of all threads */
    enum watch_call call;
    int memory_unknown;   /* what the call may access is not known */
    int changes_mappings; /* the call changes the mappings of that memory */
    struct memory memory; /* else it may access this */
    uint64_t epoch;       /* the last tracker_epoch in which the thread was outside of any untracked call */
    int in_burst; /* in a recorded burst or the stretch before it: calls are noted in the code cache */
    int blocks_fault_signals; /* it blocks SIGSEGV or SIGSYS */
    int makes_undiverted;     /* it makes a call itself, which creates a thread or a process */
    int exits;
    int not_diverted;            /* its calls are not diverted during this pause of the tracker */
    unsigned calls_in_pause;     /* diverted calls in this pause */
    int being_created, creating; /* being created by pthread_create; calls of pthread_create in progress */
    uint64_t stack_bytes, stack_low, stack_high, fs_base;
    /* probe bursts */
    uint64_t probe_page, probe_ended_ns, probe_cpu_ns; /* thread CPU time when it began */
    uint64_t retried_at, retried_ns; /* last fault whose access was tried again: address, CPU time */
    unsigned probe_words;
    /* CPU time that was not the thread's own, in total; at the start of the current burst: thread CPU time,
     * and this total */
    uint64_t overhead_ns, burst_cpu_ns, burst_overhead_ns;
    /* Program CPU time of the other threads, last read during this fault; 0: there are none. */
    uint64_t others_ns;
    uint64_t fault_end_ns; /* when the last fault, or the probe burst after it, ended */
};

/* The members that generated code addresses, relative to the GS base; translator/x86_64/layout.h has the
 * offsets. */
struct generated_state {
    struct thread *self;
    uint64_t *cursor; /* where the next record is written; valid outside of blocks */
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
    uint64_t burst_mask; /* the mask in a burst */
    /* For counting code (translator/x86_64/count.h): a register that is borrowed for one instruction; rcx
     * before a string instruction. While the target's vector is in its register: the counter; else `vector`
     * is the target's. */
    uint64_t spill_extra;
    uint64_t elements[2] __attribute__((aligned(16))), counter[2]; /* the target may have set the AC flag */
    uint64_t goal; /* value of the counter at its mark; a constant */
    uint64_t vector[8] __attribute__((aligned(64)));
    /* For repeated string instructions, by the size of their elements (1, 2, 4 or 8 bytes): elements read
     * or written, and operands, for each of which the counter has counted one. `left`: rcx after such an
     * instruction. */
    struct string_count {
        uint64_t elements, counted;
    } strings[4];
    uint64_t left[2];
    /* For blocks that filter lines (translator/x86_64/filter.h): the FS base, a copy of wire_session.filter,
     * and a source of 0 for crc32. */
    uint64_t fs_base;
    uint8_t filter[WIRE_FILTER_CLASSES];
    uint64_t zero;
};

/* Tables of generated code, in pages of their own. */
struct generated_tables {
    uint64_t steps[512] __attribute__((aligned(4096))); /* two pages, see translator/x86_64/count.h */
    uint64_t stop[512] __attribute__((aligned(4096)));
    uint64_t targets[2u << TARGET_BITS] __attribute__((aligned(4096)));
    uint64_t jumps[1u << COUNT_TABLE_BITS], returns[1u << COUNT_TABLE_BITS];
};

/* translator: how the thread leaves translated code, and what its tables refer to. */
struct translation_state {
    uint64_t exit_pc; /* where the thread continues natively after the leave gate */
    uint64_t syscall_pc;
    int leave_end; /* enum wire_end, or LEAVE_STEP, LEAVE_RETURN */
    uint32_t leave_detail;
    uint32_t leave_insns; /* instructions of the last record that were executed (see wire_desc) */
    uint64_t abort_pc;    /* continue there instead: a restartable sequence was reached; 0: no */
    uint64_t app_gs_base;
    uint64_t generation;     /* generation of the translations that the target table refers to */
    int inside;              /* see arch_mark_inside */
    int left_sequence;       /* it reached a restartable sequence, and continues at its abort address */
    int return_trap_blocked; /* the context that rt_sigreturn restores has SIGTRAP blocked */
    int return_triggers;     /* a pending trigger, not the trap flag, interrupts the thread in that context */
    int buffer;              /* index of the record buffer, or -1 */
    uint64_t *buffer_end;    /* a store there marks the end of the record buffer */
    uint32_t has_tables;     /* which generation of the shared tables it has mapped */
    /* Counting code. */
    int counts;              /* the thread is in a counting stretch */
    uint64_t counter_aim;    /* references from where the counter was last set to its mark */
    uint64_t counter_taken;  /* the part of the counter that the clock has added to its total */
    uint64_t counted_blocks; /* result of arch_count_blocks when it last stopped */
};

/* threads: when the thread is triggered next. */
struct timing_state {
    uint64_t gap_ns; /* the mean gap when the next burst was planned */
    /* Thread CPU time at the last trigger that began a burst (0: the trigger was armed since); for which
     * the next burst is planned; and at the start of that burst's stratum. */
    uint64_t entered_ns, planned_ns, stratum_ns;
    uint64_t translated_ns; /* CPU time in translated code, up to the last plan */
    int is_reached;         /* that moment has been reached */
    int exact;              /* the event was set to that very moment, so it does not tick */
    int takes_any_tick;     /* any tick will do, however late */
    int is_first;           /* no burst of the thread was planned before */
    /* The next burst is recorded without counting before it, since that was done, if only in part. */
    int was_counted;
    int timer, has_timer;
    int timer_failed; /* none could be created: not so of a thread whose timer was deleted as it ends */
    struct wire_trigger *trigger; /* NULL: the timer is used instead */
    uint32_t *timer_tid;          /* then its entry in the list of such threads; NULL: it has none */
    uint64_t cookie;              /* by which the collector recognises that this is still the same program */
    uint64_t random;
    uint64_t retired_cpu_ns; /* its CPU time when threads_await_delivery began */
};

/* threads (phases.c): phases of the code, and in each the plan of its next burst. */
struct phase_state {
    uint8_t window[PHASE_PLACES]; /* samples of code, by place */
    uint32_t in_window;
    uint32_t found, current;
    struct phase {
        uint16_t count[PHASE_PLACES]; /* samples of its windows */
        uint32_t samples, chance;     /* their sum, and the distance of a window that chance explains */
        uint64_t left_ns;             /* CPU time when it was last left */
        uint64_t outside_ns;          /* of that and before, in other phases */
        uint64_t gap_ns, planned_ns, stratum_ns; /* as in timing_state, when it was left */
        int takes_any_tick;
    } phase[PHASE_MOST];
};

/* burst (native.c): whether the thread is native although it should be in translated code; why (enum
 * wire_native_why); and its times when that began. */
struct native_state {
    int is_on;
    uint32_t why;
    uint64_t cpu_ns, user_ns;
    uint64_t known_cpu_ns; /* CPU time that is accounted for */
    /* pthread_create or thrd_create calls in progress whose new thread will be followed. */
    int creating_followed;
    uint32_t refused; /* why it did not enter a burst when it last tried (enum wire_native_why) */
    uint32_t waited;  /* for the end of so many-th time that bursts were forbidden, in vain; 0: never */
};

/* Signals that the target believes to be blocked, but the kernel does not block; and those that the kernel
 * blocked when that was noted. */
struct hidden_signals {
    uint64_t hidden, blocked_with;
};
#define HIDDEN_LEVELS 8 /* handlers that interrupt each other, the program included */

/* signals: the state that the target has requested. */
struct signal_state {
    struct hidden_signals masks[HIDDEN_LEVELS]; /* [0]: of the program; above it, of handlers */
    unsigned level;                             /* the last one */
    uint64_t mask_asked, mask_before; /* arguments of system calls, which must not be on the stack */
    stack_t app_altstack;             /* the target's, as it has set it */
    /* What is installed in the kernel. With SS_AUTODISARM the two sizes differ, and sigreturn restores the
     * one that was in force: so the kernel's size shows whether the target's stack is armed. [0]: disarmed;
     * [1]: armed, or without that flag. altstack_now: room for the kernel's answer. */
    stack_t kernel_altstack[2], altstack_now;
    /* Signals of faults that somebody sent, and that arrived in translated code, which cannot be left at
     * every instruction, or in one of the agent's handlers. They are sent again when that has ended. */
    uint64_t held_signals;
    siginfo_t held[6];
};

/* divert: syscall user dispatch. */
struct divert_state {
    int is_on; /* it is enabled, with `selector` */
    char selector;
    int was_on; /* it was enabled at some time */
};

/* burst. */
struct burst_state {
    int wants_long_tail; /* its tail ends with its buffer, which may be the long one */
    uint64_t *buffer_start;
    uint64_t number;
    uint64_t pc, start_ns, cpu_start_ns, fs_base, blocks_before, heap_start, stack_words;
    int step_trap_blocked; /* the target blocks SIGTRAP, which stepping needs unblocked */
    int step_executes; /* the stepped call executes a program: the thread does not come back if it succeeds */
    int step_makes_thread; /* the stepped call creates a thread, which inherits the trap flag */
    /* Full mode, and while every reference is counted: it has left the code cache and must return there
     * before it executes anything, or after the next instruction, if `left_because` is one that is not
     * executed there (main/burst-events.c). */
    int must_return;
    int left_because; /* enum wire_end */
    unsigned steps;   /* in this burst */
    /* Instructions in a row that were stepped because they cannot be translated. */
    unsigned consecutive_steps;
    int is_probe; /* the burst is a probe burst */
    int full;     /* the burst began in full mode */
    /* The thread was to stay in the code cache when it last looked. If that is over, its first burst is still
     * to be planned (burst_plan_first). */
    int always_translated;
    int trigger_pending; /* a trigger arrived in a probe burst */
    /* A burst is to be entered after the next step, since a signal had to be delivered first. */
    int enter_after_step;
};

/* interpose: arguments of pthread_create or thrd_create; executing a program. */
struct start_state {
    void *(*routine)(void *);
    int (*c11)(void *);
    void *argument;
    struct executing executing;
    int forbids_bursts; /* it has forbidden them, or is about to, or has just allowed them again */
};

/* A followed thread. The GS base points to it in translated code. Each member belongs to the storey that
 * its comment names; storeys below do not access it. */
struct thread {
    struct generated_state generated;

    /* threads: the registry. */
    uint32_t tid;
    unsigned index; /* number of this structure, which is reused after the thread */
    enum thread_state state;
    int ending; /* the thread is ending: it enters no more bursts */
    uint8_t *signal_stack;
    uint64_t *probe_buffer; /* PROBE_WORDS words, then a guard page */
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
    struct phase_state phases; /* at the end: offsets of the above are known to assembly */
};

#pragma GCC visibility pop
#endif
