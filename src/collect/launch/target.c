/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - see target.h. A target notices nothing of this unless it looks for it. */
#include "collect/launch/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/launch/launch.h"
#include "collect/launch/process-time.h"
#include "collect/launch/target-internal.h"

/* --- CPUs --- */

struct thread_cpus {
    pid_t tid;
    cpu_set_t cpus;
};

struct cpus_before {
    struct thread_cpus *list;
    size_t n;
    const cpu_set_t *now;
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
    if (sched_setaffinity(tid, sizeof(cpu_set_t), b->now) != 0)
        return errno == ESRCH ? 0 : -errno;
    b->n++;
    return 0;
}

/* A known thread gets its former CPUs; an unknown one, those of the first thread. */
static int restore_cpus(void *ctx, pid_t tid)
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
 * A process that waits until we release the target or die: both close the pipe. Then it gives the target its
 * CPUs back, so that not even SIGKILL leaves the target confined.
 */
static int start_guardian(struct target *t, const struct cpus_before *before, struct error *err)
{
    char word;
    int rescue = 0;
    if (pipe2(t->guardian_pipe, O_CLOEXEC) != 0)
        return error_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    t->guardian = fork();
    if (t->guardian == 0) {
        int pipe_end = t->guardian_pipe[0];
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        setpgid(0, 0); /* not reached by signals of the terminal or to the group */
        if (pipe_end > 0)
            close_range(0, (unsigned)pipe_end - 1, 0);
        close_range((unsigned)pipe_end + 1, ~0u, 0);
        for (ssize_t n; (n = read(pipe_end, &word, 1)) == 1 || (n < 0 && errno == EINTR);)
            rescue = n == 1 ? word == TARGET_RESCUE : rescue;
        target_each_thread(t->pid, restore_cpus, (void *)before);
        if (rescue)
            target_hold_rescue(t->pid);
        _exit(0);
    }
    int code = t->guardian < 0 ? -errno : 0;
    close(t->guardian_pipe[0]);
    t->guardian_pipe[0] = -1;
    return code == 0 ? 0 : error_set(err, code, "cannot start a process: %s", strerror(-code));
}

/* --- start, attach, release --- */

/* For the child, between fork and exec. */
static struct target_setup child_setup;
static int child_gate[2]; /* held: it waits here until its parent has closed the other end */

static void prepare_child(void)
{
    char never;
    sched_setaffinity(0, sizeof *child_setup.cpus, child_setup.cpus);
    if (child_setup.silent) {
        int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
    } else if (child_setup.output_fd >= 0) {
        dup2(child_setup.output_fd, STDOUT_FILENO);
    }
    if (child_setup.hold) {
        close(child_gate[1]);
        while (read(child_gate[0], &never, 1) < 0 && errno == EINTR)
            ;
        close(child_gate[0]);
    }
}

/*
 * Starts the program and holds it at its first instruction. If holding is not permitted, it is not executed.
 */
static int launch_held(struct target *t, char **argv, struct error *err)
{
    struct launching l;
    if (pipe2(child_gate, O_CLOEXEC) != 0)
        return error_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    int code = launch_begin(&l, argv, NULL, NULL, &t->mask, prepare_child, err);
    if (code == 0) {
        t->pid = l.pid;
        code = target_hold_begin(t, err);
        if (code != 0) {
            close(l.report);
            kill(l.pid, SIGKILL);
            while (waitpid(l.pid, NULL, 0) < 0 && errno == EINTR)
                ;
        }
    }
    close(child_gate[0]);
    close(child_gate[1]);
    if (code == 0 && (code = launch_finish(&l, err)) == 0 && (code = target_hold_at_start(t)) != 0)
        error_set(err, code, "%s was killed before it started", argv[0]);
    return code;
}

static void close_all(struct target *t)
{
    if (t->pidfd >= 0)
        close(t->pidfd);
    if (t->guardian_pipe[1] >= 0)
        close(t->guardian_pipe[1]);
    if (t->guardian > 0)
        while (waitpid(t->guardian, NULL, 0) < 0 && errno == EINTR)
            ;
    free(t->stopped);
    target_restore_signals(t);
}

int target_start(struct target *t, char **argv, const struct target_setup *setup, struct error *err)
{
    struct thread_cpus ours = {.cpus = *setup->all};
    struct cpus_before before = {&ours, 1, NULL};
    *t = (struct target){.child = 1, .pidfd = -1, .guardian_pipe = {-1, -1}};
    target_block_signals(t);
    child_setup = *setup;
    int code = setup->hold ? launch_held(t, argv, err)
                           : launch(argv, NULL, NULL, &t->mask, prepare_child, &t->pid, err);
    if (code != 0) {
        target_restore_signals(t);
        return code;
    }
    t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
    ours.tid = t->pid;
    if (t->pidfd < 0 || t->signals < 0)
        code = error_set(err, -errno, "cannot watch process %d: %s", t->pid, strerror(errno));
    else
        code = start_guardian(t, &before, err);
    if (code != 0) { /* it runs on, unconfined: wait for its end */
        target_each_thread(t->pid, restore_cpus, &before);
        target_end_hold(t);
        while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        close_all(t);
    }
    return code;
}

/* /proc/PID/mem can be opened by exactly those who may ptrace. */
int target_may_attach(pid_t pid, struct error *err)
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
        "no permission to stop process %d: run as its user with kernel.yama.ptrace_scope 0, or as root", pid);
}

int target_attach(struct target *t, pid_t pid, const cpu_set_t *cpus, struct error *err)
{
    struct cpus_before before = {.now = cpus};
    *t = (struct target){.pid = pid, .pidfd = -1, .guardian_pipe = {-1, -1}};
    int code = target_may_attach(pid, err);
    if (code != 0)
        return code;
    target_block_signals(t);
    t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (t->pidfd < 0 || t->signals < 0) {
        code = error_set(err, -errno, "cannot watch process %d: %s", pid, strerror(errno));
    } else if ((code = target_each_thread(pid, confine, &before)) != 0 || before.n == 0) {
        code = error_set(err, code ? code : -ESRCH, "cannot move process %d off the Pirate's CPU: %s", pid,
                         strerror(code ? -code : ESRCH));
    } else {
        code = start_guardian(t, &before, err);
    }
    if (code != 0) {
        if (before.n > 0)
            target_each_thread(pid, restore_cpus, &before);
        close_all(t);
    }
    free(before.list); /* the guardian has a copy */
    return code;
}

void target_release(struct target *t)
{
    target_continue(t);
    target_end_hold(t);
    close_all(t);
}

/* --- waiting --- */

int target_wait_event(struct target *t, uint64_t until_ns)
{
    if (target_reap(t))
        return 1;
    int code = target_wait_once(t, until_ns);
    return code != 0 ? code : target_reap(t);
}

int target_wait(struct target *t, uint64_t until_ns)
{
    int code;
    do
        code = target_wait_event(t, until_ns);
    while (code == 0 && monotonic_ns() < until_ns);
    return code;
}

int target_is_stopped(const struct target *t)
{
    return target_thread_state(t->pid, t->pid) == 'T';
}
