/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target-stop.c - stops the running threads for the milliseconds in which the Pirate fetches its set.
 *
 * ptrace is attached at each stop and detached at its end. In between nothing is traced, so that our death at
 * any time leaves a program that runs on.
 */
#include "collect/launch/target.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "collect/launch/target-internal.h"

#define STOP_PAUSE_NS 20000 /* a running thread stops at its next interrupt at the latest */

/*
 * We are the tracer of the stopped threads. Those that were killed since (another thread called exit) must be
 * reaped by us before their process can end.
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
            target_note_end(t, status, &usage);
        return 0;
    }
    /*
     * A stop of ours carries an event. Without one, a signal was about to be delivered; it still has to be.
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
    if (target_thread_state(t->pid, tid) != 'R')
        return 0;
    if (t->nstopped == t->capacity) {
        struct stopped *more = reallocarray(t->stopped, t->capacity + 16, sizeof *more);
        if (!more)
            return -ENOMEM;
        t->stopped = more;
        t->capacity += 16;
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
    do { /* threads may be created meanwhile */
        before = t->nstopped;
        code = target_each_thread(t->pid, stop_one, t);
    } while (code == 0 && t->nstopped > before);
    if (code < 0) {
        target_continue(t);
        if (code == -ESRCH)
            code = target_reap(t);
    }
    return code;
}

void target_continue(struct target *t)
{
    int leader_was_killed = 0, status;
    for (size_t i = 0; i < t->nstopped; i++) {
        struct stopped *s = &t->stopped[i];
        /* Only SIGKILL takes a thread out of its stop. So a thread that cannot be detached is dying, and must
         * be reaped by us. */
        if (ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(intptr_t)s->signal) == 0)
            continue;
        leader_was_killed |= s->tid == t->pid;
        while (s->tid != t->pid && waitpid(s->tid, &status, __WALL) < 0 && errno == EINTR)
            ;
    }
    /* The first thread ends last; of a child, target_reap reaps it. */
    while (leader_was_killed && !t->child && waitpid(t->pid, &status, __WALL) < 0 && errno == EINTR)
        ;
    t->nstopped = 0;
}
