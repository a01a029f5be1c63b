/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect.c - one recorded run from start to end. Once the command runs, any failure lets it run on; its exit
 * status is passed on, and the failure is reported at the end.
 *
 * run_prepare (prepare.c), the command's start, passes over the buffers until it has ended (pace.c decides
 * when bursts begin), run_finish (outcome.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "collect/collect.h"
#include "collect/launch/launch.h"
#include "collect/launch/process-time.h"
#include "collect/launch/signals.h"
#include "collect/records/tee.h"
#include "collect/run-internal.h"
#include "collect/tunables.h"

enum { STATUS_FAILED = 125, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127, STATUS_SIGNAL = 128 };

static void clear(struct run *r)
{
    drain_free(r->drain);
    reducer_free(r->reducer);
    watches_free(r->watches);
    session_clear(&r->session);
}

/* The command could not be started: undoes all changes in the folder. */
static void restore_files(struct run *r)
{
    tee_abandon(r->tee);
    r->tee = NULL;
    profile_abandon(r->profile);
    r->profile = NULL;
}

/* Commits; returns when to commit again. A slow disk or large histograms must not take the time for draining,
 * nor the budget. */
static uint64_t commit(struct run *r)
{
    uint64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID); /* traces are compressed by other threads */
    drain_commit(r->drain);
    uint64_t pause_ns = COLLECT_COMMIT_PAUSE * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns);
    if (pause_ns < COLLECT_COMMIT_MS * UINT64_C(1000000))
        pause_ns = COLLECT_COMMIT_MS * UINT64_C(1000000);
    if (pause_ns > COLLECT_COMMIT_MOST_MS * UINT64_C(1000000))
        pause_ns = COLLECT_COMMIT_MOST_MS * UINT64_C(1000000);
    return monotonic_ns() + pause_ns;
}

/* Until the command has ended. */
static void collect(struct run *r)
{
    uint64_t buffers = 0;
    uint64_t next_look = 0, look_ms = COLLECT_SLEEP_MS,
             next_commit = r->start_ns + COLLECT_FIRST_COMMIT_MS * UINT64_C(1000000);
    for (;;) {
        uint64_t taken = drain_pass(r->drain);
        uint64_t now = monotonic_ns();
        buffers += taken;
        pace_mode(r, now, buffers);
        if (drain_fresh(r->drain) && look_ms > COLLECT_FIRST_LOOK_MS) {
            /* New processes are checked soon, then less and less often: most programs that execute another
             * one, which may lack the agent, do so early. */
            look_ms = COLLECT_FIRST_LOOK_MS;
            next_look = now + look_ms * UINT64_C(1000000);
        }
        if (now >= next_look || drain_crowded(r->drain)) {
            drain_look(r->drain);
            look_ms = 2 * look_ms < COLLECT_SLEEP_MS ? 2 * look_ms : COLLECT_SLEEP_MS;
            next_look = now + (look_ms < COLLECT_LOOK_MS ? look_ms : COLLECT_LOOK_MS) * UINT64_C(1000000);
        }
        if (now >= next_commit)
            next_commit = commit(r);
        pace_gap(r, now);
        signals_forward(r->command);
        siginfo_t end = {0};
        int failed = waitid(P_PID, (id_t)r->command, &end, WEXITED | WNOHANG | WNOWAIT) != 0;
        if (failed ? errno != EINTR : end.si_pid == r->command) {
            drain_look(r->drain); /* while its CPU time, without that of its children, can still be read */
            while (wait4(r->command, &r->wait_status, 0, &r->usage) < 0 && errno == EINTR)
                ;
            return;
        }
        if (taken == 0)
            drain_wait(r->drain, r->pace.switching.mean_ns != 0                      ? 1
                                 : r->pace.counts && look_ms > COLLECT_COUNT_LOOK_MS ? COLLECT_COUNT_LOOK_MS
                                                                                     : (int)look_ms);
    }
}

/*
 * Where that is permitted (to root), a recorder that keeps to a budget has a higher priority than the
 * command: among many threads it would have its turn too late to place bursts and to free buffers, and the
 * command's threads would end before their first burst. Returns the nice value before.
 */
static int hurry(const struct run *r)
{
    int before = getpriority(PRIO_PROCESS, 0);
    if (r->pace.budgeted)
        setpriority(PRIO_PROCESS, 0, before - COLLECT_NICER);
    return before;
}

/*
 * If memory runs out, the kernel should kill the recorder, not the command: that continues natively then. As
 * the first process of a name space, the recorder would take the command with it.
 */
static void be_killed_first(void)
{
    int fd = getpid() == 1 ? -1 : open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!write(fd, "1000", 4);
    close(fd);
}

/* Releases the processes that still run, then drains what all have left in the buffers. */
static void collect_rest(struct run *r)
{
    uint64_t until = monotonic_ns() + COLLECT_GRACE_MS * UINT64_C(1000000);
    drain_look(r->drain); /* what ended since the last look does not run */
    uint32_t live = drain_live(r->drain);
    /* Before anything is drained: a process in full mode fills buffers as fast as they are freed. */
    __atomic_store_n(&r->session.map->stop, 1, __ATOMIC_RELEASE);
    while (drain_pass(r->drain) != 0)
        ;
    drain_look(r->drain);
    if (live < drain_live(r->drain)) /* some began since the last look */
        live = drain_live(r->drain);
    if (live == 0)
        return;
    run_warn(r->result, "%u process%s still ran when the command ended; what %s did later was not recorded",
             live, live == 1 ? "" : "es", live == 1 ? "it" : "they");
    while (drain_live(r->drain) != 0 && monotonic_ns() < until) {
        drain_wait(r->drain, COLLECT_GRACE_MS / 5);
        drain_pass(r->drain);
        drain_look(r->drain);
    }
}

int collect_run(const struct collect_options *options, struct collect_result *result, struct error *err)
{
    struct run r = {.options = options, .result = result, .session = {.fd = -1}};
    char path[PATH_MAX], name[64];
    sigset_t mask, all;

    *result = (struct collect_result){0};
    /* The start of this process counts for the first recording. */
    static int has_recorded;
    if (has_recorded)
        r.recorder_before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    has_recorded = 1;
    int status = launch_find(options->argv[0], path, sizeof(path), err);
    if (status < 0)
        return status == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
    r.obstacle = launch_obstacle(path);
    r.is_static = r.obstacle == launch_static && options->follow;
    if (r.is_static) /* as if a profiled program had executed it */
        r.obstacle = NULL;
    signals_begin();
    if (run_prepare(&r, err) < 0) {
        restore_files(&r);
        signals_end();
        clear(&r);
        return STATUS_FAILED;
    }

    snprintf(name, sizeof(name), "/proc/%d/fd/%d", getpid(), r.session.fd);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    signals_set_doorbell(r.session.map);
    struct launching started = {0};
    int failed = launch_begin(&started, options->argv, r.obstacle == NULL ? r.agent : NULL, name, &mask,
                              signals_end, err);
    status = failed < 0 ? failed : launch_finish(&started, err);
    r.command = started.pid;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (status < 0) {
        signals_end();
        restore_files(&r);
        clear(&r);
        return failed < 0                               ? STATUS_FAILED /* before the program took part */
               : status == -ENOENT                      ? STATUS_NOT_FOUND
               : status == -EAGAIN || status == -ENOMEM ? STATUS_FAILED
                                                        : STATUS_NOT_EXECUTABLE;
    }
    result->ran = 1;
    profile_keep(r.profile);
    if (r.tee != NULL)
        tee_keep(r.tee);
    /* A trace's reader that exits must not end the recording. */
    signal(SIGPIPE, SIG_IGN);
    if (r.obstacle == NULL && options->follow)
        drain_command(r.drain, r.command);
    pace_begin(&r);
    int nice_before = hurry(&r);
    be_killed_first();
    collect(&r);
    int exit_status =
        WIFSIGNALED(r.wait_status) ? STATUS_SIGNAL + WTERMSIG(r.wait_status) : WEXITSTATUS(r.wait_status);
    collect_rest(&r);
    setpriority(PRIO_PROCESS, 0, nice_before);
    run_finish(&r, exit_status);
    result->stopped = signals_stopped(r.command);
    signals_end();
    clear(&r);
    return exit_status;
}
