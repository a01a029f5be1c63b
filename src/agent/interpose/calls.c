/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - functions for system calls that concern the agent: mappings, seccomp filters, processes. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include "agent/code/code.h"
#include "agent/divert/divert.h"
#include "agent/memory.h"
#include "agent/intercept/intercept.h"
#include "agent/interpose/interpose.h"
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"
#include "agent/watch/watch.h"

/* libc's own functions; see threads.c. */
static struct {
    int (*dlclose)(void *);
    int (*clone)(int (*)(void *), void *, int, void *, ...);
    long (*ptrace)(enum __ptrace_request, ...);
    long (*syscall)(long, ...);
} next;

void calls_find_next(void)
{
    next.dlclose = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
    next.ptrace = (long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "ptrace");
    next.syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    next.clone = (int (*)(int (*)(void *), void *, int, void *, ...))dlsym(RTLD_NEXT, "clone");
}

/* Another library may be mapped at the same place later, and match this one at all the places that are
 * compared. */
EXPORT int dlclose(void *library)
{
    if (!next.dlclose)
        calls_find_next();
    int result = next.dlclose ? next.dlclose(library) : -1;
    regions_mark_stale();
    return result;
}

static long errno_of(long result)
{
    if (!sys_failed(result))
        return result;
    errno = (int)-result;
    return -1;
}

/* An interposed function may be running in translated code. There it must not take the translator's lock, so
 * the dispatcher makes the change (CHANGE_MARK). */
static void code_changes(uint64_t address, uint64_t bytes)
{
    struct thread *t = thread_self();
    if (!regions_overlap_code(address, bytes))
        return;
    uint64_t before = signals_kernel_mask();
    signals_change_kernel_mask(SIG_BLOCK, ~FAULT_SIGNALS | SIGNAL_BIT(SIGTRAP));
    if (t && __atomic_load_n(&t->state, __ATOMIC_RELAXED) != THREAD_NATIVE)
        sys3(SYSCALL_LEAVE, CHANGE_MARK, address, bytes);
    if (!t || __atomic_load_n(&t->state, __ATOMIC_RELAXED) == THREAD_NATIVE)
        arch_code_changes(address, bytes);
    signals_change_kernel_mask(SIG_SETMASK, before);
}

/* In a process whose own syscall user dispatch may exempt libc, but not the agent (agent_shutdown): the call
 * is made where it would be natively. */
static long make_by_libc(long number, const long *a)
{
    if (!next.syscall)
        return syscall_undiverted(number, a);
    int before = errno;
    long result = next.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result == -1)
        result = -errno;
    errno = before;
    return result;
}

static int has_own_dispatch(void)
{
    return agent_gone && agent_off == WIRE_OFF_DISPATCH;
}

/* A program that makes code writable intends to change it, perhaps where nothing is compared. */
EXPORT int mprotect(void *address, size_t bytes, int protection)
{
    const long args[6] = {(long)address, (long)bytes, protection, 0, 0, 0};
    struct thread *t =
        agent_gone || !session || !session->watch || watch_several_threads() ? NULL : thread_self();
    if (t) {
        watch_block_signals(t);
        watch_unmapped((uint64_t)address, bytes, 0);
        watch_unblock_signals(t);
    }
    /* While pages are protected this call is diverted, and reports the change to watching: a burst that ends
     * right before it may protect pages. */
    long result = has_own_dispatch() ? make_by_libc(SYS_mprotect, args)
                  : agent_gone       ? syscall_undiverted(SYS_mprotect, args)
                                     : syscall_divertible(SYS_mprotect, args);
    if (!agent_off && session) /* an mprotect that fails half way has changed the first half */
        code_changes((uint64_t)address, bytes);
    return (int)errno_of(result);
}

/* Makes a call for the target. With one thread it is made from the agent's own text, where it is not
 * diverted. */
static long make_directly(long number, const long *a)
{
    if (has_own_dispatch())
        return make_by_libc(number, a);
    if (watch_several_threads())
        return syscall_divertible(number, a);
    struct thread *t = agent_off || !session || !session->watch ? NULL : thread_self();
    if (!t)
        return syscall_undiverted(number, a);
    watch_hold(t);
    calls_announce(t, number, (const uint64_t *)a);
    long result = syscall_undiverted(number, a);
    watch_release(t);
    return result;
}

static long make_call(long number, const long *a)
{
    long result = make_directly(number, a);
    struct span code[2];
    if (session && !agent_off)
        for (unsigned n = calls_code_changed(number, (const uint64_t *)a, code); n > 0; n--)
            code_changes(code[n - 1].address, code[n - 1].bytes);
    return result;
}

static void end_watching(struct thread *t, enum wire_unwatched why)
{
    watch_block_signals_native(t);
    watch_disable(t, why);
    watch_unblock_signals(t);
}

void calls_mapping_grows(void)
{
    struct thread *t = agent_off || !session || !session->watch ? NULL : thread_self();
    if (t)
        end_watching(t, WIRE_UNWATCHED_GROWS);
}

/* A call that makes such a child is executed natively (child_must_not_trap). Its caller need not wait for a
 * timer to return to translated code. The child does not come here. */
static void return_to_translated_after(int flags)
{
    struct thread *t = agent_off || !session ? NULL : thread_self();
    if (t && (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM && agent_always_translated() &&
        __atomic_load_n(&t->state, __ATOMIC_RELAXED) == THREAD_NATIVE)
        thread_trigger(t);
}

/* A process that shares the memory without being a thread: its system calls on protected pages would fail. If
 * no page is protected at the moment, this call is not diverted, so it is caught here. */
EXPORT int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
    va_list a;
    va_start(a, argument);
    void *parent_tid = va_arg(a, void *), *tls = va_arg(a, void *), *child_tid = va_arg(a, void *);
    va_end(a);
    struct thread *t = agent_off || !session || !session->watch ? NULL : thread_self();
    if (t && (flags & (CLONE_VM | CLONE_THREAD | CLONE_VFORK)) == CLONE_VM)
        end_watching(t, WIRE_UNWATCHED_ASYNC);
    if (!next.clone)
        calls_find_next();
    if (!next.clone)
        return (int)errno_of(-ENOSYS);
    int result = next.clone(function, stack, flags, argument, parent_tid, tls, child_tid);
    return_to_translated_after(flags);
    return result;
}

/* Whether this installs a filter. With a bad pointer it is one of the probes by which libraries find out what
 * the kernel supports. If the target has its signals back, a fault would be its own. Then a bad pointer
 * counts as a filter: what the agent does about one, it must do before. */
static int is_filter(long program)
{
    struct sock_fprog filter;
    if (signals_uninstalled())
        return program != 0;
    return target_read(&filter, (const void *)program, sizeof filter) == 0;
}

static int sets_filter(long operation, long argument)
{
    return operation == SECCOMP_SET_MODE_STRICT ||
           (operation == SECCOMP_SET_MODE_FILTER && is_filter(argument)) ||
           operation > SECCOMP_GET_NOTIF_SIZES;
}

/* The same for prctl, which knows no other modes. */
static int sets_mode(long mode, long program)
{
    return mode == SECCOMP_MODE_STRICT || (mode == SECCOMP_MODE_FILTER && is_filter(program));
}

/* Emulates calls on the signal state that the agent keeps for the target. 0: it is none of them. */
static int emulate_signal_call(long number, const long *a, uint64_t sp, long *result)
{
    const uint64_t *args = (const uint64_t *)a;
    if (number != SYS_rt_sigprocmask && number != SYS_rt_sigaction && number != SYS_sigaltstack)
        return 0;
    struct thread *t = agent_off || !session ? NULL : thread_self();
    if (!t)
        child_detach_copy();
    if (number == SYS_rt_sigprocmask && t)
        *result = signals_mask_call(t, args);
    else if (number == SYS_rt_sigaction && !(a[0] == 32 || a[0] == 33))
        *result = interposed_sigaction(args);
    else
        return number == SYS_sigaltstack && interposed_sigaltstack(t, sp, args, result);
    return 1;
}

EXPORT int prctl(int option, ...)
{
    va_list a;
    va_start(a, option);
    long b = va_arg(a, long), c = va_arg(a, long), d = va_arg(a, long), e = va_arg(a, long);
    va_end(a);
    int filters = option == PR_SET_SECCOMP;
    if (filters && sets_mode(b, c))
        agent_shutdown(WIRE_OFF_SECCOMP);
    if (option == SET_SYSCALL_USER_DISPATCH && b)
        agent_shutdown(WIRE_OFF_DISPATCH);
    long result = make_call(SYS_prctl, (long[6]){option, b, c, d, e, 0});
    if (filters && result == 0)
        agent_filter_installed();
    return (int)errno_of(result);
}

/* From now on another process sees each signal of this one before it is handled. */
EXPORT long ptrace(enum __ptrace_request request, ...)
{
    va_list a;
    va_start(a, request);
    pid_t pid = va_arg(a, pid_t);
    void *address = va_arg(a, void *), *data = va_arg(a, void *);
    va_end(a);
    if (request == PTRACE_TRACEME)
        agent_shutdown(WIRE_OFF_TRACED);
    if (!next.ptrace)
        calls_find_next();
    return next.ptrace ? next.ptrace(request, pid, address, data) : errno_of(-ENOSYS);
}

EXPORT ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals,
                                const struct iovec *remote, unsigned long remotes, unsigned long flags)
{
    return errno_of(other_memory_call(
        make_call, SYS_process_vm_readv,
        (long[6]){pid, (long)local, (long)locals, (long)remote, (long)remotes, (long)flags}));
}

EXPORT ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long locals,
                                 const struct iovec *remote, unsigned long remotes, unsigned long flags)
{
    return errno_of(other_memory_call(
        make_call, SYS_process_vm_writev,
        (long[6]){pid, (long)local, (long)locals, (long)remote, (long)remotes, (long)flags}));
}

EXPORT long syscall(long number64, ...)
{
    int number = (int)number64; /* the kernel ignores the upper half */
    va_list a;
    va_start(a, number64);
    long b = va_arg(a, long), c = va_arg(a, long), d = va_arg(a, long), e = va_arg(a, long),
         f = va_arg(a, long), g = va_arg(a, long);
    va_end(a);
    int by_prctl = number == SYS_prctl && b == PR_SET_SECCOMP,
        filters = by_prctl || (number == SYS_seccomp && b <= SECCOMP_SET_MODE_FILTER);
    if (by_prctl ? sets_mode(c, d) : number == SYS_seccomp && sets_filter(b, d))
        agent_shutdown(WIRE_OFF_SECCOMP);
    if (number == SYS_prctl && b == SET_SYSCALL_USER_DISPATCH && c)
        agent_shutdown(WIRE_OFF_DISPATCH);
    if (number == SYS_ptrace && b == PTRACE_TRACEME)
        agent_shutdown(WIRE_OFF_TRACED);
    long args[6] = {b, c, d, e, f, g}, result;
    if (emulate_signal_call(number, args, (uint64_t)__builtin_frame_address(0), &result))
        return errno_of(result);
    int executes = number == SYS_execve || number == SYS_execveat;
    struct executing executing;
    if (executes) {
        exec_announce((const char *)(number == SYS_execve ? b : c),
                      (char *const *)(number == SYS_execve ? d : e));
        exec_begins(&executing);
        long *at = number == SYS_execve ? &args[2] : &args[3];
        char *const *envp = (char *const *)*at;
        EXEC_FILTER_ENVIRONMENT(envp, {(const char *)(number == SYS_execve ? b : c),
                                       number == SYS_execve ? AT_FDCWD : (int)b, 0});
        *at = (long)envp;
    }
    result = number == SYS_process_vm_readv || number == SYS_process_vm_writev
                 ? other_memory_call(make_call, number, args)
                 : make_call(number, args);
    if (filters && !sys_failed(result))
        agent_filter_installed();
    if (executes)
        exec_failed(&executing);
    return errno_of(result);
}
