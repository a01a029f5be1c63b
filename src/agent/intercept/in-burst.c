/* SPDX-License-Identifier: Apache-2.0 */
/* in-burst.c - what becomes of a system call that the target makes inside a burst. */
#include <string.h>
#include <sys/prctl.h>
#include "agent/burst/burst.h"
#include "agent/code/code.h"
#include "agent/intercept/intercept.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/watch/watch.h"

/* Calls on what the agent keeps for the target. 0: it is none of them, or the kernel is to make it. */
static int emulate_signal_call(struct thread *t, long number, const uint64_t *args, long *result)
{
    int is_agent = region_is_agent(t->translation.syscall_pc); /* which works on what the kernel has */
    switch (number) {
    case SYS_rt_sigprocmask:
        /* With several threads even libc's own requests must not block what closed pages are seen by. */
        *result = signals_mask_in(t, &t->generated.app_mask, watch_many() && !is_agent, args);
        return 1;
    case SYS_rt_sigaction:
        if (is_agent)
            return 0;
        *result = signals_action_call(args);
        return 1;
    case SYS_sigaltstack:
        return !is_agent && signals_altstack_call(t, t->generated.app_rsp, args, result);
    default:
        return 0;
    }
}

static enum syscall_way end(struct thread *t, enum wire_end why, long number)
{
    t->translation.leave_end = (int)why;
    t->translation.leave_detail = (uint32_t)number;
    return SYSCALL_END;
}

/* Whether the thread stays in the cache as long as it can. */
static int stays(const struct thread *t)
{
    return agent_always_translated() || t->translation.counts;
}

/* A call that changes what a burst stands on. Who stays steps over it. */
static enum syscall_way change(struct thread *t, long number, const uint64_t *args)
{
    if (!stays(t))
        return end(t, WIRE_END_SYSCALL, number);
    t->burst.step_makes_thread = calls_makes_thread(number, args);
    if (t->burst.step_makes_thread && !t->native.creating_followed)
        count_add(&proc->count.unknown_threads, 1);
    return SYSCALL_STEP;
}

/* A signal that is not blocked in translated code; perhaps the target blocks it, and looks for it next. */
static int sends_fault_signal(uint64_t sig)
{
    return (int)sig > 0 && (int)sig <= SIGSYS && FAULT_SIGNALS & SIGNAL_BIT((int)sig);
}

enum syscall_way syscall_in_burst(struct thread *t, long number, const uint64_t *args, long *result)
{
    if (t->burst.is_probe) /* pages may be closed: it is diverted */
        return end(t, WIRE_END_SYSCALL, number);
    if (number == SYSCALL_LEAVE && args[0] == LEAVE_MARK)
        return end(t, WIRE_END_EXIT, number);
    if (number == SYSCALL_LEAVE && args[0] == CHANGE_MARK) {
        arch_code_changes(args[1], args[2]);
        return SYSCALL_PLAIN;
    }
    if (calls_must_leave_burst(t, number, args))
        return end(t, WIRE_END_SYSCALL, number);
    calls_change_code(number, args);
    switch (number) {
    case SYS_exit_group:
        if (session->mode == WIRE_MODE_FULL)
            burst_process_ends();
        return end(t, WIRE_END_EXIT, number);
    case SYS_exit:
        return end(t, WIRE_END_EXIT, number);
    case SYS_rt_sigreturn:
        if (stays(t) && arch_step_at_sigreturn(t->generated.app_rsp, &t->translation.return_trap_blocked))
            return SYSCALL_RETURN;
        return end(t, WIRE_END_SYSCALL, number);
    case SYS_rt_sigprocmask:
    case SYS_rt_sigaction:
    case SYS_sigaltstack:
        if (!emulate_signal_call(t, number, args, result))
            return SYSCALL_PLAIN;
        if (number == SYS_rt_sigprocmask) {
            uint64_t pending = 0;
            sys2(SYS_rt_sigpending, &pending, sizeof pending);
            if (pending & ~t->generated.app_mask & ~FAULT_SIGNALS)
                return SYSCALL_SIGNAL;
        }
        return SYSCALL_DONE;
    case SYS_execve:
    case SYS_execveat:
        if (t->translation.counts && !agent_always_translated()) /* nothing comes after it */
            return end(t, WIRE_END_EXIT, number);
        if (session->mode == WIRE_MODE_FULL)
            burst_process_ends();
        t->burst.step_executes = session->mode == WIRE_MODE_FULL;
        return change(t, number, args);
    case SYS_prctl:
        if (args[0] == PR_SET_TSC) /* perhaps our marks may not read it from now on */
            return end(t, t->translation.counts ? WIRE_END_EXIT : WIRE_END_SYSCALL, number);
        return change(t, number, args);
    case SYS_kill:
    case SYS_tkill:
    case SYS_rt_sigqueueinfo:
        return sends_fault_signal(args[1]) ? change(t, number, args) : SYSCALL_MASKED;
    case SYS_tgkill:
    case SYS_rt_tgsigqueueinfo:
        return sends_fault_signal(args[2]) ? change(t, number, args) : SYSCALL_MASKED;
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork:
    case SYS_arch_prctl:
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
        return syscall_never_blocks(number) ? SYSCALL_PLAIN : SYSCALL_MASKED;
    }
}
