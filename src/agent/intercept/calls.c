/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - system calls of the target while pages are protected.
 *
 * The kernel fails with EFAULT where it would have to access a protected page for the target. So while a page
 * is protected, or the call tracker is active for several threads (watch/call-tracker.c), syscall user
 * dispatch sends SIGSYS in place of each call that is made outside the agent's own text. The agent notes what
 * the call may access, and unprotects those pages. Then the call is made
 *
 *   - in the handler, if it never blocks, and the pages are protected again at once;
 *   - else by the target itself through call_through in the agent's text, with its own mask and registers, so
 *     that signals can interrupt it as usual; if pages were unprotected, through call_then_fault, whose fault
 *     makes signal_c protect them again.
 *
 * A call that changes mappings decides the fate of the watched lines in them. One that creates a process, or
 * ends the program, drops all watches first.
 */
#include <linux/sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>
#include "agent/code/code.h"
#include "agent/divert/divert.h"
#include "agent/memory.h"
#include "agent/intercept/intercept.h"
#include "agent/signals/signals.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/watch/watch.h"

#define PROC_MAGIC 0x9fa0
#define MOST_SEGMENT_BYTES (1ull << 40)

/* The target wants to use syscall user dispatch itself. */
static int wants_dispatch(long number, const uint64_t *args)
{
    return number == SYS_prctl && args[0] == SET_SYSCALL_USER_DISPATCH;
}

int calls_makes_thread(long number, const uint64_t *args)
{
    return (arch_clone_flags(number, args[0]) & CLONE_THREAD) != 0;
}

/* Effects of a call other than accessing memory. */
enum effect {
    NO_EFFECT,
    ENDS_WATCHING,       /* the agent would lose track of signals, or of accesses to the memory */
    INVALIDATES_WATCHES, /* changes something that protecting pages relies on */
    MAKES_THREAD,
    MAKES_PROCESS,
    EXECUTES,
    EXITS_THREAD,
    EXITS,
    RETURNS, /* from a signal handler that the agent did not start */
};

static enum effect effect_of(long number, const uint64_t *args, enum wire_unwatched *why)
{
    uint64_t flags;
    *why = WIRE_UNWATCHED_SIGNALS;
    switch (number) {
    case SYS_prctl:
        *why = WIRE_UNWATCHED_DISPATCH;
        return wants_dispatch(number, args) ? ENDS_WATCHING : NO_EFFECT;
    case SYS_mmap:
        *why = WIRE_UNWATCHED_GROWS;
        return args[3] & MAP_GROWSDOWN ? ENDS_WATCHING : NO_EFFECT;
    case SYS_prlimit64: /* see data_is_limited in watch.c */
        return args[2] ? INVALIDATES_WATCHES : NO_EFFECT;
    case SYS_clone:
    case SYS_clone3:
        flags = arch_clone_flags(number, args[0]);
        *why = WIRE_UNWATCHED_ASYNC;
        if (flags & CLONE_THREAD)
            return MAKES_THREAD;
        /* A process that runs concurrently in this memory cannot be watched. */
        return (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM ? ENDS_WATCHING : MAKES_PROCESS;
    case SYS_fork:
    case SYS_vfork:
        return MAKES_PROCESS;
    case SYS_unshare:
    case SYS_shmat:
    case SYS_remap_file_pages:
    case SYS_setrlimit:
        return INVALIDATES_WATCHES;
    case SYS_rt_sigreturn:
        return RETURNS;
    case SYS_execve:
    case SYS_execveat:
        return EXECUTES;
    case SYS_exit:
        return EXITS_THREAD;
    case SYS_exit_group:
        return EXITS;
    case SYS_sigaltstack: /* faults would no longer arrive on the agent's signal stack */
        return args[0] ? ENDS_WATCHING : NO_EFFECT;
    case SYS_io_uring_setup:
    case SYS_io_setup:
    case SYS_userfaultfd:
        *why = WIRE_UNWATCHED_ASYNC;
        return ENDS_WATCHING;
    default:
        return NO_EFFECT;
    }
}

/* For a single thread, which makes the call itself with all pages unprotected. */
static void prepare_single_thread(struct thread *t, enum effect effect, enum wire_unwatched why)
{
    if (effect == ENDS_WATCHING)
        watch_disable(t, why);
    else if (effect == MAKES_THREAD) /* not by pthread_create, which would have made it two threads by now */
        watch_disable(t, WIRE_UNWATCHED_THREADS);
    else if (effect == EXECUTES || effect == EXITS || effect == EXITS_THREAD)
        watch_pause(t); /* the lines are not touched again: they stay pending */
    else
        watch_censor_all(t);
}

/* A write to /proc/self/mem also changes memory that is not writable. The offset is compared first: few files
 * are so large that it could be the address of code. */
static int writes_code(long number, const uint64_t *args, struct span *to)
{
    int vector = number != SYS_write && number != SYS_pwrite64;
    int positioned = number != SYS_write && number != SYS_writev;
    struct statfs s;
    to->bytes = vector ? 0 : args[2];
    for (uint64_t i = 0; vector && i < args[2] && i < UIO_MAXIOV; i++) {
        struct iovec v;
        if (safe_copy(&v, (const struct iovec *)args[1] + i, sizeof v))
            break;
        to->bytes += v.iov_len;
    }
    long at = positioned && (long)args[3] >= 0 ? (long)args[3] : sys3(SYS_lseek, args[0], 0, SEEK_CUR);
    to->address = (uint64_t)at;
    return !sys_failed(at) && regions_overlap_code(to->address, to->bytes) &&
           sys2(SYS_fstatfs, args[0], &s) == 0 && s.f_type == PROC_MAGIC;
}

unsigned calls_code_changed(long number, const uint64_t *args, struct span code[2])
{
    code[0] = (struct span){args[0], args[1]};
    switch (number) {
    case SYS_mmap: /* elsewhere it replaces nothing, and its address may be 0 */
        return (args[3] & MAP_FIXED) != 0;
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_pkey_mprotect:
        return 1;
    case SYS_mremap:
        code[1] = (struct span){args[4], args[2]};
        return args[3] & MREMAP_FIXED ? 2 : 1;
    case SYS_shmat: /* the segment's size is not known here */
        code[0] = (struct span){args[1], MOST_SEGMENT_BYTES};
        return (args[2] & SHM_REMAP) != 0;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
        return writes_code(number, args, &code[0]) != 0;
    default:
        return 0;
    }
}

void calls_change_code(long number, const uint64_t *args)
{
    struct span code[2];
    for (unsigned n = calls_code_changed(number, args, code); n > 0; n--)
        arch_code_changes(code[n - 1].address, code[n - 1].bytes);
}

/* Nonzero: the call changes mappings; *m: the memory concerned, which may be none. */
static int changes_mappings(long number, const uint64_t *args, struct memory *m)
{
    int gone = 1;
    m->n = 1;
    m->part[0] = (struct span){args[0], args[1]};
    switch (number) {
    case SYS_mmap:
        m->n = (args[3] & MAP_FIXED) != 0;
        break;
    case SYS_munmap:
        break;
    case SYS_mremap:
        if (args[3] & MREMAP_FIXED) {
            m->n = 2;
            m->part[1] = (struct span){args[4], args[2]};
            watch_unmapped(args[4], args[2], 1);
        }
        gone = 0;
        break;
    case SYS_mprotect:
    case SYS_pkey_mprotect:
        gone = 0;
        break;
    case SYS_madvise:
        gone = args[2] == MADV_DONTNEED || args[2] == MADV_FREE;
        break;
    case SYS_brk: /* the end of the heap may be unmapped; mappings above it are much farther away */
        m->n = args[0] != 0;
        m->part[0].bytes = 1u << 30;
        break;
    default:
        return 0;
    }
    if (m->n)
        watch_unmapped(m->part[0].address, m->part[0].bytes, gone);
    return 1;
}

/* See signals_intercept_direct. */
static int is_libc_signal(long number, const uint64_t *args)
{
    return number == SYS_rt_sigaction && (args[0] == 32 || args[0] == 33) && args[1] &&
           watch_several_threads();
}

/* Emulates calls on the signal state that the agent keeps for the target; the mask is in the frame. 0: it is
 * none of them. */
static int emulate_signal_call(struct thread *t, ucontext_t *uc, long number, const uint64_t *args)
{
    uint64_t mask;
    long result;
    if (number == SYS_rt_sigprocmask) {
        memcpy(&mask, &uc->uc_sigmask, sizeof mask);
        result = signals_mask_in(t, &mask, 1, args);
        memcpy(&uc->uc_sigmask, &mask, sizeof mask);
    } else if (number == SYS_rt_sigaction && !is_libc_signal(number, args)) {
        result = signals_action_call(t, args);
    } else if (number != SYS_sigaltstack || !signals_altstack_call(t, arch_sp(uc), args, &result)) {
        return 0;
    }
    arch_call_done(uc, result);
    return 1;
}

/* Reads a file of /proc, which may show protections: maps, smaps. */
static int reads_proc(long number, const uint64_t *args)
{
    struct statfs s;
    return (number == SYS_read || number == SYS_pread64 || number == SYS_readv || number == SYS_preadv) &&
           sys2(SYS_fstatfs, args[0], &s) == 0 && s.f_type == PROC_MAGIC;
}

/* Notes what the call may access and unprotects it; nonzero if something was protected. */
static int unprotect_for_call(struct thread *t, enum watch_call how, long number, const uint64_t *args)
{
    struct memory m;
    int known = call_memory(number, args, &m) == 0 && !reads_proc(number, args);
    return watch_call_begins(t, how, known ? &m : NULL);
}

static void reprotect(struct thread *t, const ucontext_t *uc)
{
    uint64_t mask;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    watch_reprotect(t, mask);
}

static void make_in_handler(ucontext_t *uc, long number, const uint64_t *a)
{
    arch_call_done(uc, sys6(number, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4], (long)a[5]));
}

void calls_announce(struct thread *t, long number, const uint64_t *args)
{
    struct memory m;
    enum wire_unwatched why;
    enum effect effect = effect_of(number, args, &why);
    if (effect == NO_EFFECT)
        changes_mappings(number, args, &m);
    else
        prepare_single_thread(t, effect, why);
}

/* The target makes the call itself, at its own place, with all pages unprotected. step: the trap after it
 * comes here, unless it would kill. */
static void make_undiverted(struct thread *t, ucontext_t *uc, int step)
{
    uint64_t mask;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    watch_undiverted_begins(t);
    arch_call_restart(uc);
    if (step && !(mask & SIGNAL_BIT(SIGTRAP)) && !arch_step_would_kill(uc))
        arch_set_step(uc, 1);
}

void calls_stepped(struct thread *t, const ucontext_t *uc)
{
    if (arch_at_call(uc)) /* a signal was delivered before the call */
        return;
    watch_undiverted_ends(t);
}

/* For one of several threads. */
static void make_with_threads(struct thread *t, ucontext_t *uc, long number, const uint64_t *args,
                              enum effect effect, enum wire_unwatched why)
{
    uint64_t mask, sp = arch_sp(uc);
    struct memory frame = {1, {{sp - 8, FRAME_MOST_BYTES}}};
    switch (effect) {
    case MAKES_THREAD:
        if (t->watch.creating) { /* pthread_create reports when it is done */
            make_undiverted(t, uc, 0);
            return;
        }
        why = WIRE_UNWATCHED_THREADS;
        break;
    case MAKES_PROCESS:
        watch_censor_all(t);
        make_undiverted(t, uc, 1);
        return;
    case EXITS:
        make_undiverted(t, uc, 0);
        return;
    case EXITS_THREAD:
        watch_thread_exiting(t);
        arch_call_restart(uc);
        return;
    case EXECUTES:
        watch_call_begins(t, CALL_OPEN_ENDED, NULL);
        arch_call_through(t, uc, 1);
        return;
    case RETURNS:
        if (arch_sigreturn_mask(uc, &mask) == 0)
            watch_mark_quiescent(t, mask);
        watch_call_begins(t, CALL_OPEN_ENDED, &frame);
        arch_call_through(t, uc, 0);
        return;
    case INVALIDATES_WATCHES:
        watch_censor_all(t);
        watch_call_begins(t, CALL_IN_HANDLER, NULL);
        make_in_handler(uc, number, args);
        watch_call_ends(t);
        reprotect(t, uc);
        return;
    default:
        break;
    }
    watch_disable(t, why);
    arch_call_restart(uc);
}

void calls_diverted(struct thread *t, ucontext_t *uc, int foreign)
{
    uint64_t args[6];
    struct memory m;
    enum wire_unwatched why;
    long number = arch_call_arguments(uc, args);
    enum effect effect = foreign ? ENDS_WATCHING : effect_of(number, args, &why);
    count_add(&proc->count.watch_calls, 1);
    watch_charge(t, watching()->fault_ns);
    watch_diverted(t);
    if (foreign) /* a call of 32-bit code, which has other numbers */
        why = WIRE_UNWATCHED_DISPATCH;
    if (t->state != THREAD_NATIVE) { /* cannot happen: calls in bursts are not diverted */
        watch_censor_all(t);
        t->divert.selector = CALLS_ALLOWED;
        arch_call_restart(uc);
        return;
    }
    if (!foreign && emulate_signal_call(t, uc, number, args)) {
        reprotect(t, uc); /* the new mask may forbid protected pages: unprotects them then */
        return;
    }
    calls_change_code(number, args);
    if (effect != NO_EFFECT && watch_several_threads()) {
        make_with_threads(t, uc, number, args, effect, why);
        return;
    }
    if (effect != NO_EFFECT) {
        prepare_single_thread(t, effect, why);
        t->divert.selector = CALLS_ALLOWED;
        arch_call_restart(uc);
        return;
    }
    if (is_libc_signal(number, args)) {
        unprotect_for_call(t, CALL_IN_HANDLER, number, args);
        make_in_handler(uc, number, args);
        signals_intercept_direct();
        watch_call_ends(t);
        reprotect(t, uc);
        return;
    }
    if (changes_mappings(number, args, &m)) {
        watch_change_begins(t, &m);
        make_in_handler(uc, number, args);
        watch_call_ends(t);
        return;
    }
    int here = syscall_never_blocks(number),
        unprotected = unprotect_for_call(t, here ? CALL_IN_HANDLER : CALL_OPEN_ENDED, number, args);
    if (here) {
        make_in_handler(uc, number, args);
        watch_call_ends(t);
        if (unprotected)
            reprotect(t, uc);
        return;
    }
    arch_call_through(t, uc, unprotected);
    if (!unprotected)
        t->watch.call = CALL_THROUGH;
}

int calls_must_leave_burst(struct thread *t, long number, const uint64_t *args)
{
    struct memory m;
    enum wire_unwatched why;
    if (!session->watch || !watch_several_threads())
        return 0;
    enum effect effect = effect_of(number, args, &why);
    /* Now no page is protected, nor will one be while such a call may last. */
    if (agent_always_translated() && effect != NO_EFFECT) {
        watch_call_begins(t, CALL_OPEN_ENDED, NULL);
        return 0;
    }
    if (effect != NO_EFFECT) /* calls that end the burst anyway are not reported here */
        return effect != EXECUTES && effect != EXITS && effect != EXITS_THREAD;
    if (changes_mappings(number, args, &m))
        watch_change_begins(t, &m);
    else
        unprotect_for_call(t, CALL_OPEN_ENDED, number, args);
    return 0;
}

int calls_returned(struct thread *t, ucontext_t *uc)
{
    if (!arch_call_returned(t, uc))
        return 0;
    watch_charge(t, watching()->fault_ns);
    watch_call_ends(t);
    reprotect(t, uc);
    return 1;
}

void calls_interrupted(struct thread *t, ucontext_t *uc)
{
    if (arch_call_interrupted(t, uc) && t->state == THREAD_NATIVE)
        reprotect(t, uc);
}
