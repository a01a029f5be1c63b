/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - see target.h for what a target notices of all this: nothing, if it does not look for it. */
#include "collect/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect/launch.h"
#include "collect/signals.h"

/* The keyboard's reach a child by themselves; others that are sent to us are meant for it. */
static const int keyboard[] = {SIGINT, SIGQUIT}, forwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
#define STOP_PAUSE_NS 20000 /* a running thread stops at its next interrupt, at the latest */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

uint64_t target_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- CPUs --- */

struct thread_cpus {
    pid_t tid;
    cpu_set_t cpus;
};

/* Calls each for every thread of the process; the first nonzero result ends it. */
static int each_thread(pid_t pid, int (*each)(void *ctx, pid_t tid), void *ctx)
{
    char path[64];
    struct dirent *entry;
    int result = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return -ESRCH;
    while (result == 0 && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            result = each(ctx, (pid_t)atoi(entry->d_name));
    closedir(folder);
    return result;
}

struct cpus_before {
    struct thread_cpus *list;
    size_t n;
    const cpu_set_t *now;
    int failed;
};

static int confine(void *ctx, pid_t tid)
{
    struct cpus_before *b = ctx;
    struct thread_cpus *more = reallocarray(b->list, b->n + 1, sizeof *more);
    if (!more)
        return -ENOMEM;
    b->list = more;
    more[b->n].tid = tid;
    if (sched_getaffinity(tid, sizeof(cpu_set_t), &more[b->n].cpus) != 0)
        return 0; /* it has ended */
    if (sched_setaffinity(tid, sizeof(cpu_set_t), b->now) != 0) {
        b->failed = errno;
        return errno == ESRCH ? 0 : -errno;
    }
    b->n++;
    return 0;
}

/* Each thread gets what it had; one that we do not know, what the first had. */
static int set_free(void *ctx, pid_t tid)
{
    const struct cpus_before *b = ctx;
    const cpu_set_t *cpus = &b->list[0].cpus;
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].tid == tid)
            cpus = &b->list[i].cpus;
    sched_setaffinity(tid, sizeof *cpus, cpus);
    return 0;
}

/*
 * A process that waits till we let go of the target, or die: either closes the pipe. Then it gives the target
 * its CPUs back, so that not even SIGKILL leaves it confined.
 */
static int start_guardian(struct target *t, const struct cpus_before *before, struct error *err)
{
    char nothing;
    if (pipe2(t->guard, O_CLOEXEC) != 0)
        return error_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    t->guardian = fork();
    if (t->guardian == 0) {
        int pipe_end = t->guard[0];
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        setpgid(0, 0); /* what a terminal, or a kill of the group, does is not for it */
        if (pipe_end > 0)
            close_range(0, (unsigned)pipe_end - 1, 0);
        close_range((unsigned)pipe_end + 1, ~0u, 0);
        while (read(pipe_end, &nothing, 1) < 0 && errno == EINTR)
            ;
        each_thread(t->pid, set_free, (void *)before);
        _exit(0);
    }
    int code = t->guardian < 0 ? -errno : 0;
    close(t->guard[0]);
    t->guard[0] = -1;
    return code == 0 ? 0 : error_set(err, code, "cannot start a process: %s", strerror(-code));
}

/* --- start, attach, release --- */

static void take_signals(struct target *t)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    for (size_t i = 0; i < COUNT(keyboard); i++)
        sigaddset(&ours, keyboard[i]);
    for (size_t i = 0; i < COUNT(forwarded); i++)
        sigaddset(&ours, forwarded[i]);
    sigprocmask(SIG_BLOCK, &ours, &t->mask);
    t->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void give_signals_back(struct target *t)
{
    struct signalfd_siginfo info;
    /* Those that came after the last look would kill us now; the target is gone, so they are nobody's. */
    while (t->signals >= 0 && read(t->signals, &info, sizeof info) == sizeof info)
        ;
    if (t->signals >= 0)
        close(t->signals);
    sigprocmask(SIG_SETMASK, &t->mask, NULL);
}

/* For the child, between fork and exec. */
static struct target_setup child_setup;

static void prepare_child(void)
{
    sched_setaffinity(0, sizeof *child_setup.cpus, child_setup.cpus);
    if (child_setup.silent) {
        int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
    } else if (child_setup.output_fd >= 0) {
        dup2(child_setup.output_fd, STDOUT_FILENO);
    }
}

static void close_all(struct target *t)
{
    if (t->pidfd >= 0)
        close(t->pidfd);
    if (t->guard[1] >= 0)
        close(t->guard[1]);
    if (t->guardian > 0)
        while (waitpid(t->guardian, NULL, 0) < 0 && errno == EINTR)
            ;
    free(t->stopped);
    give_signals_back(t);
}

int target_start(struct target *t, char **argv, const struct target_setup *setup, struct error *err)
{
    struct thread_cpus ours = {.cpus = *setup->all};
    struct cpus_before before = {&ours, 1, NULL, 0};
    *t = (struct target){.child = 1, .pidfd = -1, .guard = {-1, -1}};
    take_signals(t);
    child_setup = *setup;
    int code = launch(argv, NULL, NULL, &t->mask, prepare_child, &t->pid, err);
    if (code != 0) {
        give_signals_back(t);
        return code;
    }
    t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
    ours.tid = t->pid;
    if (t->pidfd < 0 || t->signals < 0)
        code = error_set(err, -errno, "cannot watch process %d: %s", t->pid, strerror(errno));
    else
        code = start_guardian(t, &before, err);
    if (code != 0) { /* it runs all the same, and as it would alone: see it to its end */
        each_thread(t->pid, set_free, &before);
        while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        close_all(t);
    }
    return code;
}

/* /proc/PID/mem opens exactly for those who may ptrace. */
static int may_trace(pid_t pid, struct error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (errno == ENOENT || errno == ESRCH)
        return error_set(err, -ESRCH, "there is no process %d", pid);
    return error_set(
        err, -EPERM,
        "no permission to stop process %d: be its user or root, and see that kernel.yama.ptrace_scope "
        "is 0 or that you are root",
        pid);
}

int target_attach(struct target *t, pid_t pid, const cpu_set_t *cpus, struct error *err)
{
    struct cpus_before before = {.now = cpus};
    *t = (struct target){.pid = pid, .pidfd = -1, .guard = {-1, -1}};
    int code = may_trace(pid, err);
    if (code != 0)
        return code;
    take_signals(t);
    t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (t->pidfd < 0 || t->signals < 0) {
        code = error_set(err, -errno, "cannot watch process %d: %s", pid, strerror(errno));
    } else if ((code = each_thread(pid, confine, &before)) != 0 || before.n == 0) {
        code = error_set(err, code ? code : -ESRCH, "cannot keep process %d off the Pirate's CPU: %s", pid,
                         strerror(code ? -code : ESRCH));
    } else {
        code = start_guardian(t, &before, err);
    }
    if (code != 0) {
        if (before.n > 0)
            each_thread(pid, set_free, &before);
        close_all(t);
    }
    free(before.list); /* the guardian has a copy */
    return code;
}

void target_release(struct target *t)
{
    target_continue(t);
    close_all(t);
}

/* --- waiting --- */

static void note_end(struct target *t, int status, const struct rusage *usage)
{
    t->ended = 1;
    t->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    t->cpu_seconds = (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec * 1e-6 +
                     (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec * 1e-6;
}

static int see_end(struct target *t)
{
    struct rusage usage;
    int status;
    struct pollfd end = {.fd = t->pidfd, .events = POLLIN};
    if (t->ended)
        return 1;
    if (poll(&end, 1, 0) != 1)
        return 0;
    if (!t->child)
        t->ended = 1;
    else if (wait4(t->pid, &status, WNOHANG, &usage) == t->pid && !WIFSTOPPED(status))
        note_end(t, status, &usage);
    return t->ended;
}

static int is_forwarded(int number)
{
    for (size_t i = 0; i < COUNT(forwarded); i++)
        if (forwarded[i] == number)
            return 1;
    return 0;
}

/* -EINTR if one of them is to end our work. */
static int pass_signals_on(const struct target *t)
{
    struct signalfd_siginfo info;
    int result = 0;
    while (read(t->signals, &info, sizeof info) == sizeof info) {
        int number = (int)info.ssi_signo;
        if (!t->child)
            result = number == SIGCHLD ? result : -EINTR;
        /* The kernel's own (a closed terminal) reach the whole group, and so does kill(0) of a descendant. */
        else if (is_forwarded(number) && info.ssi_code <= 0 && !signals_descends((pid_t)info.ssi_pid, t->pid))
            kill(t->pid, number);
    }
    return result;
}

int target_wait(struct target *t, uint64_t until_ns)
{
    struct pollfd fds[2] = {{.fd = t->pidfd, .events = POLLIN}, {.fd = t->signals, .events = POLLIN}};
    for (;;) {
        if (see_end(t))
            return 1;
        uint64_t now = target_now_ns();
        if (now >= until_ns)
            return 0;
        struct timespec rest = {(time_t)((until_ns - now) / 1000000000u),
                                (long)((until_ns - now) % 1000000000u)};
        if (ppoll(fds, 2, until_ns == UINT64_MAX ? NULL : &rest, NULL) > 0 && fds[1].revents &&
            pass_signals_on(t) == -EINTR)
            return -EINTR;
    }
}

int target_cpu_ns(const struct target *t, uint64_t *ns)
{
    clockid_t clock;
    struct timespec now;
    int code = clock_getcpuclockid(t->pid, &clock);
    if (code != 0 || clock_gettime(clock, &now) != 0)
        return -ESRCH;
    *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return 0;
}

/* --- stopping --- */

static int is_running(pid_t pid, pid_t tid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *after = strrchr(text, ')');
    return after && after[1] == ' ' && after[2] == 'R';
}

/*
 * Threads that were stopped and have been killed since (another one called exit) must be reaped by us, their
 * tracer, before their process can end.
 */
static void reap_killed(const struct target *t)
{
    int status;
    for (size_t i = 0; i < t->nstopped; i++)
        if (t->stopped[i].tid != t->pid)
            waitpid(t->stopped[i].tid, &status, __WALL | WNOHANG);
}

/* Waits for a thread that was asked to stop. 1: it stopped, 0: it ended. */
static int wait_for_stop(struct target *t, pid_t tid, int *signal)
{
    const struct timespec pause = {0, STOP_PAUSE_NS};
    struct rusage usage;
    int status;
    pid_t got;
    while ((got = wait4(tid, &status, __WALL | WNOHANG, &usage)) == 0) {
        reap_killed(t);
        nanosleep(&pause, NULL);
    }
    if (got != tid)
        return 0;
    if (!WIFSTOPPED(status)) {
        if (tid == t->pid && t->child)
            note_end(t, status, &usage);
        return 0;
    }
    /* A stop of ours carries an event; without one, a signal was about to be delivered, and still has to be.
     */
    *signal = status >> 16 ? 0 : WSTOPSIG(status);
    return 1;
}

static int stop_one(void *ctx, pid_t tid)
{
    struct target *t = ctx;
    for (size_t i = 0; i < t->nstopped; i++)
        if (t->stopped[i].tid == tid)
            return 0;
    if (!is_running(t->pid, tid))
        return 0;
    if (t->nstopped == t->room) {
        struct stopped *more = reallocarray(t->stopped, t->room + 16, sizeof *more);
        if (!more)
            return -ENOMEM;
        t->stopped = more;
        t->room += 16;
    }
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
        return errno == ESRCH ? 0 : -errno;
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    struct stopped *s = &t->stopped[t->nstopped];
    s->tid = tid;
    if (wait_for_stop(t, tid, &s->signal))
        t->nstopped++;
    return t->ended;
}

int target_stop(struct target *t)
{
    size_t before;
    int code;
    do { /* threads may be born meanwhile */
        before = t->nstopped;
        code = each_thread(t->pid, stop_one, t);
    } while (code == 0 && t->nstopped > before);
    if (code < 0) {
        target_continue(t);
        if (code == -ESRCH)
            code = see_end(t);
    }
    return code;
}

void target_continue(struct target *t)
{
    int leader_was_killed = 0, status;
    for (size_t i = 0; i < t->nstopped; i++) {
        struct stopped *s = &t->stopped[i];
        /* Only SIGKILL takes a thread out of its stop, so what cannot be detached is dying, and ours to reap.
         */
        if (ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(intptr_t)s->signal) == 0)
            continue;
        leader_was_killed |= s->tid == t->pid;
        while (s->tid != t->pid && waitpid(s->tid, &status, __WALL) < 0 && errno == EINTR)
            ;
    }
    /* The first thread ends last; of a child, see_end takes its status. */
    while (leader_was_killed && !t->child && waitpid(t->pid, &status, __WALL) < 0 && errno == EINTR)
        ;
    t->nstopped = 0;
}
