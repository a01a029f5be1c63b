/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - a program that is measured from outside: started or attached to, confined to some CPUs, stopped
 * and continued; its signals are passed on. Nothing is loaded into it. One target at a time: signals need
 * globals.
 */
#ifndef CACHEGRAM_TARGET_H
#define CACHEGRAM_TARGET_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* cpu_set_t */
#endif
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

struct target {
    pid_t pid;
    int pidfd, signals; /* signals: a signalfd of those that we receive while it runs */
    int child;          /* we started it */
    int held;           /* since its start, by ptrace (target-hold.c) */
    int ended;
    int status;          /* exit status for the shell; 0 if it is not our child */
    double cpu_seconds;  /* when it has ended: its own and its waited-for descendants'; children only */
    uint64_t end_cpu_ns; /* when it has ended: its own alone; children only */
    /* How often it or we were stopped (Ctrl-Z) or continued: measurements meanwhile are invalid. */
    unsigned stops;
    sigset_t mask;        /* our former signal mask */
    int guardian_pipe[2]; /* pipe to the guardian; our end is closed by our death */
    pid_t guardian;
    struct stopped {
        pid_t tid;
        int signal; /* that was about to be delivered */
    } * stopped;    /* threads that are stopped now */
    size_t nstopped, capacity;
};

struct target_setup {
    const cpu_set_t *cpus; /* on which it may run */
    const cpu_set_t *all;  /* which it gets back at the end */
    int output_fd;         /* its standard output; -1: ours */
    int silent;            /* both outputs are discarded */
    int hold;              /* hold it after it has executed the command, until target_end_hold */
};

/*
 * 0; -ENOENT, -EACCES and the like when the command could not be executed; then there is nothing to release.
 * To hold it, it must be traced: -EPERM where that is forbidden, and then it was not executed.
 */
int target_start(struct target *t, char **argv, const struct target_setup *setup, struct error *err);
/* May we stop the process? -EPERM or -ESRCH, with err filled. */
int target_may_attach(pid_t pid, struct error *err);
/* Errors as target_may_attach. */
int target_attach(struct target *t, pid_t pid, const cpu_set_t *cpus, struct error *err);
/* Restores its CPUs if it still runs, and frees everything. */
void target_release(struct target *t);

/*
 * Waits until `until_ns` (CLOCK_MONOTONIC; UINT64_MAX: forever), passing signals on. 1: it has ended;
 * t->status and t->cpu_seconds are set. 0: the time is up. -EINTR: it is not our child, and we were asked to
 * end (SIGINT, SIGTERM).
 */
int target_wait(struct target *t, uint64_t until_ns);
/*
 * As target_wait, but also returns 0 at any event: a breakpoint was executed (breakpoint.h), it was stopped
 * or continued, or another signal came.
 */
int target_wait_event(struct target *t, uint64_t until_ns);
/* Is it stopped by a signal (SIGSTOP, Ctrl-Z)? Not by us. */
int target_is_stopped(const struct target *t);

/*
 * Runs a held program until its first thread reaches the instruction at `address`, and holds it there.
 * at_start: the place is reached within milliseconds, and our death meanwhile kills the program; otherwise
 * the guardian must be able to release it after our death. 0; 1: it has ended; -EPERM with err filled, where
 * that cannot be done safely, or the CPU refuses.
 */
int target_hold_until(struct target *t, uint64_t address, int at_start, struct error *err);
/* 0 if target_hold_until works without `at_start`; else -EPERM, with err filled. */
int target_may_hold(struct error *err);
/* Ends the hold: from here on it runs untraced. */
void target_end_hold(struct target *t);

/*
 * Stops those of its threads that run. Sleeping ones use no cache, and waking them could make their system
 * calls fail with EINTR. The stop is ptrace's: neither its parent nor a shell sees it, and our death ends it.
 * 0; -EPERM where that is not allowed; 1: it has ended.
 */
int target_stop(struct target *t);
void target_continue(struct target *t);
/* Calls each for every thread of a process; a nonzero result ends the loop and is returned. -ESRCH. */
int target_each_thread(pid_t pid, int (*each)(void *ctx, pid_t tid), void *ctx);
/* CPU time of all its threads so far, without its children; of our child also after its end. -ESRCH. */
int target_cpu_ns(const struct target *t, uint64_t *ns);

#endif
