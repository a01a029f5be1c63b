/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - the exec family. A thread that is about to execute a program announces it first
 * (wire_trigger.hold). Programs that libc executes by itself (posix_spawn, system, popen) are executed by
 * children that are not followed.
 *
 * The next program inherits which signals are ignored and blocked. Of those that the agent needs, the kernel
 * has other dispositions, and does not block them (hidden signals, signals/masks.c). Ignored ones are set to
 * ignored in the kernel right before the exec. Hidden ones are not blocked then, since the program would
 * inherit a trigger that is pending: the agent in the next program learns of them from the announcement. A
 * child of posix_spawn has no pending signal, so the calling thread blocks them during the call.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/burst/burst.h"
#include "agent/interpose/interpose.h"
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch.h"

typedef int (*with_environment)(const char *, char *const[], char *const[]);
typedef int (*without)(const char *, char *const[]);
typedef int (*by_descriptor)(int, char *const[], char *const[]);
typedef int (*from_folder)(int, const char *, char *const[], char *const[], int);
typedef int (*spawning)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                        char *const[], char *const[]);

static struct {
    with_environment execve, execvpe;
    without execv, execvp;
    by_descriptor fexecve;
    from_folder execveat; /* since glibc 2.34 */
    spawning posix_spawn, posix_spawnp;
} next;

void exec_init(void)
{
    exec_library_init();
    next.execve = (with_environment)dlsym(RTLD_NEXT, "execve");
    next.execvpe = (with_environment)dlsym(RTLD_NEXT, "execvpe");
    next.execv = (without)dlsym(RTLD_NEXT, "execv");
    next.execvp = (without)dlsym(RTLD_NEXT, "execvp");
    next.fexecve = (by_descriptor)dlsym(RTLD_NEXT, "fexecve");
    next.execveat = (from_folder)dlsym(RTLD_NEXT, "execveat");
    next.posix_spawn = (spawning)dlsym(RTLD_NEXT, "posix_spawn");
    next.posix_spawnp = (spawning)dlsym(RTLD_NEXT, "posix_spawnp");
}

/* Ensures that this thread needs none of the signals that the kernel is about to ignore or to block: no burst
 * ends in a fault, no page is protected, no call is diverted; others: that no other thread does. 0: not
 * possible. */
static int quiesce(struct executing *e, int others)
{
    struct thread *t = e->thread;
    /* It has its own signal handlers, and none of the agent's events. */
    if (!agent_active || (uint32_t)sys0(SYS_getpid) != process_id)
        return 1;
    int could_fault = others && watch_used() && watch_several_threads();
    if (t)
        t->start.forbids_bursts = 1;
    burst_forbid(1);
    e->forbids = 1;
    if (t) {
        watch_block_signals_native(t);
        if (watch_several_threads())
            watch_disable(t, WIRE_UNWATCHED_SIGNALS);
        else
            watch_pause(t);
        watch_unblock_signals(t);
    }
    /* A diverted call whose SIGSYS is ignored is lost, and its disposition reset. */
    return !others || ((!could_fault || threads_await_delivery()) && threads_await_native());
}

static void resume(struct executing *e)
{
    struct thread *t = e->thread;
    if (!e->forbids)
        return;
    burst_forbid(-1);
    if (t)
        t->start.forbids_bursts = 0;
    watch_block_signals(t);
    if (t && !agent_off) { /* its trigger may have arrived while it was ignored */
        if (agent_always_translated())
            thread_trigger(t);
        else
            thread_arm(t);
    }
    watch_unblock_signals(t);
}

/* hidden: signals to block, too. */
static void begin(struct executing *own, uint64_t hidden)
{
    struct thread *t = agent_off || !session ? NULL : thread_self();
    struct executing *e = t ? &t->start.executing : own;
    own->thread = t;
    if (t)
        exec_undo(t); /* a handler has jumped out of an earlier exec, or interrupts it */
    *e = (struct executing){.thread = t};
    thread_exec_begins(e->thread);
    uint64_t ignored = signals_target_ignores();
    if (!ignored && !hidden)
        return;
    if (!quiesce(e, ignored != 0)) {
        resume(e);
        e->forbids = 0;
        return;
    }
    signals_set_ignored(ignored, 1);
    e->ignored = ignored;
    signals_change_kernel_mask(SIG_BLOCK, hidden);
    e->blocked = hidden;
}

void exec_begins(struct executing *own)
{
    begin(own, 0);
}

static void undo(struct executing *e)
{
    struct executing done = *e;
    *e = (struct executing){.thread = NULL};
    signals_change_kernel_mask(SIG_UNBLOCK, done.blocked);
    signals_set_ignored(done.ignored, 0);
    resume(&done);
    thread_exec_failed(done.thread);
}

void exec_failed(struct executing *own)
{
    undo(own->thread ? &own->thread->start.executing : own);
}

void exec_undo(struct thread *t)
{
    if (t->start.executing.thread)
        undo(&t->start.executing);
}

/* Notes that process pid executes a program; hidden: for its agent, see exec_hidden_signals. */
static void announce(uint32_t pid, const char *path, char *const *envp, uint64_t hidden)
{
    int missing = exec_library_missing();
    /* The program may be unable to open the session, and say nothing. */
    if (surroundings_other_pid_namespace())
        __atomic_fetch_add(&session->refused_pids, 1, __ATOMIC_SEQ_CST);
    else if (missing)
        __atomic_fetch_add(&session->refused_roots, 1, __ATOMIC_SEQ_CST);
    uint32_t n = __atomic_fetch_add(&session->executions, 1, __ATOMIC_SEQ_CST);
    struct wire_execution *e = &session->execution[n % WIRE_MAX_EXECUTIONS];
    __atomic_store_n(&e->pid, 0, __ATOMIC_SEQ_CST);
    e->number = n;
    size_t last = sizeof e->path - 1;
    e->path[path ? last - target_read(e->path, path, last) : 0] = 0; /* as far as it is readable */
    e->hidden = hidden;
    e->lacks = missing || exec_lists_libraries(envp) ? WIRE_LACKS_NOTHING : exec_lacks(envp);
    __atomic_store_n(&e->pid, pid, __ATOMIC_RELEASE);
}

static int announces(void)
{
    return session && !agent_gone && session->follow && !exec_session_hidden();
}

/* In a child with a copy of its parent's memory that the parent's agent counted: it is followed again. */
static void note_execution(void)
{
    static int is_noted;
    if (is_noted || !child_detach_copy() || proc->pid != process_id)
        return;
    is_noted = 1;
    uint64_t n = __atomic_load_n(&proc->count.unknown_children, __ATOMIC_RELAXED);
    while (n > 0 && !__atomic_compare_exchange_n(&proc->count.unknown_children, &n, n - 1, 0,
                                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

void exec_announce(const char *path, char *const *envp)
{
    if (!announces())
        return;
    note_execution();
    struct thread *t = agent_off ? NULL : thread_self_by_key(); /* of a vfork child: its parent */
    announce((uint32_t)sys0(SYS_getpid), path, envp, t ? signals_hidden(t, signals_kernel_mask()) : 0);
}

uint64_t exec_hidden_signals(void)
{
    uint32_t pid = (uint32_t)sys0(SYS_getpid), n = __atomic_load_n(&session->executions, __ATOMIC_SEQ_CST);
    for (uint32_t i = 1; i <= WIRE_MAX_EXECUTIONS && i <= n; i++) {
        struct wire_execution *e = &session->execution[(n - i) % WIRE_MAX_EXECUTIONS];
        if (__atomic_load_n(&e->pid, __ATOMIC_ACQUIRE) == pid && e->hidden != WIRE_SPAWNED) {
            uint64_t hidden = e->hidden;
            e->hidden = 0; /* the process may execute the next program without announcing it */
            return hidden;
        }
    }
    return 0;
}

/* Calls libc's own function of that name, which only returns if it fails. */
#define EXECUTE(name, ...)                                                    \
    do {                                                                      \
        if (!next.name)                                                       \
            exec_init(); /* not profiled, or called before the constructor */ \
        if (!next.name) {                                                     \
            errno = ENOSYS;                                                   \
            return -1;                                                        \
        }                                                                     \
        struct executing executing;                                           \
        exec_begins(&executing);                                              \
        int result = next.name(__VA_ARGS__);                                  \
        exec_failed(&executing);                                              \
        return result;                                                        \
    } while (0)

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    EXEC_FILTER_ENVIRONMENT(envp, {path, AT_FDCWD, 0});
    exec_announce(path, envp);
    EXECUTE(execve, path, argv, envp);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    EXEC_FILTER_ENVIRONMENT(envp, {file, AT_FDCWD, 1});
    exec_announce(file, envp);
    EXECUTE(execvpe, file, argv, envp);
}

EXPORT int execv(const char *path, char *const argv[])
{
    if (exec_filters((struct program){path, AT_FDCWD, 0}, environ))
        return execve(path, argv, environ);
    exec_announce(path, environ);
    EXECUTE(execv, path, argv);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    if (exec_filters((struct program){file, AT_FDCWD, 1}, environ))
        return execvpe(file, argv, environ);
    exec_announce(file, environ);
    EXECUTE(execvp, file, argv);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    EXEC_FILTER_ENVIRONMENT(envp, {"", fd, 0});
    exec_announce(NULL, envp);
    EXECUTE(fexecve, fd, argv, envp);
}

EXPORT int execveat(int folder, const char *path, char *const argv[], char *const envp[], int flags)
{
    EXEC_FILTER_ENVIRONMENT(envp, {path, folder, 0});
    exec_announce(NULL, envp);
    EXECUTE(execveat, folder, path, argv, envp, flags);
}

static int spawn(spawning libc, pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    struct executing executing;
    const struct thread *t = agent_off || !session ? NULL : thread_self();
    if (!libc)
        return ENOSYS;
    begin(&executing, t ? signals_hidden(t, signals_kernel_mask()) : 0);
    pid_t child;
    int result = libc(&child, file, actions, attributes, argv, envp);
    exec_failed(&executing);
    if (result == 0 && announces()) /* perhaps after the child has announced its next program */
        announce((uint32_t)child, file, envp, WIRE_SPAWNED);
    if (result == 0 && pid)
        *pid = child;
    return result;
}

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
                       const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                       char *const envp[restrict])
{
    if (!next.posix_spawn)
        exec_init();
    EXEC_FILTER_ENVIRONMENT(envp, {path, AT_FDCWD, 0});
    return spawn(next.posix_spawn, pid, path, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                        const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                        char *const envp[restrict])
{
    if (!next.posix_spawnp)
        exec_init();
    EXEC_FILTER_ENVIRONMENT(envp, {file, AT_FDCWD, 1});
    return spawn(next.posix_spawnp, pid, file, actions, attributes, argv, envp);
}

/* Number of arguments including the first and the terminating NULL. */
static size_t count_arguments(const char *first, va_list list)
{
    size_t n = 1;
    for (const char *a = first; a; a = va_arg(list, const char *))
        n++;
    return n;
}

/* Copies the arguments `first, ...` into an array argv on the caller's stack. */
#define ARGUMENTS(list)                                                \
    va_list list;                                                      \
    va_start(list, first);                                             \
    char **argv = alloca(count_arguments(first, list) * sizeof *argv); \
    va_end(list);                                                      \
    va_start(list, first);                                             \
    argv[0] = (char *)(uintptr_t)first;                                \
    for (size_t i = 0; argv[i]; i++)                                   \
    argv[i + 1] = va_arg(list, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
    ARGUMENTS(list);
    va_end(list);
    return execv(path, argv);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    ARGUMENTS(list);
    va_end(list);
    return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    ARGUMENTS(list);
    char *const *envp = va_arg(list, char *const *);
    va_end(list);
    return execve(path, argv, envp);
}
