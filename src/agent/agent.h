/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - the parts of the agent and what they say to each other.
 *
 * Rules (docs/agent-rules.md): never exit, abort or print; no libc call once the target runs;
 * export nothing but interposed functions; in trouble leave the burst, restore the exact state, go
 * native, and count it.
 *
 *   init.c       constructor, session, process slot, fork
 *   surroundings.c  what forbids to profile a process
 *   children.c   processes made behind our back
 *   threads.c    which threads there are, their timers and signal stacks
 *   signals.c    handlers, delivery to the target
 *   dispositions.c  what the target has asked for its signals; masks.c: masks and alternate stacks
 *   old-signals.c  sigset and sigignore
 *   burst.c      entering, leaving, stepping, buffers
 *   count.c      stretches in which references are only counted: the clock
 *   count-near.c what the references right before a burst took
 *   native.c     what ran natively where everything was to be recorded
 *   syscalls.c   system calls made from inside a burst
 *   watch.c      pages closed to see the next touch of a line (watch.h names its parts)
 *   touched.c    which watched lines a short burst touched
 *   own.c        the agent's own memory (own.h)
 *   calls.c      system calls made while pages are closed; call-memory.c: what memory they touch
 *   regions.c    which code may be translated
 *   rseq.c       restartable sequences, which may not
 *   translator/<isa>/  the translator
 */
#ifndef CACHEGRAM_AGENT_H
#define CACHEGRAM_AGENT_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include "agent/divert/divert.h"
#include "agent/intercept/calls.h"
#include "agent/signals/frame.h"
#include "agent/sys/context.h"
#include "agent/translator/translator.h"
#include "agent/tunables.h"
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

/* What a thread is doing. */
enum thread_state {
    THREAD_NATIVE = 0,
    THREAD_BURST,    /* in the code cache */
    THREAD_STEPPING, /* one instruction natively, with the trap flag, then back into the burst */
};

/* Ways to leave the code cache that do not end the burst. */
enum {
    LEAVE_STEP = -1,   /* one instruction natively */
    LEAVE_RETURN = -2, /* rt_sigreturn, into a context that has the trap flag set */
};

/* count.c */
struct counting {
    int on;         /* the burst that the thread is in only counts */
    int part;       /* 0: warms up. 1: is timed. */
    int done;       /* the next burst is to be recorded: it was counted before it, if only in part */
    int timed;      /* the timer is set */
    int closed;     /* the page that blocks write to is closed: the thread stops at the next such one */
    int paused;     /* for a system call, behind which the stretch goes on */
    uint64_t total; /* references counted so far, but for those since it last stopped; of a repeated
                     * string instruction's operand, one */
    uint64_t taken; /* of what the counter says, in `total` already */
    uint64_t string_refs_taken; /* of what the thread's `strings` say, in the process' counters already */
    /* At the last burst's end: what count_string_hits said, and `total`. */
    int64_t string_hits_before;
    uint64_t string_total_before;
    uint64_t part_total;                /* at the start of this part */
    uint64_t cpu_start_ns, part_cpu_ns; /* thread CPU time at the start of the stretch, of this part */
    uint64_t alarm_cpu_ns;              /* when the timer interrupted counting code; 0: it did not */
    uint64_t aim;                       /* references from where the counter was last set to its mark */
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
    uint64_t part_blocks;             /* arch_count_blocks, when it last stopped */
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
    CALL_HERE,       /* until watch_call_ends */
    CALL_THROUGH,    /* until call_through (arch) has made it */
    CALL_OPEN_ENDED, /* until the thread is seen again, outside of any call */
};

/* exec.c: a thread executes another program. */
struct executing {
    struct thread *thread;
    uint64_t ignored; /* signals that the kernel ignores meanwhile, as the target does */
    int forbids;      /* and so bursts are forbidden */
};

/* What watching knows of a thread (watch.h). */
struct watch_thread {
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
    /* short bursts */
    uint64_t *mini_buffer;
    uint64_t mini_page, mini_ended_ns;
    unsigned mini_words;
    /* CPU time: that was not its own; and when the burst in progress was begun */
    uint64_t overhead_ns, burst_cpu_ns, burst_overhead_ns;
    uint64_t others_ns;    /* own time of the other threads in the fault so far; 0: there are none */
    uint64_t fault_end_ns; /* when the last fault, or the short burst behind it, was over */
};

/*
 * A followed thread. The GS base points here during a burst; generated code knows the offsets of the
 * first members (translator/x86_64/layout.h checks them).
 */
struct thread {
    struct thread *self;
    uint64_t *cursor; /* where the next record goes; valid outside blocks */
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
     * written, and operands for which the counter has counted one; and rcx behind such an instruction. */
    struct string_count {
        uint64_t elements, counted;
    } strings[4];
    uint64_t left[2];

    enum thread_state state;
    uint32_t tid;
    unsigned index;   /* of this structure; threads that end pass it on */
    uint64_t exit_pc; /* where native code goes on after the leave gate */
    uint64_t syscall_pc;
    int leave_end; /* enum wire_end, or LEAVE_STEP, LEAVE_RETURN */
    uint32_t leave_detail;
    uint32_t leave_insns; /* of the last record, how many instructions were executed (see wire_desc) */
    uint64_t abort_pc;    /* leave there instead: a restartable sequence was met; 0: no */
    uint64_t app_gs_base;
    int step_trap_blocked; /* the target blocks SIGTRAP, which stepping needs */
    int step_executes;     /* ... one that executes another program: nobody comes back, if it succeeds */
    int step_makes_thread; /* what is stepped over is a call that makes one, which inherits the trap flag */

    int buffer; /* index, or -1 */
    uint64_t *buffer_start, *buffer_end;
    uint64_t burst;
    uint64_t gap_ns; /* with which the next burst was planned */
    /* Thread CPU time at the last trigger that began a burst (0: it is armed again since), when the next
     * one was planned, and where the stratum begins that this is a random point of. */
    uint64_t entered_ns, planned_ns, stratum_ns;
    int met;     /* that moment has come */
    int exactly; /* it was asked for as such: no tick will do */
    int late;    /* the next tick will do, however late it is */
    uint64_t burst_pc, start_ns, cpu_start_ns, fs_base, blocks_before;
    uint64_t generation; /* of the translations that the target table refers to */
    int inside;          /* see arch_inside */
    /* Full mode, counting always: it has left the code cache and is to be put back there before it executes
     * anything, behind the next instruction if `left_for` is one that it cannot do there (signals.c). */
    int must_return;
    int left_for;         /* enum wire_end */
    int left_sequence;    /* it came to a restartable sequence, and is where one is aborted */
    unsigned steps_alone; /* instructions in a row that it was stepped over because they have no code */
    uint32_t refused;     /* enum wire_native_why: why it did not enter, when it last tried */
    int makes_known;      /* calls of pthread_create and thrd_create in progress whose thread is followed */
    int return_trap_blocked; /* the context that rt_sigreturn leads to has SIGTRAP blocked */
    /* native.c: whether it is native and should not be, why (enum wire_native_why), and its times at that
     * moment; CPU time up to which it is accounted for. */
    int is_native;
    uint32_t native_why;
    uint64_t native_cpu_ns, native_user_ns, known_cpu_ns;

    int mini;          /* the burst is one of watch.c's own */
    int trigger_waits; /* a trigger came in such a burst */
    int watch_hold;    /* pages stay open: a function of ours is in a system call for the target */
    int dispatching;   /* syscall user dispatch is set up, with the next as its selector */
    char selector;
    int has_dispatched;               /* it was set up at some time */
    uint64_t quiet_mask;              /* what watch_quiet_end puts back */
    uint64_t mask_asked, mask_before; /* for the kernel, which must not be pointed to the stack */
    uint64_t mini_cpu_ns;             /* when it began */
    int enter_after_step;             /* a trigger found a signal waiting: that comes first */
    int timer;
    int has_timer, fresh;
    uint64_t retired_cpu_ns;      /* its CPU time when all triggers were closed for good */
    int ending;                   /* the thread is about to be forgotten: no more bursts */
    struct wire_trigger *trigger; /* NULL: none, the timer must do */
    uint64_t cookie;              /* by which the collector knows that this is still the same program */
    uint64_t hidden;              /* signals that the target believes are blocked */
    uint64_t hidden_beside;       /* those blocked in truth when it last changed its mask through libc */
    uint64_t random;
    void *(*start_routine)(void *);
    int (*start_c11)(void *);
    void *start_argument;
    struct thread *next_free;
    stack_t app_altstack; /* what the target believes; with SS_AUTODISARM, while it is armed, */
    /* which the size of what the kernel has tells, as it puts that back at sigreturn. [0]: disarmed, [1]:
     * armed, or without that flag; and room for what it has. */
    stack_t kernel_altstack[2], altstack_now;
    uint8_t *signal_stack;

    struct executing executing;
    struct counting count;
    int count_timer, has_count_timer;
    uint32_t tables; /* which of them it has */
    struct watch_thread watch;

    uint64_t steps[512] __attribute__((aligned(4096))); /* two pages: see translator/x86_64/count.h */
    uint64_t stop[512] __attribute__((aligned(4096)));
    uint64_t targets[2u << TARGET_BITS] __attribute__((aligned(4096)));
    uint64_t jumps[1u << COUNT_TABLE_BITS], returns[1u << COUNT_TABLE_BITS];
};

/* init.c */
/* Native for good, and the target's signals the kernel's business again. */
void go_for_good(enum wire_disabled why);
/* What the process executes from now on inherits a filter: it goes without the agent. */
void agent_filter_is_inherited(void);

/* surroundings.c */
int surroundings_foreign(void); /* process numbers mean others here than to the collector */
int surroundings_go(void); /* a Go runtime is there; asked again, it looks only if there are new modules */
enum wire_disabled surroundings_forbid(void); /* WIRE_OFF_NOT: nothing does */

/* children.c */
void children_init(void);
void child_is_followed(void); /* from now on it is what process_id says */
void child_is_left(void);     /* it is not to be followed */
void child_settles(void); /* if such a one has memory of its own: child_is_left. Not in handlers of ours. */
void fork_made(void);     /* in a child that libc made */

/* threads.c */
int threads_init(void);
struct thread *thread_self(void);                         /* NULL: not followed */
struct thread *thread_of_stack(const void *signal_stack); /* whose that is, or NULL */
struct thread *thread_new(void);
int thread_attach(struct thread *t); /* called by the thread itself */
void thread_detach(struct thread *t);
void thread_leaves_burst(const struct thread *t); /* called by itself; it can begin the next one at once */
void thread_forget(struct thread *t);             /* it is no more: its structure can be another's */
void thread_arm(struct thread *t);
/* Whether what the collector's event (event nonzero), or the thread's timer, interrupts is the moment that
 * was planned. The event comes again and again: by ticks, of which the one next to that moment is; or until
 * it is set anew, which a busy collector does late, and what it interrupts meanwhile would follow from how
 * long the last burst took to look at. Neither is, if the budget has put the moment off since. */
int thread_is_due(struct thread *t, int event);
/* What was interrupted is not what bursts are for: the next one as if its time had been met. */
void thread_arm_again(struct thread *t);
#define THREAD_TRIGGERED 1             /* si_errno of: */
void thread_trigger(struct thread *t); /* as if its timer fired, once SIGTRAP is not blocked */
/* Right before it executes another program, for which it may have to wait; and should that have failed. NULL:
 * not followed. */
void thread_leaves(struct thread *t);
void thread_stays(struct thread *t);
void threads_forked(void);                         /* forget all but the caller */
uint64_t thread_cpu_ns(uint32_t tid);              /* UINT64_MAX: it is gone */
void threads_each(void (*visit)(struct thread *)); /* all that are followed; some are about to end */
/* The followed threads, one after the other: *t is the next from `at` on, at first 0; returns where to go on,
 * 0: there are no more. */
uint32_t threads_next(uint32_t at, struct thread **t);
int threads_registry_init(void);       /* 0, or -1: no memory */
int thread_register(struct thread *t); /* under its id. 0, or -1: there is no room */
void thread_free(struct thread *t);    /* one that was never registered, or is no more */
void threads_forget_all(void);         /* in a forked child */
/* Its timer and its place with the collector; and giving that back. */
void trigger_create_timer(struct thread *t);
void trigger_claim(struct thread *t);
void trigger_release(struct thread *t);
int triggers_are_closed(
    void); /* the collector says so, or it is gone and its events with it; waits for that */
/* The first thing that a new thread does: it is attached, unless the agent is off. Returns its argument. */
struct thread *thread_begins(void *thread);
uint32_t threads_made(void); /* structures of threads: as many as there ever were at a time */
/* No thread is interrupted any more. Nonzero: nor is one of the others in a burst, or in a call that ends in
 * a fault of ours. agent_off is set. *silent: 0 if nobody can say that none is interrupted, the collector
 * being stopped. */
int threads_retire(int *silent);
/* Once bursts are forbidden, and nothing is watched: nonzero if no thread is in one, or in a call that ends
 * in a fault of ours, not at once, but soon. */
int threads_are_native(void);
struct thread *thread_own(void); /* as thread_self, without a system call, and wrong in a vfork child */

/* exec.c */
void exec_init(void);
/* From now on the agent is not to come to life in what the process executes; or in what this vfork child
 * does. */
void exec_silences(int vfork_child);
int exec_is_silent(void);
/* An environment without the session; room for it: as many as exec_silent_count says. */
char *const *exec_silent(char *const *envp, char **room, size_t count);
size_t exec_silent_count(char *const *envp); /* with the NULL at its end; 0: there is none that can be read */
/* For the caller, right before it executes another program, for which thread_leaves waits; and if that fails.
 * Of a followed thread, what was done is kept in its structure. */
/* Replaces envp, on the caller's stack, where what is executed is not to be profiled. */
#define EXEC_SILENCE(envp)                                             \
    do {                                                               \
        size_t count = exec_is_silent() ? exec_silent_count(envp) : 0; \
        if (count) {                                                   \
            char **room = alloca(count * sizeof *room);                \
            (envp) = exec_silent((envp), room, count);                 \
        }                                                              \
    } while (0)
void exec_tells(const char *path); /* what is about to be executed; a pointer of the target's */
void exec_begins(struct executing *e);
void exec_failed(struct executing *e);
void exec_undone(struct thread *t); /* libc's function that would execute it may be left by a jump */

/* signals.c */
void signals_dispatch_init(void); /* main/signals.c */
int signals_init(void);
/* From now on the target's are the kernel's, and t's alternate stack (NULL: not followed). Not silent:
 * triggers may still come, and a SIGTRAP that would end the program is ignored. */
void signals_hand_back(struct thread *t, int silent);
/* Of the signals that are always ours in the kernel, those that the target ignores; and have the kernel
 * ignore them, too, as a program that is executed is to inherit it, or not any more. */
uint64_t signals_ignored(void);
void signals_ignore(uint64_t which, int really);
int signals_handed_back(void);
void signals_give_back(void); /* only that, of a vfork child, without taking note */
int signals_ours(void);       /* nonzero: our fault handlers are still in place */
/* libc's own two, by which it cancels threads and has them change their user. Their handlers are installed by
 * system calls that nobody interposes; but they must not see a context inside of a call of ours. */
void signals_take_libcs(void);
#define SIGNAL_BIT(s) (1ull << ((s)-1))
#define ALTSTACK_AUTODISARM (1u << 31) /* SS_AUTODISARM, which older headers do not name */
#define FAULT_SIGNALS                                                                     \
    (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGFPE) | \
     SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS))
/*
 * Some signals are never really blocked. Which of them the target believes are, where `mask` is what is
 * blocked; of a mask that it asks for, the part that is really to be set; the rest is noted once that is done
 * (before: what was blocked).
 */
uint64_t signals_hidden(const struct thread *t, uint64_t mask);
uint64_t signals_real(int how, uint64_t mask);
void signals_note(struct thread *t, int how, uint64_t mask, uint64_t before);
uint64_t signals_change(int how, uint64_t before, uint64_t mask); /* what sigprocmask makes of it */
/*
 * System calls of the target's on what is kept for it, with the kernel's results and effects; args are the
 * call's. rt_sigaction; rt_sigprocmask of a followed thread, natively or in translated code; the same where
 * the mask is kept at *mask (hides: some signals are not to be blocked in truth).
 */
long signals_action_call(const uint64_t *args);
long signals_mask_call(struct thread *t, const uint64_t *args);
long signals_mask_in(struct thread *t, uint64_t *mask, int hides, const uint64_t *args);
/* sigaltstack; sp: the caller's. 0: the kernel is to be asked, it has the target's
 * own. */
int signals_altstack_call(struct thread *t, uint64_t sp, const uint64_t *args, long *result);

/* burst.c */
int burst_enter(struct thread *t, ucontext_t *uc);    /* nonzero: entered */
int burst_must_wait(const ucontext_t *uc);            /* a signal waits that the target must see first */
void burst_reenter(struct thread *t, ucontext_t *uc); /* after a step */
/* The context is already the target's own; ends the burst and hands the buffer over. */
void burst_end(struct thread *t, enum wire_end end, uint32_t detail, uint64_t *end_of_words,
               uint32_t last_insns);
/* The thread runs natively, but had no end of its burst: libc jumped out of a call that it made in it. */
void burst_left(struct thread *t);
void burst_attached(void);                          /* the process has a slot of its own, a new one */
void burst_leave(struct thread *t, ucontext_t *uc); /* at the leave gate */
/* The context is the target's: runs one instruction natively, then burst_reenter follows. */
void burst_step(struct thread *t, ucontext_t *uc);
void burst_forked(void);
void burst_forbid(int more); /* none begins until it was called with -1 as often as with 1 */
int burst_forbidden(void);
int burst_none(void); /* no thread is in one or steps; none will if that is forbidden */
/* For who has the trap flag outside of a burst. 0: not now, bursts are forbidden. */
int burst_await_step(void);
void burst_native_stepped(void); /* it came, or will not come any more */
/* A step is over or given up: whether a thread was made that steps, too, is known. */
void burst_step_settles(struct thread *t, const ucontext_t *uc);
/* Full mode: hand over and take another buffer. 0, or negative when none can be had. */
int burst_next_buffer(struct thread *t, uint64_t *end_of_words);
/* Full mode: hands over what threads have recorded that wait in system calls. They take another buffer when
 * they come back. */
void burst_hand_over_waiting(void);
/* Likewise, as the process is about to end, or to be another program: also what others lose is told. */
void burst_process_ends(void);
void burst_forget(struct thread *t); /* give the buffer back unread */
/* A burst of watch.c's own into that memory, behind which lies a page that cannot be written; its end calls
 * watch_mini_end. Nonzero: entered. */
int burst_enter_mini(struct thread *t, ucontext_t *uc, uint64_t *words, uint64_t *end);
int burst_buffers_scarce(void);

/* A thread that counts has stopped where the clock asked it to: it goes on, or its recorded burst begins. */
void burst_counting_stopped(struct thread *t, ucontext_t *uc);

/* What bursts need of the parts above them. */
struct burst_ops {
    void (*begins)(struct thread *t); /* from here on, CPU time is not the target's own */
    void (*entered)(
        struct thread *t); /* it is about to go into translated code, for a burst of the collector's */
    void (*left)(struct thread *t);                                /* it is native again */
    void (*describe)(const struct thread *t, struct wire_desc *d); /* fills own_ns and inside_refs */
    /* Before the buffer is handed over: the number of a question to hand over with it, 0: none; and after:
     * waits for the answer. */
    uint32_t (*asks)(struct thread *t, uint64_t burst);
    void (*ask)(struct thread *t, uint32_t asks);
    /* One that burst_enter_mini began is over. */
    void (*probe_ended)(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns);
};
void burst_init(const struct burst_ops *ops);

/* count.c */
void count_init(void);
int count_always(void); /* the thread counts whenever it is not in a recorded burst */
int count_wanted(struct thread *t, const ucontext_t *uc);
void count_begin(struct thread *t);
void count_take(struct thread *t, uint64_t counted); /* what the counter says since arch_count_in */
/* So far: elements of repeated string instructions that lie in the line of the element before. */
int64_t count_string_hits(const struct thread *t);
int count_is_alarm(const siginfo_t *info);
void count_alarm(struct thread *t, const ucontext_t *uc); /* the stretch's timer has fired */
/* Before what no alarm must come in, a system call that may wait or a step: the thread stops behind it. */
void count_pause(struct thread *t);
/* The thread has stopped at the page that was closed; what is to be done. */
enum count_verdict {
    COUNT_GO_ON,  /* nothing: the stretch goes on */
    COUNT_SIGNAL, /* a signal waits that the target must see first */
    COUNT_RECORD, /* the recorded burst begins here */
};
enum count_verdict count_stop(struct thread *t, ucontext_t *uc);
/* Counting always: there was no buffer for the burst of that verdict. */
void count_not_recorded(struct thread *t, ucontext_t *uc);
void count_marked(struct thread *t); /* the counter is at its mark */
void count_call(struct thread *t);   /* a system call of the target's begins in counting code */
void count_called(struct thread *t); /* ... and is over */
void count_end(struct thread *t);    /* for whatever reason; the context is the target's */
void count_forget(struct thread *t); /* no burst follows that could take the count along */
void count_thread_gone(struct thread *t);
/* count-near.c: time of the processor's clock in nanoseconds; how many pages the kernel has made for the
 * thread, or found, each of which is some microseconds of its CPU time; t->count.near_refs and near_ns, from
 * the marks. */
uint64_t count_ns_of(const struct counting *c, uint64_t ticks);
uint64_t count_page_faults(void);
void count_tell_near(struct thread *t);
uint64_t count_paging_ns(const struct thread *t);
/* Around C code that only we need. */
uint64_t count_away(const struct thread *t);
void count_back(struct thread *t, uint64_t away);

/* native.c, for threads that are to stay in the code cache: it has handed a buffer over; a handler returns to
 * its code; it is in the code cache again, or ends. */
void native_published(struct thread *t);
void native_seen(struct thread *t);
void native_over(struct thread *t);

/* Made by the agent itself, with that argument: leave the burst. It is made again natively behind its end, so
 * it is one that the kernel knows, and that the agent makes anyway: filters kill for numbers they have not
 * heard of. */
#define SYSCALL_LEAVE SYS_gettid
#define LEAVE_MARK 0x6361636865677261
#define CHANGE_MARK 0x6361636865677262 /* likewise: arch_code_changes with the next two arguments */
enum syscall_way syscall_in_burst(struct thread *t, long number, const uint64_t *args, long *result);

int syscall_never_waits(long number); /* for anything that a signal could end */

/* watch.c */
int watch_used(void);        /* this process is watched */
int watch_many(void);        /* there are several threads, or will be in a moment */
uint64_t watch_own_ns(void); /* the process' CPU time, less what profiling took of it */
/* Likewise, but as if the thread's burst that ends now had not been, from watch_burst_begins on. */
uint64_t watch_burst_own_ns(const struct thread *t);
/* References of the process that went through counting code and short bursts, whose time is none of these. */
uint64_t watch_inside_refs(void);
void watch_burst_begins(struct thread *t); /* from here to watch_ask, CPU time is not the program's own */
void watch_burst_so_far(struct thread *t); /* takes what has been of it off watch_own_ns already */
int watch_calls_last(const struct thread *self); /* another thread's call may yet end in a fault of ours */
int watch_was_in_fault(const struct thread *t);  /* until right now, where signals had to wait */
int watch_closed(void);                          /* some page is closed */
void watch_enters(struct thread *t);             /* the code cache, for the collector */
void watch_leaves(struct thread *t);             /* it, in any case */
/* Before a burst's buffer is handed over: the number to hand over with it, 0: nothing is asked. */
uint32_t watch_asks(struct thread *t, uint64_t number);
void watch_ask(struct thread *t, uint32_t asks); /* behind it: waits for the answer, closes pages */
void watch_pause(struct thread *t);              /* opens all pages, until the next answer */
/* Closes them again; mask: the target's. 0: that cannot be, and all lines were dropped. */
int watch_close(struct thread *t, uint64_t mask);
void watch_drop(struct thread *t);                         /* opens all pages, gives up all lines */
void watch_off(struct thread *t, enum wire_unwatched why); /* for good */
/* A signal frame is about to be put there: open, and never closed again. */
void watch_avoid(uint64_t low, uint64_t high);
/* The target changes its mapping there; gone: what was there is not there afterwards. */
void watch_unmapped(uint64_t address, uint64_t bytes, int gone);
/* Outside of handlers, around anything that changes pages or lines: no signal comes in but faults. NULL: not
 * followed, nothing is done. Not nested. */
void watch_quiet(struct thread *t);
void watch_quiet_end(struct thread *t);
void watch_quiet_native(struct thread *t); /* watch_quiet, and not in a burst; not NULL */
/* Around a system call that the agent makes for the target, with pointers of the target's. */
void watch_hold(struct thread *t);
void watch_release(struct thread *t);
/* Nonzero: the thread met a fault with the lock of watching in its hands, which is released, and all pages
 * are open. What is touched then is the agent's: somebody took memory away that he did not map. */
int watch_faulted(void);
/* A fault at that address; uc NULL: in code of ours. Nonzero: the page was closed, and is open now. */
int watch_fault(struct thread *t, uint64_t address, int write, ucontext_t *uc);
void watch_mini_end(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns);
void watch_spend(struct thread *t, uint64_t ns); /* CPU time of its that watching took */
void watch_forked(void);
/* Threads. A handler has interrupted it in the target's code, with that mask. */
void watch_seen(struct thread *t, uint64_t mask);
void watch_diverted(struct thread *t); /* one came to us, and so its mask is known */
/* A call of the thread's begins that may touch that (NULL: anything); nonzero: pages were opened for it. */
int watch_call_begins(struct thread *t, enum watch_call how, const struct memory *m);
void watch_call_ends(struct thread *t);
void watch_lets_through(struct thread *t); /* it makes a call by itself, with all pages open */
void watch_was_let_through(struct thread *t);
/* `self` (NULL: not followed) is about to make a thread, whose structure is t; and has, or has failed to. */
void watch_starts(struct thread *self, struct thread *t, uint64_t stack_bytes);
void watch_started(struct thread *self, struct thread *t, int failed);
void watch_attached(struct thread *t);     /* called by the new thread */
void watch_not_attached(struct thread *t); /* instead: it goes unprofiled after all */
int watch_detached(struct thread *t); /* by one that will end; nonzero: watch_reap forgets it, once it has */
void watch_exits(struct thread *t);   /* it is about to call exit */
void watch_reap(void);                /* forgets threads that have ended */

/* touched.c: what a short burst's records tell. */
struct touched {
    uint64_t found;        /* which of the lines their instructions touched: bit i is lines[i] */
    uint64_t refs, before; /* references that they made; and of these, before the first of the lines */
};
/* lines: addresses; n <= 64. */
struct touched records_touched(const uint64_t *words, const uint64_t *end, uint32_t last_insns,
                               const uint64_t *lines, unsigned n);

/* calls.c */
/* Nonzero: a call from the code cache, while others may close pages, cannot be made there. */
int calls_in_burst(struct thread *t, long number, const uint64_t *args);
int calls_makes_thread(long number, const uint64_t *args);
/* Memory whose bytes the call changes, or their protection, and which may be code; how many pieces. */
unsigned calls_code_of(long number, const uint64_t *args, struct span code[2]);
void calls_change_code(long number, const uint64_t *args);  /* arch_code_changes for these */
void calls_stepped(struct thread *t, const ucontext_t *uc); /* the step behind a call that was let through */
/* A call that we make for the target, with all pages open: what it changes is noted. */
void calls_announce(struct thread *t, long number, const uint64_t *args);
/* On the SIGSYS of such a call; foreign: not by this architecture's own numbers. */
void calls_diverted(struct thread *t, ucontext_t *uc, int foreign);
int calls_back(struct thread *t, ucontext_t *uc);         /* nonzero: the fault behind such a call */
void calls_interrupted(struct thread *t, ucontext_t *uc); /* makes the context the target's, if it is not */

/* regions.c */
int region_may_translate(uint64_t pc);
/* Whether the region that holds that byte is known, without reading the list. */
int region_is_known(uint64_t pc);
/* Translated code must check its source: one of these bytes is writable, in no private mapping of a file, or
 * not known. */
int region_may_change(uint64_t pc, uint64_t bytes);
/* End of the code around pc of which none may change; pc, if that byte may. */
uint64_t region_fixed_end(uint64_t pc);
int region_is_agent(uint64_t pc); /* the agent's own code: its references are not the target's */
int regions_changed(void);        /* something known has gone or changed: translations are stale */
int regions_are_stale(void);      /* likewise, as far as was noticed without looking */
/* At the process' start, for it may leave /proc behind. What was known is kept for as long as the list cannot
 * be read again. */
void regions_read(void);
void regions_forget(void);
void regions_forked(const struct wire_proc *parent); /* likewise; told to our own slot */
void regions_stale(void); /* whatever was translated must go: a library unloaded, no room */
uint32_t region_module(uint64_t pc);
/* Code of which some was translated, and that has changed, or whose protection has, unseen: a stretch of it;
 * 0: none. After arch_code_changes for that, there may be more. */
int regions_find_changed(uint64_t *start, uint64_t *end);
int regions_concern(uint64_t address, uint64_t bytes); /* code that is known, and known not to change */
/* For arch_code_changes: these pages count as code that may change from now on. Nonzero: some did not so far.
 */
int regions_touch(uint64_t start, uint64_t end);

/* rseq.c: restartable sequences. The caller holds the translator's lock. */
void rseq_init(void);
void rseq_forked(void);
void rseq_module(const char *path, uint64_t start, uint64_t file_offset); /* learns those of a module */
int rseq_learn(uint64_t fs_base); /* the one that this thread is in, if any; nonzero: it was not known */
/* The instruction at pc names that address. Nonzero if a sequence was learned. */
int rseq_hint(uint64_t pc, uint64_t address);
int rseq_inside(uint64_t pc, uint64_t *abort); /* *abort: where an interrupted sequence goes on */
void rseq_see(uint64_t fs_base); /* without that lock: where the thread's descriptor is, if it has set one */
int rseq_owns(uint64_t address); /* its page has descriptors of sequences: never to be closed */
uint64_t rseq_next(uint64_t pc); /* start of the next one behind pc */

#pragma GCC visibility pop
#endif
