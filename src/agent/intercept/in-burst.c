/* SPDX-License-Identifier: Apache-2.0 */
/* in-burst.c - what becomes of a system call that the target makes inside a burst. */
#include <string.h>
#include <sys/prctl.h>
#include "agent/agent.h"
#include "agent/sys/sys.h"

/* rt_sigprocmask on the mask that the target believes in. */
static int change_mask(struct thread *t, const uint64_t *args, long *result)
{
    uint64_t set = 0, before = t->app_mask, after = before;
    int how = (int)args[0];
    /* With several threads even libc's own requests must not block what closed pages are seen by. */
    uint64_t told = before | (watch_many() ? signals_hidden(t, before) : 0);
    if (args[3] != sizeof set || args[0] > SIG_SETMASK)
        return 0;
    if (args[1]) {
        if (safe_copy(&set, (const void *)args[1], sizeof set))
            return 0;
        after = signals_change(how, before, watch_many() ? signals_real(how, set) : set);
    }
    if (args[2] && safe_copy((void *)args[2], &told, sizeof told))
        return 0;
    if (args[1] && watch_many())
        signals_note(t, how, set, before);
    t->app_mask = after;
    *result = 0;
    return 1;
}

int syscall_never_waits(long number)
{
    switch (number) {
    case SYS_brk:
    case SYS_fstat:
    case SYS_lseek:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getppid:
    case SYS_getuid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getegid:
    case SYS_clock_gettime:
    case SYS_gettimeofday:
    case SYS_time:
    case SYS_madvise:
    case SYS_getrusage:
    case SYS_times:
    case SYS_sched_yield:
    case SYS_getrandom:
    case SYS_uname:
    case SYS_set_robust_list:
    case SYS_set_tid_address:
        return 1;
    default:
        return 0;
    }
}

static enum syscall_way end(struct thread *t, enum wire_end why, long number)
{
    t->leave_end = (int)why;
    t->leave_detail = (uint32_t)number;
    return SYSCALL_END;
}

/* Whether the thread stays in the cache as long as it can. */
static int stays(const struct thread *t)
{
    return agent_stays() || t->count.on;
}

/* A call that changes what a burst stands on. Who stays steps over it. */
static enum syscall_way change(struct thread *t, long number, const uint64_t *args)
{
    if (!stays(t))
        return end(t, WIRE_END_SYSCALL, number);
    t->step_makes_thread = calls_makes_thread(number, args);
    return SYSCALL_STEP;
}

enum syscall_way syscall_in_burst(struct thread *t, long number, const uint64_t *args, long *result)
{
    if (t->mini) /* pages may be closed: it is diverted */
        return end(t, WIRE_END_SYSCALL, number);
    if (number == SYSCALL_LEAVE && args[0] == LEAVE_MARK)
        return end(t, WIRE_END_EXIT, number);
    if (number == SYSCALL_LEAVE && args[0] == CHANGE_MARK) {
        arch_code_changes(args[1], args[2]);
        return SYSCALL_PLAIN;
    }
    if (calls_in_burst(t, number, args))
        return end(t, WIRE_END_SYSCALL, number);
    calls_change_code(number, args);
    switch (number) {
    case SYS_exit:
    case SYS_exit_group:
        return end(t, WIRE_END_EXIT, number);
    case SYS_rt_sigreturn:
        if (stays(t) && arch_step_at_sigreturn(t->app_rsp))
            return SYSCALL_RETURN;
        return end(t, WIRE_END_SYSCALL, number);
    case SYS_rt_sigprocmask:
        if (change_mask(t, args, result)) {
            uint64_t pending = 0;
            sys2(SYS_rt_sigpending, &pending, sizeof pending);
            return pending & ~t->app_mask & ~FAULT_SIGNALS ? SYSCALL_SIGNAL : SYSCALL_DONE;
        }
        return change(t, number, args); /* the kernel says what is wrong with it */
    case SYS_rt_sigaction:
        if (args[0] < 1 || args[0] > 64 || (args[1] && FAULT_SIGNALS & SIGNAL_BIT(args[0])))
            return change(t, number, args);
        return SYSCALL_PLAIN;
    case SYS_execve:
    case SYS_execveat:
        if (t->count.on && !agent_stays()) /* nothing comes after it */
            return end(t, WIRE_END_EXIT, number);
        return change(t, number, args);
    case SYS_prctl:
        if (args[0] == PR_SET_TSC) /* perhaps our marks may not read it from now on */
            return end(t, t->count.on ? WIRE_END_EXIT : WIRE_END_SYSCALL, number);
        return change(t, number, args);
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork:
    case SYS_arch_prctl:
    case SYS_sigaltstack:
    case SYS_seccomp:
    case SYS_rseq:
    case SYS_modify_ldt:
    case SYS_setrlimit:
        return change(t, number, args);
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_pkey_mprotect:
        return SYSCALL_PLAIN;
    default:
        return syscall_never_waits(number) ? SYSCALL_PLAIN : SYSCALL_MASKED;
    }
}
