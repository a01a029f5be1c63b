/* SPDX-License-Identifier: Apache-2.0 */
/*
 * translator.h - instrumented copies of the target's code, and threads that execute them.
 *
 * A thread enters translated code from a signal handler: arch_translate finds or makes the copy of the
 * block at its program counter, arch_enter sets up what generated code needs, and the handler returns into
 * the copy. There every block records its references, or only counts them (x86_64/count.h). Blocks are
 * linked to each other. Generated code requests what is missing from dispatch_c, on a stack of the thread's
 * own. The thread leaves by a fault: one of its own, or that of the leave gate. arch_fault says which it
 * is, and arch_restore turns the context into that of the target's instruction.
 *
 * What the translator needs from the storeys above comes in a struct translator_ops. It knows nothing of
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

/* Reasons to leave the code cache that do not end the burst. */
enum {
    LEAVE_STEP = -1,   /* execute one instruction natively */
    LEAVE_RETURN = -2, /* rt_sigreturn, to a context with the trap flag set */
};

/* A call that the agent itself makes, with LEAVE_MARK as argument, to leave the burst. It is executed again
 * natively after the burst has ended, so it is one that the kernel knows and that the agent makes anyway:
 * seccomp filters kill for unknown numbers. */
#define SYSCALL_LEAVE SYS_gettid
#define LEAVE_MARK 0x6361636865677261
#define CHANGE_MARK 0x6361636865677262 /* the same for arch_code_changes, with the next two arguments */

/* What the translator does with a system call of the target in translated code. */
enum syscall_way {
    SYSCALL_PLAIN,  /* executed in the code cache as it is */
    SYSCALL_MASKED, /* may block: executed with the target's signal mask */
    SYSCALL_STEP,   /* single-stepped natively */
    SYSCALL_RETURN, /* rt_sigreturn, natively; the thread returns to translated code where it leads */
    SYSCALL_END,    /* ends the burst */
    SYSCALL_DONE,   /* already carried out; *result is set */
    SYSCALL_SIGNAL, /* the same, but a signal must be delivered before it returns */
};

/* All callbacks are called on the thread's dispatch stack or in a signal handler. */
struct translator_ops {
    /* A system call is about to be made. SYSCALL_DONE and SYSCALL_SIGNAL: *result is set. SYSCALL_END:
     * t->translation.leave_end and leave_detail are set. */
    enum syscall_way (*system_call)(struct thread *t, long number, const uint64_t *args, long *result);
    /* Of counting code: */
    void (*counted)(struct thread *t, uint64_t counter); /* the value of the counter */
    void (*marked)(struct thread *t);                    /* the counter has reached its mark */
    void (*call_may_wait)(struct thread *t);             /* the system call to be made may wait */
    void (*call_begins)(struct thread *t);               /* a system call begins */
    void (*call_ends)(struct thread *t);                 /* it has returned */
    /* Around the translator's own work, whose time is not the target's. work_ends gets the result of
     * work_begins. */
    uint64_t (*work_begins)(const struct thread *t);
    void (*work_ends)(struct thread *t, uint64_t began);
};
extern const struct translator_ops *translator_ops;

/* To be called once in each process, before anything else. 0, or -enum wire_disabled. */
int arch_init(const struct translator_ops *ops);
int arch_gs_in_use(void); /* the interrupted thread uses the GS base itself */
void arch_thread_init(struct thread *t);
int arch_in_cache(uint64_t pc);
/* The target's instruction that the thread executes at pc; 0: not known. */
uint64_t arch_source_pc(uint64_t pc);
/* Code to run; 0: not possible, t->translation.leave_end says why. */
uint64_t arch_translate(struct thread *t, uint64_t pc);
void arch_enter(struct thread *t); /* sets the GS base */
void arch_leave(struct thread *t);
uint64_t arch_memory(void); /* bytes of translations and their tables */
/* A mapping there, or the bytes in it, are about to change or have changed. No thread enters what was
 * translated from them any more, and what will be translated checks its source. Takes the translator's
 * lock: only in handlers, in C code called from the code cache, or where signals are blocked. */
void arch_code_changes(uint64_t address, uint64_t bytes);
/* All translations become stale, and the list of regions is read anew. Threads inside the code cache
 * continue; their next block is a new one. Memory is only reused if no thread is inside. */
void arch_flush(void);
/* Nonzero: code that was never translated before cannot be translated any more; no flush changes that. */
int arch_templates_full(void);
/* From now on until arch_mark_outside the thread may be in the code cache, whose memory is not reused
 * meanwhile. Nonzero: nothing has become stale since it was last inside. */
int arch_mark_inside(struct thread *t);
void arch_mark_outside(struct thread *t);
void arch_lock(void); /* the translator's lock: no thread enters until arch_unlock */
void arch_unlock(void);
void arch_forked(void); /* in a forked child: starts with an empty cache */
/* What counting requires. */
int arch_count_init(void);                     /* 0, or -1: this processor does not support it */
uint64_t arch_ticks(void);                     /* the processor's clock (TSC) */
int arch_has_ticks(void);                      /* 0: the target has forbidden reading it (PR_SET_TSC) */
int arch_count_prepare(struct thread *t);      /* prepares the thread. 0, or -1: no memory */
int arch_count_possible(const ucontext_t *uc); /* nonzero: possible with that signal frame */
/* request_stop protects the page that counting blocks write to: the thread faults at the beginning of the
 * next block that may close a loop. cancel_stop makes it writable again. */
void arch_count_cancel_stop(struct thread *t);
void arch_count_request_stop(struct thread *t);
/* Makes sure that this is possible in a process with as many mappings as it may have. 0, or -1. */
int arch_count_set_apart(struct thread *t);
/* Puts the counter into the frame of a thread that enters counting code; removes it from that of a thread
 * that leaves, and returns its value. */
void arch_count_insert(struct thread *t, ucontext_t *uc);
uint64_t arch_count_remove(struct thread *t, ucontext_t *uc);
/* The counter of a thread that has stopped and stays in counting code. */
uint64_t arch_count_value(const ucontext_t *uc);
/* Sets the counter to so many references before its mark: in the frame of a thread that has stopped, or (uc
 * NULL) in the dispatcher. In the first case the count of blocks starts again at 0. */
void arch_count_set_mark(struct thread *t, ucontext_t *uc, uint64_t references);
/* Blocks since then, plus COUNT_TURN for each return or indirect branch. */
uint64_t arch_count_blocks(const struct thread *t, const ucontext_t *uc);
/*
 * Classifies a fault in the code cache. FAULT_LEAVE: the leave gate. FAULT_FULL: the end of the buffer.
 * FAULT_TARGET: the target's own fault. FAULT_CODE: the target's code is no longer readable. In the last
 * three cases the context is untouched. Unless the thread counts, *record is the start of the unfinished
 * record, and *end the end of its words. arch_restore then makes the context the target's. FAULT_STALE: the
 * block's source has changed, none of its instructions was executed, and the previous record ends at
 * *record; arch_continue comes next. FAULT_UNKNOWN: impossible.
 */
enum arch_fault { FAULT_UNKNOWN, FAULT_LEAVE, FAULT_FULL, FAULT_TARGET, FAULT_CODE, FAULT_STALE };
enum arch_fault arch_fault(struct thread *t, ucontext_t *uc, int sig, uint64_t address, uint64_t **record,
                           uint64_t **end);
/* Whether the thread is in a block that filters lines, after its header was written. What such a block has
 * recorded so far is complete: *record and *end of arch_fault are the end of it. */
int arch_filters_lines(const ucontext_t *uc);
/* Continues with another buffer. */
void arch_moved_buffer(ucontext_t *uc, uint64_t *record);
/* After FAULT_STALE. 1: the context is in a new translation. 0: there is none; the context is the target's,
 * and t->translation.leave_end says why. */
int arch_continue(struct thread *t, ucontext_t *uc);
/* Makes the context the target's; returns how many instructions of the last record were executed. */
uint32_t arch_restore(struct thread *t, ucontext_t *uc);
/* After arch_restore, which returned insns: if the instruction that faulted had done part of its work, adds
 * that part to the record. 1: it has, and the instruction counts as executed; else 0. */
int arch_record_partial(const ucontext_t *uc, uint64_t *record, uint32_t insns);
/* A signal in the gate of a system call that may block: arch_restore_gate makes the context the target's.
 * 0: it was elsewhere. */
int arch_at_gate(const ucontext_t *uc); /* in the gate */
int arch_restore_gate(struct thread *t, ucontext_t *uc);

#pragma GCC visibility pop
#endif
