/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - the target's system calls while pages are closed.
 *
 * The kernel fails with EFAULT where it would have to touch a closed page for the target. So while one is
 * closed, Linux' syscall user dispatch sends us SIGSYS in place of each call made from outside the agent's
 * own text. Pages that the call may touch are opened; then it is made
 *
 *   - here, if it never waits, and the pages are closed again at once;
 *   - else by the target itself through call_through in the agent's text, with its own mask and registers, so
 *     that it can be interrupted as ever; where pages were opened, through call_and_back, whose end faults
 *     into signal_c to have them closed.
 *
 * What changes mappings settles the fate of the lines in them; what makes threads or processes, or ends the
 * program, drops all watches first.
 */
#include <linux/sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include "agent/agent.h"
#include "agent/calls.h"
#include "agent/sys.h"

#define DISPATCH_ON 1
#define ALLOW 0
#define BLOCK 1
#define PROC_MAGIC 0x9fa0

extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

int calls_divert(struct thread *t, int on)
{
    if (on && !t->dispatching) {
        if (sys_failed(sys6(SYS_prctl, SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, (long)__ehdr_start,
                            etext - __ehdr_start, (long)&t->selector, 0))) {
            watch_off(NULL, WIRE_UNWATCHED_KERNEL);
            return -1;
        }
        t->dispatching = 1;
    }
    t->selector = on ? BLOCK : ALLOW;
    return 0;
}

/* The target's own request for what we use. */
static int wants_dispatch(long number, const uint64_t *args)
{
    return number == SYS_prctl && args[0] == SET_SYSCALL_USER_DISPATCH;
}

static uint64_t clone_flags(long number, const uint64_t *args)
{
    uint64_t flags = args[0];
    if (number == SYS_clone3 && safe_copy(&flags, (const void *)args[0], sizeof flags))
        flags = 0;
    return flags;
}

/* Calls after which nothing is as before; all pages are open when they are made. Nonzero: it is one. */
static int changes_world(struct thread *t, long number, const uint64_t *args)
{
    if (wants_dispatch(number, args)) {
        watch_off(t, WIRE_UNWATCHED_DISPATCH);
        return 1;
    }
    switch (number) {
    case SYS_prlimit64:
        if (!args[2])
            return 0;
        watch_drop(t);
        return 1;
    case SYS_clone:
    case SYS_clone3:
        watch_drop(t);
        /* A process of its own in our memory, beside us. */
        if ((clone_flags(number, args) & (CLONE_VM | CLONE_THREAD | CLONE_VFORK)) == CLONE_VM)
            watch_off(t, WIRE_UNWATCHED_ASYNC);
        return 1;
    case SYS_fork:
    case SYS_vfork:
    case SYS_unshare:
    case SYS_shmat:
    case SYS_remap_file_pages:
    case SYS_rt_sigreturn:
    case SYS_setrlimit: /* see data_is_limited in watch.c */
        watch_drop(t);
        return 1;
    case SYS_execve:
    case SYS_execveat:
    case SYS_exit:
    case SYS_exit_group: /* the lines are not touched again: they stay wanted */
        watch_pause(t);
        return 1;
    case SYS_rt_sigaction:
        if (args[0] < 1 || args[0] > 64 || !args[1] || !(FAULT_SIGNALS & SIGNAL_BIT(args[0])))
            return 0;
        watch_off(t, WIRE_UNWATCHED_SIGNALS);
        return 1;
    case SYS_sigaltstack:
        if (args[0]) /* faults would not come to us on our own stack any more */
            watch_off(t, WIRE_UNWATCHED_SIGNALS);
        return args[0] != 0;
    case SYS_io_uring_setup:
    case SYS_io_setup:
    case SYS_userfaultfd:
        watch_off(t, WIRE_UNWATCHED_ASYNC);
        return 1;
    default:
        return 0;
    }
}

/* Mappings that are about to change; nonzero: the call is one that changes them. */
static int changes_mappings(long number, const uint64_t *args)
{
    switch (number) {
    case SYS_mmap:
        if (args[3] & MAP_FIXED)
            watch_unmapped(args[0], args[1], 1);
        break;
    case SYS_munmap:
        watch_unmapped(args[0], args[1], 1);
        break;
    case SYS_mremap:
        watch_unmapped(args[0], args[1], 0);
        if (args[3] & MREMAP_FIXED)
            watch_unmapped(args[4], args[2], 1);
        break;
    case SYS_mprotect:
    case SYS_pkey_mprotect:
        watch_unmapped(args[0], args[1], 0);
        break;
    case SYS_madvise:
        watch_unmapped(args[0], args[1], args[2] == MADV_DONTNEED || args[2] == MADV_FREE);
        return 1; /* of no interest to translations */
    case SYS_brk:
        if (args[0]) /* what lies above on the heap goes; what lies above it elsewhere is far away */
            watch_unmapped(args[0], 1u << 30, 1);
        return 1;
    default:
        return 0;
    }
    regions_touch(args[0], args[1]);
    return 1;
}

/* rt_sigprocmask on the frame's mask. 0: let the kernel say what is wrong with it. */
static int change_mask(struct thread *t, ucontext_t *uc, const uint64_t *args)
{
    uint64_t set = 0, before;
    int how = (int)args[0];
    memcpy(&before, &uc->uc_sigmask, sizeof before);
    uint64_t told = before | signals_hidden(t, before);
    if (args[3] != sizeof set || (unsigned)how > SIG_SETMASK ||
        (args[1] && safe_copy(&set, (const void *)args[1], sizeof set)) ||
        (args[2] && safe_copy((void *)args[2], &told, sizeof told)))
        return 0;
    if (args[1]) {
        uint64_t after = signals_change(how, before, signals_real(how, set));
        signals_note(t, how, set, before);
        memcpy(&uc->uc_sigmask, &after, sizeof after);
    }
    return 1;
}

/* Reading one of /proc's files, which may tell of our doing: maps, smaps. */
static int reads_proc(long number, const uint64_t *args)
{
    struct statfs s;
    return (number == SYS_read || number == SYS_pread64 || number == SYS_readv || number == SYS_preadv) &&
           sys2(SYS_fstatfs, args[0], &s) == 0 && s.f_type == PROC_MAGIC;
}

/* Opens what the call may touch; nonzero if that was anything. */
static int open_for(long number, const uint64_t *args)
{
    struct memory m;
    int opened = 0;
    if (call_memory(number, args, &m) < 0 || reads_proc(number, args)) {
        watch_open(NULL);
        return 1;
    }
    for (unsigned i = 0; i < m.n; i++)
        if (watch_overlaps(m.part[i].address, m.part[i].bytes)) {
            watch_open_range(m.part[i].address, m.part[i].bytes);
            opened = 1;
        }
    return opened;
}

static void close_again(struct thread *t, const ucontext_t *uc)
{
    uint64_t mask;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    watch_close(t, mask);
}

static void make_here(ucontext_t *uc, long number, const uint64_t *a)
{
    arch_call_done(uc, sys6(number, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4], (long)a[5]));
}

void calls_announce(struct thread *t, long number, const uint64_t *args)
{
    if (!changes_world(t, number, args))
        changes_mappings(number, args);
}

void calls_diverted(struct thread *t, ucontext_t *uc, int foreign)
{
    uint64_t args[6];
    long number = arch_call(uc, args);
    count_add(&proc->count.watch_calls, 1);
    watch_spend(proc->watching.fault_ns);
    if (t->state != THREAD_NATIVE) /* cannot be: bursts make their calls with all pages open */
        watch_drop(t);
    if (foreign) /* a call of 32-bit code, numbered otherwise */
        watch_off(t, WIRE_UNWATCHED_DISPATCH);
    if (foreign || t->state != THREAD_NATIVE || changes_world(t, number, args)) {
        t->selector = ALLOW;
        arch_call_again(uc);
        return;
    }
    if (number == SYS_rt_sigprocmask) {
        if (change_mask(t, uc, args))
            arch_call_done(uc, 0);
        else
            make_here(uc, number, args);
        close_again(t, uc); /* a mask with which pages must not be closed opens them */
        return;
    }
    if (changes_mappings(number, args)) {
        make_here(uc, number, args);
        return;
    }
    int opened = open_for(number, args);
    if (syscall_never_waits(number)) {
        make_here(uc, number, args);
        if (opened)
            close_again(t, uc);
    } else {
        arch_call_through(uc, opened);
    }
}

int calls_back(struct thread *t, ucontext_t *uc)
{
    if (!arch_call_back(uc))
        return 0;
    watch_spend(proc->watching.fault_ns);
    close_again(t, uc);
    return 1;
}

void calls_interrupted(struct thread *t, ucontext_t *uc)
{
    if (arch_call_interrupted(uc) && t->state == THREAD_NATIVE)
        close_again(t, uc);
}
