/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - how the agent comes to life in a process, and in its forked children. */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include "agent/agent.h"
#include "agent/sys/files.h"
#include "agent/sys/own.h"
#include "agent/sys/sys.h"

/* Another library may come to lie where this one was, and look the same wherever we compare. */
EXPORT int dlclose(void *library)
{
    static int (*next)(void *);
    if (!next)
        next = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
    int result = next ? next(library) : -1;
    regions_stale();
    return result;
}

static long errno_of(long result)
{
    if (!sys_failed(result))
        return result;
    errno = (int)-result;
    return -1;
}

/*
 * In a function that the target called, which may be translated: the translator's lock must not be taken
 * there then, and the dispatcher does it.
 */
static void code_changes(uint64_t address, uint64_t bytes)
{
    static const uint64_t all = ~FAULT_SIGNALS | SIGNAL_BIT(SIGTRAP);
    uint64_t before = 0;
    struct thread *t = thread_self();
    if (!regions_concern(address, bytes))
        return;
    sys4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    if (t && __atomic_load_n(&t->state, __ATOMIC_RELAXED) != THREAD_NATIVE)
        sys3(SYSCALL_LEAVE, CHANGE_MARK, address, bytes);
    if (!t || __atomic_load_n(&t->state, __ATOMIC_RELAXED) == THREAD_NATIVE)
        arch_code_changes(address, bytes);
    sys4(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
}

/* Whoever makes code writable means to change it, perhaps where we do not compare. */
EXPORT int mprotect(void *address, size_t bytes, int protection)
{
    const long args[6] = {(long)address, (long)bytes, protection, 0, 0, 0};
    struct thread *t = agent_gone || !session || !session->watch || watch_many() ? NULL : thread_self();
    if (t) {
        watch_quiet(t);
        watch_unmapped((uint64_t)address, bytes, 0);
        watch_quiet_end(t);
    }
    /* Diverted while pages are closed, it tells watching itself: a burst that ends right here closes some. */
    long result = agent_gone ? calls_inside(SYS_mprotect, args) : calls_outside(SYS_mprotect, args);
    if (!agent_off && session) /* one that fails half way has changed the first half */
        code_changes((uint64_t)address, bytes);
    return (int)errno_of(result);
}

/*
 * A filter of system calls may kill for those that the agent makes, and dispatch of the target's own would
 * send it those, even the ones that our handlers make for signals of the target's: it goes for good before
 * there is one, and the target gets its signals by itself from then on. Unless a filter comes while other
 * threads are in bursts or calls that do not end: they need our handlers, and most filters are for the caller
 * alone.
 */
static void filter_is_inherited(void)
{
    static int is_silent;
    if (session && !is_silent) {
        int vfork_child = (uint32_t)sys0(SYS_getpid) != process_id;
        exec_silences(vfork_child);
        is_silent = !vfork_child;
    }
}

void go_for_good(enum wire_disabled why)
{
    if (why == WIRE_OFF_SECCOMP)
        filter_is_inherited();
    if (agent_gone || !session)
        return;
    if ((uint32_t)sys0(SYS_getpid) != process_id) { /* a vfork child, whose memory is its parent's */
        signals_give_back();
        return;
    }
    struct thread *t = thread_self();
    int alone = 1, silent = 1;
    if (t && !agent_off) {
        watch_quiet_native(t);
        watch_off(t, WIRE_UNWATCHED_DISPATCH); /* of no thread are calls diverted any more */
        watch_quiet_end(t);
    }
    agent_disable(why);
    burst_forbid(1);
    if (t)
        thread_leaves_burst(t);
    if (agent_lives)
        alone = threads_retire(&silent);
    if (!alone && why == WIRE_OFF_SECCOMP)
        return;
    signals_hand_back(t ? t : thread_own(), silent);
    agent_gone = 1;
}

/* For the target: with one thread, from our own text, where it is not diverted (calls.c). */
static long make_it(long number, const long *a)
{
    if (watch_many())
        return calls_outside(number, a);
    struct thread *t = agent_off || !session || !session->watch ? NULL : thread_self();
    if (!t)
        return calls_inside(number, a);
    watch_hold(t);
    calls_announce(t, number, (const uint64_t *)a);
    long result = calls_inside(number, a);
    watch_release(t);
    return result;
}

static long make_call(long number, const long *a)
{
    long result = make_it(number, a);
    struct span code[2];
    if (session && !agent_off)
        for (unsigned n = calls_code_of(number, (const uint64_t *)a, code); n > 0; n--)
            code_changes(code[n - 1].address, code[n - 1].bytes);
    return result;
}

/* A process of its own in our memory, whose system calls on a closed page would fail: not seen otherwise
 * where no page is closed just now. */
EXPORT int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
    static int (*next)(int (*)(void *), void *, int, void *, ...);
    va_list a;
    va_start(a, argument);
    void *parent_tid = va_arg(a, void *), *tls = va_arg(a, void *), *child_tid = va_arg(a, void *);
    va_end(a);
    struct thread *t = agent_off || !session || !session->watch ? NULL : thread_self();
    if (t && (flags & (CLONE_VM | CLONE_THREAD | CLONE_VFORK)) == CLONE_VM) {
        watch_quiet_native(t);
        watch_off(t, WIRE_UNWATCHED_ASYNC);
        watch_quiet_end(t);
    }
    if (!next)
        next = (int (*)(int (*)(void *), void *, int, void *, ...))dlsym(RTLD_NEXT, "clone");
    if (!next)
        return (int)errno_of(-ENOSYS);
    return next(function, stack, flags, argument, parent_tid, tls, child_tid);
}

/* Not one of the questions by which libraries find out what the kernel can do: a bad pointer is. Where the
 * target has its signals back, a fault would be its own, and nothing is to be done before there is a filter.
 */
static int is_filter(long program)
{
    struct sock_fprog filter;
    return !signals_handed_back() && safe_copy(&filter, (const void *)program, sizeof filter) == 0;
}

static int sets_filter(long operation, long argument)
{
    return operation == SECCOMP_SET_MODE_STRICT ||
           (operation == SECCOMP_SET_MODE_FILTER && is_filter(argument)) ||
           operation > SECCOMP_GET_NOTIF_SIZES;
}

/* prctl's: others it does not know. */
static int sets_mode(long mode, long program)
{
    return mode == SECCOMP_MODE_STRICT || (mode == SECCOMP_MODE_FILTER && is_filter(program));
}

/* Calls on what the agent keeps for the target. 0: it is none of them. */
static int make_kept(long number, const long *a, uint64_t sp, long *result)
{
    const uint64_t *args = (const uint64_t *)a;
    if (number != SYS_rt_sigprocmask && number != SYS_rt_sigaction && number != SYS_sigaltstack)
        return 0;
    struct thread *t = agent_off || !session ? NULL : thread_self();
    if (!t)
        child_settles();
    if (number == SYS_rt_sigprocmask && t)
        *result = signals_mask_call(t, args);
    else if (number == SYS_rt_sigaction && !(a[0] == 32 || a[0] == 33))
        *result = signals_action_held(args);
    else
        return number == SYS_sigaltstack && signals_altstack_call(t, sp, args, result);
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
        go_for_good(WIRE_OFF_SECCOMP);
    if (option == SET_SYSCALL_USER_DISPATCH && b)
        go_for_good(WIRE_OFF_DISPATCH);
    long result = make_call(SYS_prctl, (long[6]){option, b, c, d, e, 0});
    if (filters && result == 0)
        filter_is_inherited();
    return (int)errno_of(result);
}

EXPORT long syscall(long number64, ...)
{
    int number = (int)number64; /* all that the kernel looks at */
    va_list a;
    va_start(a, number64);
    long b = va_arg(a, long), c = va_arg(a, long), d = va_arg(a, long), e = va_arg(a, long),
         f = va_arg(a, long), g = va_arg(a, long);
    va_end(a);
    int by_prctl = number == SYS_prctl && b == PR_SET_SECCOMP,
        filters = by_prctl || (number == SYS_seccomp && b <= SECCOMP_SET_MODE_FILTER);
    if (by_prctl ? sets_mode(c, d) : number == SYS_seccomp && sets_filter(b, d))
        go_for_good(WIRE_OFF_SECCOMP);
    if (number == SYS_prctl && b == SET_SYSCALL_USER_DISPATCH && c)
        go_for_good(WIRE_OFF_DISPATCH);
    long args[6] = {b, c, d, e, f, g}, result;
    if (make_kept(number, args, (uint64_t)__builtin_frame_address(0), &result))
        return errno_of(result);
    int executes = number == SYS_execve || number == SYS_execveat;
    struct executing executing;
    if (executes) {
        exec_begins(&executing);
        long *at = number == SYS_execve ? &args[2] : &args[3];
        char *const *envp = (char *const *)*at;
        EXEC_SILENCE(envp);
        *at = (long)envp;
    }
    result = make_call(number, args);
    if (filters && !sys_failed(result))
        filter_is_inherited();
    if (executes)
        exec_failed(&executing);
    return errno_of(result);
}

/* From the descriptor, while there is one. */
static uint8_t *map_slot(int fd, uint32_t i)
{
    uint64_t at = session->slot_offset + i * session->slot_bytes;
    return fd >= 0 ? own_map_session(fd, at, session->slot_bytes)
                   : own_map_session_again(at, session->slot_bytes);
}

static void describe_process(void)
{
    proc->start_ns = sys_clock_ns(CLOCK_MONOTONIC);
    proc->ppid = (uint32_t)sys0(SYS_getppid);
    long n = sys3(SYS_readlink, "/proc/self/exe", proc->exe, sizeof proc->exe - 1);
    proc->exe[n > 0 ? n : 0] = 0;
    uint64_t state = proc->start_ns ^ (uint64_t)process_id << 40 ^ session->seed;
    proc->cookie = random_next(&state);
    proc->mapped_at = (uint64_t)proc;
    __atomic_store_n(&proc->pid, process_id, __ATOMIC_RELEASE);
}

/* Claims a slot and maps it. fd: the session's, or -1: of a forked child. */
static int attach(int fd)
{
    const struct wire_proc *parent = proc;
    for (uint32_t i = 0; i < session->nslots; i++) {
        if (__atomic_load_n(&session->slots_taken, __ATOMIC_RELAXED) >> i & 1)
            continue;
        uint8_t *p = map_slot(fd, i);
        if (!p)
            return -WIRE_OFF_MEMORY;
        struct wire_proc *candidate = (struct wire_proc *)(void *)p;
        uint32_t expected = WIRE_PROC_FREE;
        if (__atomic_compare_exchange_n(&candidate->state, &expected, WIRE_PROC_LIVE, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            __atomic_fetch_or(&session->slots_taken, UINT64_C(1) << i, __ATOMIC_SEQ_CST);
            slot = p;
            proc = candidate;
            own_begin(parent);
            burst_attached();
            if (!proc->template_used)
                proc->template_used = 8;
            describe_process();
            __atomic_fetch_add(&session->attached, 1, __ATOMIC_SEQ_CST);
            return 0;
        }
        sys2(SYS_munmap, p, session->slot_bytes);
    }
    __atomic_fetch_add(&session->refused_slots, 1, __ATOMIC_SEQ_CST);
    return -WIRE_OFF_SLOTS;
}

/* The collector asks the kernel about processes by their numbers: it would ask about, and signal, others. */
static int is_foreign(void)
{
    int foreign = surroundings_foreign();
    if (foreign)
        __atomic_fetch_add(&session->refused_pids, 1, __ATOMIC_SEQ_CST);
    return foreign;
}

/* What there is for all programs to pay for, however short they run; the caller is the only thread. */
static void tell_start(uint64_t began_ns)
{
    proc->count.start_cpu_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

/* In a forked child: the parent's slot is not ours. */
static void forked(void)
{
    if (!session)
        return;
    uint64_t began_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (!agent_gone)
        process_id = (uint32_t)sys0(SYS_getpid);
    const struct wire_proc *parent = proc;
    fork_made();
    watch_forked();
    if (agent_off || !session->follow || session->stop || is_foreign() || attach(-1)) {
        child_is_left();
        return;
    }
    child_is_followed();
    burst_forked();
    rseq_forked();
    arch_forked();
    regions_forked(parent);
    threads_forked();
    tell_start(began_ns);
}

static struct wire_session *map_session(int fd)
{
    struct wire_session *s = own_map_session(fd, 0, WIRE_SESSION_BYTES);
    if (!s || (s->magic == WIRE_MAGIC && s->version == WIRE_VERSION))
        return s;
    sys2(SYS_munmap, s, WIRE_SESSION_BYTES);
    return NULL;
}

static const struct translator_ops for_translator = {
    .system_call = syscall_in_burst,
    .counted = count_take,
    .marked = count_marked,
    .call_may_wait = count_pause,
    .call_begins = count_call,
    .call_ends = count_called,
    .work_begins = count_away,
    .work_ends = count_back,
};

static void describe_burst(const struct thread *t, struct wire_desc *d)
{
    d->own_ns = watch_burst_own_ns(t);
    d->inside_refs = watch_inside_refs();
}

static const struct burst_ops for_bursts = {
    .begins = watch_burst_begins,
    .entered = watch_enters,
    .left = watch_leaves,
    .describe = describe_burst,
    .asks = watch_asks,
    .ask = watch_ask,
    .probe_ended = watch_mini_end,
};

static int start(int fd)
{
    int why = attach(fd);
    if (why == 0)
        why = -(int)surroundings_forbid();
    if (why != 0 || (why = arch_init(&for_translator)) != 0)
        return why;
    burst_init(&for_bursts);
    rseq_init();
    count_init();
    agent_set_stays(session->mode == WIRE_MODE_FULL || count_always());
    children_init();
    signals_dispatch_init();
    if (threads_init() || signals_init() || pthread_atfork(files_fork_begins, files_fork_ends, forked))
        return -WIRE_OFF_TROUBLE;
    struct thread *t = thread_new();
    if (!t)
        return -WIRE_OFF_MEMORY;
    regions_read();
    agent_off = 0;
    agent_lives = 1;
    return thread_attach(t) ? -WIRE_OFF_MEMORY : 0;
}

__attribute__((constructor)) static void init(void)
{
    const char *name = getenv(WIRE_ENV);
    uint64_t began_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    exec_init();
    if (!name || !*name)
        return;
    int fd = (int)sys3(SYS_open, name, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    session = map_session(fd);
    process_id = (uint32_t)sys0(SYS_getpid);
    if (session && !session->stop) {
        if (!session->follow)
            unsetenv(WIRE_ENV);
        int why = is_foreign() ? -WIRE_OFF_SLOTS : start(fd);
        if (why) {
            agent_off = -why;
            if (proc) {
                proc->count.disabled = (uint64_t)-why;
                sys2(SYS_munmap, slot + session->template_offset,
                     session->slot_bytes - session->template_offset);
            }
        }
        if (proc)
            tell_start(began_ns);
    }
    sys1(SYS_close, fd);
}
