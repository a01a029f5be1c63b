/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target-process.c - a target's threads and CPU time, its end, and the signals that it and we receive. Used
 * for starting it (target.c), stopping it (target-stop.c) and holding it at a place (target-hold.c).
 */
#include "collect/launch/target-internal.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/read-text.h"
#include "collect/launch/process-time.h"
#include "collect/launch/signals.h"

/* Signals from the keyboard reach a child directly; others that are sent to us are meant for it. */
static const int keyboard[] = {SIGINT, SIGQUIT}, forwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
/* Its end or stops, breakpoints, and our own stop and continuation: each means that its state must be
 * examined. */
static const int events[] = {SIGCHLD, SIGIO, SIGCONT};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int target_each_thread(pid_t pid, int (*each)(void *ctx, pid_t tid), void *ctx)
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

char target_thread_state(pid_t pid, pid_t tid)
{
    char text[256];
    read_text(text, sizeof text, "/proc/%d/task/%d/stat", pid, tid);
    const char *after = strrchr(text, ')');
    return after && after[1] == ' ' ? after[2] : '\0';
}

int target_cpu_ns(const struct target *t, uint64_t *ns)
{
    if (t->ended && t->child) {
        *ns = t->end_cpu_ns;
        return t->end_cpu_ns > 0 ? 0 : -ESRCH;
    }
    return process_cpu_ns(t->pid, ns);
}

void target_block_signals(struct target *t)
{
    sigset_t ours;
    sigemptyset(&ours);
    for (size_t i = 0; i < COUNT(events); i++)
        sigaddset(&ours, events[i]);
    for (size_t i = 0; i < COUNT(keyboard); i++)
        sigaddset(&ours, keyboard[i]);
    for (size_t i = 0; i < COUNT(forwarded); i++)
        sigaddset(&ours, forwarded[i]);
    sigprocmask(SIG_BLOCK, &ours, &t->mask);
    t->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

void target_restore_signals(struct target *t)
{
    struct signalfd_siginfo info;
    /*
     * Signals that arrived after the last read would kill us now. The target is gone, so they are discarded.
     */
    while (t->signals >= 0 && read(t->signals, &info, sizeof info) == sizeof info)
        ;
    if (t->signals >= 0)
        close(t->signals);
    sigprocmask(SIG_SETMASK, &t->mask, NULL);
}

void target_note_end(struct target *t, int status, const struct rusage *usage)
{
    t->ended = 1;
    t->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    t->cpu_seconds = (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec * 1e-6 +
                     (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec * 1e-6;
}

int target_reap(struct target *t)
{
    struct rusage usage;
    int status;
    struct pollfd end = {.fd = t->pidfd, .events = POLLIN};
    if (t->ended)
        return 1;
    if (poll(&end, 1, 0) != 1)
        return 0;
    if (t->child)
        target_cpu_ns(t, &t->end_cpu_ns); /* readable until its status is reaped */
    if (!t->child)
        t->ended = 1;
    else if (wait4(t->pid, &status, WNOHANG, &usage) == t->pid && !WIFSTOPPED(status))
        target_note_end(t, status, &usage);
    return t->ended;
}

static int is_one_of(const int *list, size_t n, int number)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == number)
            return 1;
    return 0;
}

/* Counts stops and continuations. The kernel reports them for a child only. */
static void note_stops(struct target *t)
{
    siginfo_t info = {0};
    while (t->child && !t->held && waitid(P_PID, (id_t)t->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
           info.si_pid != 0) {
        t->stops++;
        info.si_pid = 0;
    }
}

/* -EINTR if one of the signals asks us to end. */
static int pass_signals_on(struct target *t)
{
    struct signalfd_siginfo info;
    int result = 0;
    while (read(t->signals, &info, sizeof info) == sizeof info) {
        int number = (int)info.ssi_signo;
        t->stops += number == SIGCONT;
        if (number == SIGCHLD)
            note_stops(t);
        if (is_one_of(events, COUNT(events), number))
            continue;
        if (!t->child)
            result = -EINTR;
        /* The kernel's own (a closed terminal) reach the whole group, and so does kill(0) of a descendant. */
        else if (is_one_of(forwarded, COUNT(forwarded), number) && info.ssi_code <= 0 &&
                 !signals_descends((pid_t)info.ssi_pid, t->pid))
            kill(t->pid, number);
    }
    return result;
}

int target_wait_once(struct target *t, uint64_t until_ns)
{
    struct pollfd fds[2] = {{.fd = t->pidfd, .events = POLLIN}, {.fd = t->signals, .events = POLLIN}};
    uint64_t now = monotonic_ns(), rest_ns = until_ns > now ? until_ns - now : 0;
    const struct timespec rest = {(time_t)(rest_ns / 1000000000u), (long)(rest_ns % 1000000000u)};
    if (ppoll(fds, 2, until_ns == UINT64_MAX ? NULL : &rest, NULL) > 0 && fds[1].revents &&
        pass_signals_on(t) == -EINTR)
        return -EINTR;
    return 0;
}
