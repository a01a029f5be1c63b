/* SPDX-License-Identifier: Apache-2.0 */
/*
 * translator.h - instrumented copies of the target's code, and threads that run in them.
 *
 * A thread goes into translated code in a signal handler: arch_translate finds or makes the copy of the block
 * at its program counter, arch_enter sets what generated code needs, and the handler returns into the copy.
 * There, every block records its references, or only counts them (x86_64/count.h). Blocks are linked to each
 * other; what is not there yet is asked for by dispatch_c, on a stack of the thread's own. The thread leaves
 * through a fault, either one of its own or that of the leave gate: arch_fault says which it is, and
 * arch_restore makes the context that of the target's instruction.
 *
 * What the translator needs from the parts above it comes in a struct translator_ops. It knows nothing of
 * bursts, of the clock or of protected pages.
 */
#ifndef CACHEGRAM_AGENT_TRANSLATOR_H
#define CACHEGRAM_AGENT_TRANSLATOR_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

struct thread;

#pragma GCC visibility push(hidden)

/* Ways to leave the code cache that do not end the burst. */
enum {
    LEAVE_STEP = -1,   /* one instruction natively */
    LEAVE_RETURN = -2, /* rt_sigreturn, into a context that has the trap flag set */
};

/* Made by the agent itself, with that argument: leave the burst. It is made again natively behind its end, so
 * it is one that the kernel knows, and that the agent makes anyway: filters kill for numbers they have not
 * heard of. */
#define SYSCALL_LEAVE SYS_gettid
#define LEAVE_MARK 0x6361636865677261
#define CHANGE_MARK 0x6361636865677262 /* likewise: arch_code_changes with the next two arguments */

/* What becomes of a system call that the target makes in translated code. */
enum syscall_way {
    SYSCALL_PLAIN,  /* runs from the code cache as it is */
    SYSCALL_MASKED, /* may block: with the target's signal mask */
    SYSCALL_STEP,   /* natively, then back */
    SYSCALL_RETURN, /* rt_sigreturn, natively, then back at where it leads */
    SYSCALL_END,    /* ends the burst */
    SYSCALL_DONE,   /* was carried out: result in *result */
    SYSCALL_SIGNAL, /* likewise, but a signal is to be seen before it returns */
};

/* All of them are called on the thread's dispatch stack or in a signal handler. */
struct translator_ops {
    /* A system call comes next. SYSCALL_DONE and SYSCALL_SIGNAL: *result is set. For SYSCALL_END the op has
     * set t->translation.leave_end and t->translation.leave_detail. */
    enum syscall_way (*system_call)(struct thread *t, long number, const uint64_t *args, long *result);
    /* Counting code: what the counter says since arch_count_in; it is at its mark; a system call begins that
     * may wait; any system call begins, is over. */
    void (*counted)(struct thread *t, uint64_t counter);
    void (*marked)(struct thread *t);
    void (*call_may_wait)(struct thread *t);
    void (*call_begins)(struct thread *t);
    void (*call_ends)(struct thread *t);
    /* Around the translator's own work, whose time is not the target's: `ends` is given what `begins`
     * returned. */
    uint64_t (*work_begins)(const struct thread *t);
    void (*work_ends)(struct thread *t, uint64_t began);
};
extern const struct translator_ops *translator_ops;

/* Once for each process, before anything else. 0, or negative: -enum wire_disabled. */
int arch_init(const struct translator_ops *ops);
int arch_gs_in_use(void); /* the interrupted thread uses what bursts need */
void arch_thread_init(struct thread *t);
int arch_in_cache(uint64_t pc);
uint64_t arch_translate(struct thread *t,
                        uint64_t pc); /* code to run, 0: cannot (t->translation.leave_end says why) */
void arch_enter(struct thread *t);    /* sets the GS base */
void arch_leave(struct thread *t);
uint64_t arch_memory(void); /* bytes that translations and their tables take */
/*
 * A mapping there is about to change, or has changed, or its bytes have: what was translated from it is not
 * entered any more, by any thread, and what will be translated checks its source. Takes the translator's
 * lock: only in handlers, in C code called from the code cache, or where signals are blocked.
 */
void arch_code_changes(uint64_t address, uint64_t bytes);
/* All translations are stale, and the regions are read anew. Threads that are inside go on; their next block
 * is a new one. There is only new room if nobody is inside. */
void arch_flush(void);
/* From now on (until arch_outside) the thread may be in the cache, whose memory is not used again meanwhile.
 * Nonzero: nothing has become stale since it was last inside. */
int arch_inside(struct thread *t);
void arch_outside(struct thread *t);
void arch_lock(void); /* nobody comes in until arch_unlock */
void arch_unlock(void);
void arch_forget_targets(struct thread *t);
void arch_forked(void); /* in a forked child: start afresh */
/* Counting: what there must be for it, in this process, and for a thread. */
int arch_count_init(void);                /* 0, or -1: this processor cannot */
int arch_has_ticks(void);                 /* the target may have forbidden itself to read it */
uint64_t arch_ticks(void);                /* the processor's clock; not in nanoseconds */
int arch_count_ready(struct thread *t);   /* the thread has what it needs. 0, or -1: no memory */
int arch_count_can(const ucontext_t *uc); /* of that frame, too */
/* The page that counting blocks write to: closed, the thread faults at the beginning of the next of them that
 * may close a loop. */
void arch_count_cancel_stop(struct thread *t);
void arch_count_request_stop(struct thread *t);
/* The frame of a thread that goes into counting code, or comes out of it: then, what was counted meanwhile.
 */
void arch_count_in(struct thread *t, ucontext_t *uc);
uint64_t arch_count_out(struct thread *t, ucontext_t *uc);
uint64_t arch_counted(const ucontext_t *uc); /* the same, of a thread that stopped and stays */
/* The counter is so many references away from its mark: of a thread that stopped, or (NULL) in dispatch. The
 * first also begins to count blocks anew. */
void arch_count_aim(struct thread *t, ucontext_t *uc, uint64_t references);
/* Blocks since then, and COUNT_TURN for each return or indirect branch. */
uint64_t arch_count_blocks(const struct thread *t, const ucontext_t *uc);
/*
 * A fault at a place in the cache. FAULT_LEAVE: the leave gate. FAULT_FULL: end of the buffer.
 * FAULT_TARGET: the target's own fault. FAULT_CODE: the target's code cannot be read any more. In the last
 * three the context is untouched; unless the thread counts, *record is the start of the unfinished record,
 * *end the end of its words; arch_restore then makes the context the target's. FAULT_STALE: the block's
 * source has changed, nothing of it was executed, and the record before it ends at *record; arch_go_on comes
 * next. FAULT_UNKNOWN: cannot be.
 */
enum arch_fault { FAULT_UNKNOWN, FAULT_LEAVE, FAULT_FULL, FAULT_TARGET, FAULT_CODE, FAULT_STALE };
enum arch_fault arch_fault(struct thread *t, ucontext_t *uc, int sig, uint64_t address, uint64_t **record,
                           uint64_t **end);
void arch_moved_buffer(struct thread *t, ucontext_t *uc, uint64_t *record); /* go on with another buffer */
/* After FAULT_STALE: to a new translation, 1. Or there is none, and the context is the target's: 0, and
 * t->translation.leave_end says why. */
int arch_go_on(struct thread *t, ucontext_t *uc);
/* Returns how many instructions of the last record were executed. */
uint32_t arch_restore(struct thread *t, ucontext_t *uc);
/*
 * After arch_restore, which returned insns: if the instruction that faulted had done a part of its work,
 * makes that part of the record. 1 if so (it counts as executed), else 0.
 */
int arch_record_partial(const ucontext_t *uc, uint64_t *record, uint32_t insns);
/* A signal interrupted the system call gate: make the context the target's; 0: it was elsewhere. */
int arch_at_gate(const ucontext_t *uc); /* at the system call that may wait, in a burst */
int arch_restore_gate(struct thread *t, ucontext_t *uc);

#pragma GCC visibility pop
#endif
