/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - a program that is measured from outside: started or attached to, kept to some CPUs, stopped and
 * continued, its signals passed on. Nothing is put into it. One target at a time: signals need globals.
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
    int pidfd, signals; /* signals: a signalfd of those that we take while it runs */
    int child;          /* we started it */
    int held;           /* since its start, by ptrace (target-hold.c) */
    int ended;
    int status;          /* exit status for the shell; 0 if it is not our child */
    double cpu_seconds;  /* at its end: its own and that of descendants that it waited for; children only */
    uint64_t own_cpu_ns; /* at its end: its own alone; children only */
    /* How often a signal told that it, or we, had been stopped (Ctrl-Z) or continued: what was measured
     * meanwhile tells nothing. */
    unsigned stops;
    sigset_t mask; /* of ours, before */
    int guard[2];  /* pipe to the guardian; its end is ours, or our death */
    pid_t guardian;
    struct stopped {
        pid_t tid;
        int signal; /* that was about to be delivered */
    } * stopped;    /* threads that are stopped now */
    size_t nstopped, room;
};

struct target_setup {
    const cpu_set_t *cpus; /* those that it may run on */
    const cpu_set_t *all;  /* those that it is given back at the end */
    int output_fd;         /* its standard output; -1: ours */
    int silent;            /* both outputs are thrown away */
    int hold;              /* it is held after it has executed the command, till target_let_go */
};

/*
 * 0; -ENOENT, -EACCES and the like when the command could not be executed; then there is nothing to release.
 * To hold it, it must be traced: -EPERM where that is forbidden, and then it has not been executed.
 */
int target_start(struct target *t, char **argv, const struct target_setup *setup, struct error *err);
/* May we stop the process? -EPERM, -ESRCH, with a sentence. */
int target_may_attach(pid_t pid, struct error *err);
/* Errors as target_may_attach. */
int target_attach(struct target *t, pid_t pid, const cpu_set_t *cpus, struct error *err);
/* Puts its CPUs back as they were if it still runs, and forgets it. */
void target_release(struct target *t);

/*
 * Waits till `until_ns` (CLOCK_MONOTONIC; UINT64_MAX: no end), passing signals on. 1: it has ended, t->status
 * and t->cpu_seconds are set. 0: the time is up. -EINTR: it is not our child, and we were asked to end
 * (SIGINT, SIGTERM).
 */
int target_wait(struct target *t, uint64_t until_ns);
/*
 * As target_wait, but returns 0 at any news, too: a breakpoint was executed (breakpoint.h), it was stopped or
 * continued, or some other signal came.
 */
int target_wait_news(struct target *t, uint64_t until_ns);
/* Is it stopped by a signal (SIGSTOP, Ctrl-Z)? Not by us. */
int target_is_stopped(const struct target *t);

/*
 * Lets a held program run until its first thread comes to the instruction at `address`, and holds it there.
 * 0; 1: it has ended; -EPERM, with a sentence, where that cannot be done safely, or the CPU refuses:
 * `last_look` is for places that it comes to within milliseconds, and our death in between ends it; without
 * that, somebody must be able to set it free after our death.
 */
int target_hold_till(struct target *t, uint64_t address, int at_start, struct error *err);
/* 0 if target_hold_till will do it without `at_start`; else -EPERM, with a sentence. */
int target_may_hold(struct error *err);
/* Ends the hold: from here on it runs as if it had never been traced. */
void target_let_go(struct target *t);

/*
 * Stops those of its threads that run; sleeping ones use no cache, and to wake them could make their system
 * calls fail with EINTR. Neither its parent nor a shell sees it, and our death ends it: the stop is ptrace's.
 * 0; -EPERM where that is not allowed; 1: it has ended meanwhile.
 */
int target_stop(struct target *t);
void target_continue(struct target *t);
/* Calls each for every thread of a process; the first nonzero result ends it, and is returned. -ESRCH. */
int target_each_thread(pid_t pid, int (*each)(void *ctx, pid_t tid), void *ctx);
/* CPU time of all its threads so far, not of its children; of our child, after its end too. -ESRCH. */
int target_cpu_ns(const struct target *t, uint64_t *ns);

#endif
