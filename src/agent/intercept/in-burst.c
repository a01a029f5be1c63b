/* SPDX-License-Identifier: Apache-2.0 */
/* in-burst.c - system calls of the target in translated code: where they are made, and whether they end the
 * burst. */
#include <linux/sched.h>
#include <string.h>
#include <sys/prctl.h>
#include "agent/burst/burst.h"
#include "agent/code/code.h"
#include "agent/intercept/intercept.h"
#include "agent/signals/signals.h"
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/watch/watch.h"

/* Emulates calls on the signal state that the agent keeps for the target. 0: the kernel must make the call.
 */
static int emulate_signal_call(struct thread *t, long number, const uint64_t *args, long *result)
{
    /* The agent's own calls are on the kernel's state. */
    int is_agent = region_is_agent(t->translation.syscall_pc);
    switch (number) {
    case SYS_rt_sigprocmask:
        /* With several threads even libc's own calls must not block the signals that report protected
         * pages. */
        *result = signals_mask_in(t, &t->generated.app_mask, watch_several_threads() && !is_agent, args);
        return 1;
    case SYS_rt_sigaction:
        if (is_agent)
            return 0;
        *result = signals_action_call(t, args);
        signals_intercept_direct();
        return 1;
    case SYS_sigaltstack:
        return !is_agent && signals_altstack_call(t, t->generated.app_rsp, args, result);
    default:
        return 0;
    }
}

static enum syscall_way end_burst(struct thread *t, enum wire_end why, long number)
{
    t->translation.leave_end = (int)why;
    t->translation.leave_detail = (uint32_t)number;
    return SYSCALL_END;
}

/* Whether the thread should stay in the code cache as long as possible. */
static int keeps_translating(const struct thread *t)
{
    return agent_always_translated() || t->translation.counts;
}

/* A call that changes what a burst relies on: it ends the burst, or is executed natively by a single step. */
static enum syscall_way step_or_end(struct thread *t, long number, const uint64_t *args)
{
    if (!keeps_translating(t))
        return end_burst(t, WIRE_END_SYSCALL, number);
    t->burst.step_makes_thread = calls_makes_thread(number, args);
    if (t->burst.step_makes_thread && !t->native.creating_followed)
        count_add(&proc->count.unknown_threads, 1);
    return SYSCALL_STEP;
}

/* A child with a copy of the memory is not followed, unless libc's fork makes it. It may execute a program,
 * which is (exec_announce). */
static void note_child(const struct thread *t, uint64_t flags)
{
    if (!(flags & CLONE_VM) && keeps_translating(t) && session->follow && !process_forks())
        count_add(&proc->count.unknown_children, 1);
}

/* The trap of a step would reach the child, too. Without handlers it would be killed; if it shares the memory
 * it has no alternate stack, and its own may be too small for a signal's frame. (libc's threads have room.)
 */
static int child_must_not_trap(const struct thread *t, uint64_t flags)
{
    return (flags & CLONE_CLEAR_SIGHAND) ||
           ((flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM && !t->native.creating_followed);
}

/* A signal that is never blocked in translated code. The target may have blocked it to wait for it next. */
static int sends_fault_signal(uint64_t sig)
{
    return (int)sig > 0 && (int)sig <= SIGSYS && FAULT_SIGNALS & SIGNAL_BIT((int)sig);
}

/* Has rt_sigreturn lead back to the agent. 0: not possible. */
static int prepare_return(struct thread *t)
{
    enum arch_return how = arch_step_at_sigreturn(t->generated.app_rsp, &t->translation.return_trap_blocked);
    t->translation.return_triggers = how == ARCH_RETURN_TRIGGERS;
    return how != ARCH_RETURN_UNKNOWN;
}

enum syscall_way syscall_in_burst(struct thread *t, long number, const uint64_t *args, long *result)
{
    if (t->burst.is_probe) /* pages may be protected: the call must be diverted */
        return end_burst(t, WIRE_END_SYSCALL, number);
    if (number == SYSCALL_LEAVE && args[0] == LEAVE_MARK)
        return end_burst(t, WIRE_END_EXIT, number);
    if (number == SYSCALL_LEAVE && args[0] == CHANGE_MARK) {
        arch_code_changes(args[1], args[2]);
        return SYSCALL_PLAIN;
    }
    if (calls_must_leave_burst(t, number, args))
        return end_burst(t, WIRE_END_SYSCALL, number);
    calls_change_code(number, args);
    switch (number) {
    case SYS_exit_group:
        if (agent_records_all() || session->begins_full)
            burst_process_ends();
        return end_burst(t, WIRE_END_EXIT, number);
    case SYS_exit:
        return end_burst(t, WIRE_END_EXIT, number);
    case SYS_rt_sigreturn:
        return keeps_translating(t) && prepare_return(t) ? SYSCALL_RETURN
                                                         : end_burst(t, WIRE_END_SYSCALL, number);
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
        if (t->translation.counts && !agent_always_translated()) /* no burst follows */
            return end_burst(t, WIRE_END_EXIT, number);
        if (agent_records_all() || session->begins_full)
            burst_process_ends();
        t->burst.step_executes = t->burst.full && !t->translation.counts;
        return step_or_end(t, number, args);
    case SYS_prctl:
        if (args[0] == PR_SET_TSC) /* the agent may not be allowed to read it from now on */
            return end_burst(t, t->translation.counts ? WIRE_END_EXIT : WIRE_END_SYSCALL, number);
        return step_or_end(t, number, args);
    case SYS_kill:
    case SYS_tkill:
    case SYS_rt_sigqueueinfo:
        return sends_fault_signal(args[1]) ? step_or_end(t, number, args) : SYSCALL_MASKED;
    case SYS_tgkill:
    case SYS_rt_tgsigqueueinfo:
        return sends_fault_signal(args[2]) ? step_or_end(t, number, args) : SYSCALL_MASKED;
    case SYS_clone:
    case SYS_clone3:
        note_child(t, arch_clone_flags(number, args[0]));
        if (child_must_not_trap(t, arch_clone_flags(number, args[0]))) {
            if (calls_makes_thread(number, args))
                count_add(&proc->count.unknown_threads, 1);
            return end_burst(t, keeps_translating(t) ? WIRE_END_EXIT : WIRE_END_SYSCALL, number);
        }
        return step_or_end(t, number, args);
    case SYS_fork:
        note_child(t, 0);
        return step_or_end(t, number, args);
    case SYS_vfork:
    case SYS_arch_prctl:
    case SYS_seccomp:
    case SYS_rseq:
    case SYS_modify_ldt:
    case SYS_setrlimit:
        return step_or_end(t, number, args);
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
