/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect.c - one recorded run from start to end. Once the command runs, any failure lets it run on; its exit
 * status is passed on, and the failure is reported at the end.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/random.h"
#include "collect/clock/budget.h"
#include "collect/clock/faultcost.h"
#include "collect/collect.h"
#include "collect/drain/drain.h"
#include "collect/drain/missed.h"
#include "collect/drain/refusals.h"
#include "collect/launch/launch.h"
#include "collect/launch/process-time.h"
#include "collect/launch/signals.h"
#include "collect/records/tee.h"
#include "collect/clock/trigger.h"
#include "collect/tunables.h"
#include "collect/drain/unprofiled.h"
#include "machine/cpuinfo.h"
#include "machine/machine.h"
#include "machine/vectors.h"
#include "symbols/name.h"

enum { STATUS_FAILED = 125, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127, STATUS_SIGNAL = 128 };

static const struct {
    const char *name;
    enum wire_clock wire;
    double error; /* relative error of rates; NaN: unknown */
} clocks[] = {
    [COLLECT_CLOCK_AUTO] = {"count", WIRE_CLOCK_COUNT, COLLECT_COUNT_ERROR},
    /* The counters' error is unknown: they have not been compared with exact counts. */
    [COLLECT_CLOCK_PMU] = {"pmu", WIRE_CLOCK_CPUTIME, NAN},
    [COLLECT_CLOCK_COUNT] = {"count", WIRE_CLOCK_COUNT, COLLECT_COUNT_ERROR},
    [COLLECT_CLOCK_COUNT_ALWAYS] = {"count-always", WIRE_CLOCK_COUNT_ALWAYS, 0},
    [COLLECT_CLOCK_CPUTIME] = {"cputime", WIRE_CLOCK_CPUTIME, NAN},
};

/* For tests: from full mode to bursts and back, at random moments, so far apart in the mean. */
struct switching {
    uint64_t mean_ns; /* 0: no */
    uint64_t next_ns;
    struct random_state random;
};

struct run {
    const struct collect_options *options;
    struct collect_result *result;
    struct profile *profile;
    struct session session;
    struct reducer *reducer;
    struct drain *drain;
    struct tee *tee;
    struct watches *watches; /* NULL: none */
    uint64_t start_ns;
    pid_t command;
    int wait_status;
    struct rusage usage; /* the command's, and its waited-for children's */
    const char *obstacle;
    enum collect_clock clock; /* options->clock, but never AUTO */
    struct counters counters; /* of the clock `pmu` */
    int full;                 /* every reference is recorded, so far */
    struct switching switching;
    /* Of a run that begins in full mode, when that was over: all that was used, and of it in translated code.
     */
    struct budget_use before;
    uint64_t full_ns;
    /* Likewise, when as many buffers had been reduced as there are: how many, and what had been spent. */
    uint64_t first_buffers, first_ns;
    char agent[PATH_MAX];
};

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static double cpu_seconds(const struct rusage *u)
{
    return seconds(&u->ru_utime) + seconds(&u->ru_stime);
}

static void warn(struct collect_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void warn(struct collect_result *result, const char *format, ...)
{
    size_t used = strlen(result->warning), capacity = sizeof(result->warning);
    va_list arguments;
    if (used != 0 && used + 1 < capacity)
        used += (size_t)snprintf(result->warning + used, capacity - used, "\n");
    va_start(arguments, format);
    vsnprintf(result->warning + used, capacity - used, format, arguments);
    va_end(arguments);
}

/* Lines are followed beyond their bursts. */
static int follows_lines(const struct collect_options *o)
{
    return !o->full && o->switch_ms == 0 && o->watch != COLLECT_WATCH_NONE;
}

/* A page that a fault unprotected is protected again once its thread is in native code, which it hardly ever
 * is while it always counts: lines are only followed in the bursts' tails then. */
static int protects_pages(const struct collect_options *o)
{
    return follows_lines(o) && o->clock != COLLECT_CLOCK_COUNT_ALWAYS;
}

/* Sizes of this machine's caches, first level first: "32768,524288,8388608"; "" if they are not known. */
static void describe_caches(char *text, size_t size)
{
    struct machine machine;
    struct error ignored;
    size_t used = 0;
    text[0] = '\0';
    if (machine_topology(&machine, &ignored) < 0)
        return;
    for (uint32_t i = 0; i < machine.levels && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%llu", i ? "," : "",
                                 (unsigned long long)machine.level[i].size_bytes);
}

static int describe(struct run *r, struct error *err)
{
    const struct collect_options *o = r->options;
    char command[4096], started[64] = "", host[256] = "", cpu[256] = "", caches[128];
    time_t now = time(NULL);
    struct tm local;
    launch_quote(o->argv, command, sizeof(command));
    if (localtime_r(&now, &local) != NULL)
        strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%S%z", &local);
    gethostname(host, sizeof(host) - 1);
    describe_caches(caches, sizeof(caches));

    const struct {
        const char *key, *value;
    } words[] = {{"command", command},
                 {"mode", !r->full            ? "burst"
                          : o->lines_rate < 1 ? "lines"
                                              : "full"},
                 {"watch", protects_pages(o) ? "page" : "none"},
                 {"trigger", r->session.map->perf ? "perf" : "timer"},
                 {"version", o->version},
                 {"started", started},
                 {"hostname", host},
                 {"cpu", cpuinfo_get("model name", cpu, sizeof(cpu)) ? cpu + strspn(cpu, " ") : "unknown"},
                 {"caches", caches}};
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"line_bytes", o->line_bytes}, {"follow", o->follow}};
    char seed[32]; /* as text: a double would round it */
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)o->seed);
    int status = profile_set(r->profile, "seed", seed, err);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && status >= 0; i++)
        status = profile_set(r->profile, words[i].key, words[i].value, err);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && status >= 0; i++)
        status = profile_set_number(r->profile, numbers[i].key, numbers[i].value, err);
    if (status >= 0 && o->full && o->lines_rate < 1)
        status = profile_set_number(r->profile, "lines_rate", o->lines_rate, err);
    if (status >= 0 && !o->full) {
        status = profile_set_number(r->profile, "burst_refs", (double)o->burst_refs, err);
        if (status >= 0)
            status = o->gap_us != 0
                         ? profile_set_number(r->profile, "gap_us", (double)o->gap_us, err)
                         : profile_set_number(r->profile, "budget_percent", o->overhead_percent, err);
        if (status >= 0)
            status = profile_set(r->profile, "clock", clocks[r->clock].name, err);
        if (status >= 0 && !isnan(clocks[r->clock].error))
            status = profile_set_number(r->profile, "clock_error", clocks[r->clock].error, err);
    }
    return status < 0 ? status : profile_commit(r->profile, err);
}

/* The counters are used if they exist; if the user asked for them, they must. */
static int choose_clock(struct run *r, struct error *err)
{
    struct error why = {""};
    int perf = r->session.map->perf != 0, asked = r->options->clock == COLLECT_CLOCK_PMU;
    r->clock = r->options->clock;
    int counts = r->clock == COLLECT_CLOCK_COUNT || r->clock == COLLECT_CLOCK_COUNT_ALWAYS;
    if (counts && !r->options->full && vectors_for_counting() == 0)
        return error_set(
            err, -ENODEV,
            "--clock %s: needs a processor with AVX2 and BMI2, and a kernel that saves its vector "
            "registers; use --clock cputime",
            clocks[r->clock].name);
    if (r->options->full || (r->clock != COLLECT_CLOCK_AUTO && !asked))
        return 0;
    if (!perf)
        error_set(&why, -ENODEV,
                  "perf events that interrupt a thread are not available (see cachegram doctor)");
    r->clock = perf && counters_find(&r->counters, &why) == 0 ? COLLECT_CLOCK_PMU
               : vectors_for_counting() != 0                  ? COLLECT_CLOCK_COUNT
                                                              : COLLECT_CLOCK_CPUTIME;
    return asked && r->clock != COLLECT_CLOCK_PMU ? error_set(err, -ENODEV, "--clock pmu: %.900s", why.text)
                                                  : 0;
}

/* The memory shared with the agents, and what these are to do. */
static int begin_session(struct run *r, struct error *err)
{
    const struct collect_options *o = r->options;
    /* A trace has the bursts alone. */
    int has_tails = follows_lines(o) && o->watch == COLLECT_WATCH_AUTO && o->watch_lines == 0 &&
                    o->trace == NULL && o->reduce == COLLECT_REDUCE_DISTANCES;
    const struct session_setting setting = {
        .mode = r->full ? WIRE_MODE_FULL : WIRE_MODE_BURST,
        .begins_full = r->full && !o->full,
        .burst_refs = o->burst_refs,
        .tail_refs = has_tails ? COLLECT_TAIL_TIMES * o->burst_refs : 0,
        .gap_us = o->gap_us != 0 ? o->gap_us
                  : o->full      ? COLLECT_GAP_US
                                 : budget_first_gap_ns(o->overhead_percent) / 1000,
        .seed = o->seed,
        .follow = o->follow,
    };
    int status = session_init(&r->session, &setting, err);
    if (status < 0)
        return status;
    struct wire_session *map = r->session.map;
    map->perf = triggers_available() ? WIRE_EVENTS_OF_TIME : WIRE_EVENTS_NONE;
    if ((status = choose_clock(r, err)) < 0)
        return status;
    map->clock = clocks[r->clock].wire;
    if (r->clock == COLLECT_CLOCK_PMU)
        map->perf = WIRE_EVENTS_OF_COUNTERS;
    map->line_bytes = o->line_bytes;
    int sites = o->reduce == COLLECT_REDUCE_DISTANCES && o->lines_rate == 1;
    map->heap = o->objects && sites;
    map->stacks = o->call_graph && sites;
    map->page_ns = o->full ? 0 : page_cost_ns(WIRE_PAGES_TRIED);
    map->count_vector = o->count_vector != 0 ? o->count_vector : vectors_for_counting();
    return 0;
}

static int begin_watching(struct run *r, struct error *err)
{
    const struct collect_options *o = r->options;
    unsigned lines = o->watch_lines != 0 ? o->watch_lines : COLLECT_WATCH_PER_BURST;
    r->watches = watches_new(r->profile, lines, o->line_bytes, o->seed, err);
    if (r->watches == NULL)
        return -ENOMEM;
    if (protects_pages(o))
        r->session.map->watch = WIRE_WATCH_BY_PAGES;
    const struct watch_setting setting = {
        .watches = r->watches, .line_bytes = o->line_bytes, .seed = o->seed};
    if (drain_watch(r->drain, &setting) < 0)
        return error_set(err, -ENOMEM, "out of memory for the watched lines");
    if (o->watch_lines != 0)
        drain_watch_limit(r->drain, WIRE_MAX_WATCHES, UINT64_MAX);
    return 0;
}

/* Everything that can fail before the command is started. */
static int prepare(struct run *r, struct error *err)
{
    const struct collect_options *o = r->options;
    int status = 0, distances = o->reduce == COLLECT_REDUCE_DISTANCES;
    r->full = o->full || (o->gap_us == 0 && o->allowance_ns > 0);
    if (r->obstacle == NULL)
        status = launch_agent(r->agent, sizeof(r->agent), err);
    if (status >= 0)
        status = begin_session(r, err);
    r->start_ns = monotonic_ns();
    if (status >= 0)
        status = profile_create(o->output, &r->profile, err);
    if (status >= 0)
        status = describe(r, err);
    if (status < 0)
        return status;
    if (o->reduce != COLLECT_REDUCE_NONE &&
        (r->reducer = reducer_new(o->full   ? REDUCE_FULL
                                  : r->full ? REDUCE_FULL_FIRST
                                            : REDUCE_BURSTS,
                                  o->lines_rate, distances, o->line_bytes, r->start_ns, err)) == NULL)
        return -ENOMEM;
    if ((r->drain = drain_new(&r->session, r->reducer, r->profile, r->start_ns, err)) == NULL)
        return -ENOMEM;
    if (distances && follows_lines(o) && (status = begin_watching(r, err)) < 0)
        return status;
    if (r->clock == COLLECT_CLOCK_PMU && !o->full)
        drain_counters(r->drain, &r->counters);
    if (o->trace != NULL) {
        char command[4096];
        launch_quote(o->argv, command, sizeof(command));
        if ((r->tee = tee_new(o->trace, command, o->full, err)) == NULL)
            return -EIO;
        drain_tee(r->drain, r->tee);
    }
    return 0;
}

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

/* What was used so far, before bursts began or since. */
static struct budget_use used(struct run *r, uint64_t recorder_before_ns)
{
    struct budget_use use = drain_use(r->drain);
    use.recorder_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - recorder_before_ns;
    use.target_ns -= r->before.target_ns;
    use.burst_ns -= r->before.burst_ns;
    use.recorder_ns -= r->before.recorder_ns;
    use.watch_ns -= r->before.watch_ns;
    use.start_ns -= r->before.start_ns;
    use.bursts -= r->before.bursts;
    return use;
}

/*
 * CPU time that buffers which are ready will take, by what later ones took: the first are far more expensive,
 * since tables are created and code is translated.
 */
static double backlog_ns(struct run *r, uint64_t buffers, uint64_t spent_ns)
{
    if (buffers < COLLECT_FULL_FIRST_BUFFERS)
        return 0;
    if (r->first_buffers == 0) {
        r->first_buffers = buffers;
        r->first_ns = spent_ns;
    }
    uint64_t later = buffers - r->first_buffers;
    return later > 0 ? (double)drain_ready(r->drain) * (double)(spent_ns - r->first_ns) / (double)later : 0;
}

/*
 * Full mode is over once its part of the allowance is spent: by the recorder, by the program in translated
 * code (all of it counts, though some is its own work), and by what is still to be done with buffers handed
 * over.
 */
static void spend_on_full(struct run *r, struct budget *b, uint64_t recorder_before_ns, uint64_t buffers)
{
    uint64_t full_ns = reduce_totals(r->reducer)->burst_cpu_ns;
    uint64_t spent_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - recorder_before_ns + full_ns;
    double all_ns = (double)spent_ns + backlog_ns(r, buffers, spent_ns),
           allowance_ns = (double)r->options->allowance_ns;
    struct error err;
    if (r->switching.mean_ns != 0 ? monotonic_ns() < r->switching.next_ns
                                  : all_ns < COLLECT_FULL_PART * allowance_ns)
        return;
    budget_allow(b, all_ns < allowance_ns ? (uint64_t)(allowance_ns - all_ns) : 0);
    __atomic_store_n(&r->session.map->gap_ns, b->gap_ns, __ATOMIC_RELAXED);
    drain_full_over(r->drain);
    r->full = 0;
    r->full_ns = full_ns;
    r->before = used(r, recorder_before_ns);
    profile_set(r->profile, "mode", "burst", &err); /* should that fail, the next commit does, too */
}

static void begin_switching(struct run *r)
{
    if (r->session.layout.begins_full)
        r->switching.mean_ns = r->options->switch_ms * UINT64_C(1000000);
    random_seed(&r->switching.random, r->options->seed);
    if (r->switching.mean_ns != 0)
        r->switching.next_ns = r->start_ns + 10 * r->switching.mean_ns;
}

static void switch_modes(struct run *r, uint64_t now)
{
    struct switching *s = &r->switching;
    uint32_t mode = __atomic_load_n(&r->session.map->mode, __ATOMIC_RELAXED);
    if (s->mean_ns == 0 || r->full || now < s->next_ns)
        return;
    s->next_ns = now + random_below(&s->random, 2 * s->mean_ns);
    mode = mode == WIRE_MODE_FULL ? WIRE_MODE_BURST : WIRE_MODE_FULL;
    __atomic_store_n(&r->session.map->mode, mode, __ATOMIC_RELEASE);
}

/* Sets the gap for the next bursts. */
static void keep_budget(struct run *r, struct budget *b, uint64_t recorder_before_ns)
{
    struct budget_use use = used(r, recorder_before_ns);
    uint64_t gap_ns = budget_next(b, &use);
    if (r->switching.mean_ns != 0) /* some bursts before the next switch */
        gap_ns = r->switching.mean_ns / 4;
    __atomic_store_n(&r->session.map->gap_ns, gap_ns, __ATOMIC_RELAXED);
    if (r->watches != NULL && r->options->watch_lines == 0) {
        watches_set_per_burst(r->watches, b->watch);
        drain_watch_limit(r->drain, COLLECT_WATCH_LIVE / COLLECT_WATCH_PER_BURST * b->watch,
                          budget_watch_allowance_ns(b));
    }
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
static void collect(struct run *r, uint64_t recorder_before_ns)
{
    int budgeted = !r->options->full && r->options->gap_us == 0;
    uint64_t next_budget = 0, buffers = 0;
    struct budget budget;
    budget_init(&budget, r->options->overhead_percent);
    begin_switching(r);
    uint64_t next_look = 0, look_ms = COLLECT_SLEEP_MS,
             next_commit = r->start_ns + COLLECT_FIRST_COMMIT_MS * UINT64_C(1000000);
    for (;;) {
        uint64_t taken = drain_pass(r->drain);
        uint64_t now = monotonic_ns();
        buffers += taken;
        if (budgeted && r->full)
            spend_on_full(r, &budget, recorder_before_ns, buffers);
        switch_modes(r, now);
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
        if (budgeted && !r->full && now >= next_budget) {
            keep_budget(r, &budget, recorder_before_ns);
            next_budget = now + BUDGET_EVERY_MS * UINT64_C(1000000);
        }
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
            drain_wait(r->drain, r->switching.mean_ns != 0 ? 1 : (int)look_ms);
    }
}

/* Releases the processes that still run, then drains what all have left in the buffers. */
static void collect_rest(struct run *r)
{
    uint64_t until = monotonic_ns() + COLLECT_GRACE_MS * UINT64_C(1000000);
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
    warn(r->result, "%u process%s still ran when the command ended; what %s did later was not recorded", live,
         live == 1 ? "" : "es", live == 1 ? "it" : "they");
    while (drain_live(r->drain) != 0 && monotonic_ns() < until) {
        drain_wait(r->drain, COLLECT_GRACE_MS / 5);
        drain_pass(r->drain);
        drain_look(r->drain);
    }
}

/* CPU time in user mode that the program took after full mode, without profiling: what bursts represent. */
static double rest_seconds(const struct run *r, double added)
{
    double all = cpu_seconds(&r->usage), user = all > 0 ? seconds(&r->usage.ru_utime) / all : 0;
    double rest = all - (double)r->before.target_ns * 1e-9 - (added - (double)r->full_ns * 1e-9);
    return rest > 0 ? rest * user : 0;
}

static int store_results(struct run *r, int exit_status, double recorder_seconds, struct error *err)
{
    struct collect_result *result = r->result;
    const struct reduce_totals *t = reduce_totals(r->reducer);
    double target = cpu_seconds(&r->usage);
    uint64_t burst_ns = drain_burst_cpu_ns(r->drain) - r->before.burst_ns + r->full_ns;
    if (r->full && burst_ns < t->burst_cpu_ns)
        burst_ns = t->burst_cpu_ns;
    double bursts = (double)burst_ns * 1e-9;
    struct budget_use use = drain_use(r->drain);
    double watching = (double)use.watch_ns * 1e-9, starts = (double)use.start_ns * 1e-9;
    double budgeted = bursts + watching + starts,
           added = budgeted + (double)drain_counting_ns(r->drain) * 1e-9;

    /* Without a reducer only the trace was written, which counts references. */
    result->references = r->reducer != NULL ? t->decoded.references : result->trace_references;
    result->full = r->full;
    result->full_references = t->full_references;
    result->bursts = r->reducer != NULL ? t->bursts : r->full ? 0 : use.bursts;
    /* All of a burst counts as overhead, although part of it is the program's own work, except what the agent
     * knows not to be overhead (system calls). In full mode there is nothing to compare with. */
    result->overhead_percent = !r->full && target > added ? 100 * added / (target - added) : NAN;
    result->cpu_seconds = target;
    double program_seconds = r->full ? target : target - added;
    result->recorder_overhead_percent = program_seconds > 0 ? 100 * recorder_seconds / program_seconds : NAN;

    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"references", (double)result->references},
        {"touches", (double)t->decoded.touches},
        {"loads", (double)t->decoded.loads},
        {"stores", (double)t->decoded.stores},
        {"instructions", (double)t->decoded.instructions},
        {"cold", (double)t->cold},
        {"bursts", (double)result->bursts},
        {"full_references", r->full ? NAN : (double)t->full_references},
        {"full_cold", r->full ? NAN : (double)t->full_cold},
        {"full_left", r->full ? NAN : (double)t->full_left},
        {"rest_cpu_seconds", t->full_references > 0 && !r->full ? rest_seconds(r, budgeted) : NAN},
        {"full_cpu_seconds", r->full ? NAN : (double)r->full_ns * 1e-9},
        {"clock_references", r->clock == COLLECT_CLOCK_COUNT_ALWAYS && !r->full
                                 ? (double)(drain_counted(r->drain) + t->decoded.references)
                                 : NAN},
        {"bad_records", (double)t->decoded.bad_records},
        {"lost_buffers", (double)drain_lost(r->drain)},
        {"cpu_seconds", target},
        {"user_cpu_seconds", seconds(&r->usage.ru_utime)},
        {"sampled_cpu_seconds", r->reducer != NULL && !r->full && r->clock != COLLECT_CLOCK_COUNT_ALWAYS
                                    ? (double)t->represented_ns * 1e-9
                                    : NAN},
        {"recorder_cpu_seconds", recorder_seconds},
        {"overhead_percent", result->overhead_percent},
        {"burst_cpu_seconds", bursts},
        {"watch_cpu_seconds", watching},
        {"start_cpu_seconds", starts},
        {"memory_bytes", (double)drain_memory_bytes(r->drain)},
        {"wall_seconds", (double)(monotonic_ns() - r->start_ns) * 1e-9},
        {"exit_status", exit_status},
    };
    int status = 0;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && status >= 0; i++)
        if (!isnan(numbers[i].value))
            status = profile_set_number(r->profile, numbers[i].key, numbers[i].value, err);
    if (status >= 0 && result->warning[0] != '\0')
        status = profile_set(r->profile, "warning", result->warning, err);
    return status;
}

/* Warns of programs that the agent could not be loaded into, among the command's children or executed by the
 * command. */
static void warn_unprofiled_time(struct run *r, int named, struct error *err)
{
    double all = cpu_seconds(&r->usage), profiled = (double)drain_agent_ns(r->drain) * 1e-9;
    double rest = r->obstacle == NULL ? all - profiled : all;
    uint32_t refused = __atomic_load_n(&r->session.map->refused_slots, __ATOMIC_RELAXED);
    if (!r->options->follow || refused != 0 || drain_trouble(r->drain) != NULL ||
        rest < COLLECT_UNPROFILED_SHARE * all || rest < COLLECT_UNPROFILED_SECONDS)
        return;
    if (profile_set_number(r->profile, "unprofiled_cpu_seconds", rest, err) < 0)
        return;
    if (r->obstacle == NULL)
        warn(r->result, "%.2f s of the %.2f s of CPU time were not profiled%s", rest, all,
             named ? "" : ": programs that are " UNPROFILED_KINDS);
}

/* Burst mode: why there are no bursts, or far fewer than planned. */
static void warn_few_bursts(struct run *r, struct error *err)
{
    const struct reduce_totals *t = reduce_totals(r->reducer);
    struct collect_result *result = r->result;
    double cpu = cpu_seconds(&r->usage) - (double)r->before.target_ns * 1e-9,
           represented = (double)t->represented_ns * 1e-9;
    char why[sizeof(result->nothing)];
    if (r->full || r->reducer == NULL ||
        (t->bursts != 0 && (r->clock == COLLECT_CLOCK_COUNT_ALWAYS || represented > COLLECT_FEW_SHARE * cpu)))
        return;
    /* After full mode, which has not been short of anything, a short rest may well have none. */
    if (t->full_references != 0 && t->bursts == 0 && cpu < COLLECT_REST_SECONDS)
        return;
    struct refusals refused = *drain_refusals(r->drain);
    if (t->bursts != 0) /* a thread that waits for an answer of the collector blocks all signals, too */
        refused.blocked_ns = 0;
    refusals_reason(&refused, (uint64_t)(cpu * 1e9), why, sizeof(why));
    if (why[0] != '\0' && t->bursts != 0) {
        profile_set(r->profile, "few_bursts", why, err);
    } else if (why[0] != '\0') {
        warn(result, "no bursts: %s", why);
        profile_set(r->profile, "few_bursts", why, err);
    } else if (t->bursts == 0 && result->warning[0] == '\0' && drain_trouble(r->drain) == NULL) {
        double gap = (double)r->session.map->gap_ns * 1e-9;
        snprintf(result->nothing, sizeof(result->nothing), "%s, it took %.0f ms of CPU time; try --mode full",
                 cpu < COLLECT_SHORT_GAPS * gap ? "too short to be sampled"
                                                : "no burst happened to begin in it",
                 cpu * 1e3);
    }
}

/* Full mode, and counting always: how much could not be recorded or counted, and why. */
static void warn_missed(struct run *r, int named, struct error *err)
{
    int counted = !r->full;
    const struct reduce_totals *t = reduce_totals(r->reducer);
    if ((counted && r->clock != COLLECT_CLOCK_COUNT_ALWAYS) || r->reducer == NULL)
        return;
    struct missed m = *drain_missed(r->drain);
    double elsewhere = 0;
    if (named) /* programs without the agent are known: the remaining time is theirs */
        elsewhere = cpu_seconds(&r->usage) - (double)drain_agent_ns(r->drain) * 1e-9;
    else if (profile_get_number(r->profile, "unprofiled_cpu_seconds", &elsewhere, NULL) < 0)
        elsewhere = 0;
    m.elsewhere_ns = elsewhere > 0 ? (uint64_t)(elsewhere * 1e9) : 0;
    double references = (double)(t->decoded.references + (counted ? drain_counted(r->drain) : 0));
    double translated_ns = counted ? cpu_seconds(&r->usage) * 1e9 : (double)t->burst_cpu_ns;
    double percent = missed_percent(&m, counted, references, translated_ns);
    if (profile_set_number(r->profile, "missed_percent", percent, err) < 0 || percent < MISSED_STORED_PERCENT)
        return;
    char why[512];
    missed_reasons(&m, why, sizeof(why));
    if (profile_set(r->profile, "missed", why, err) < 0 || percent < MISSED_WARNED_PERCENT)
        return;
    warn(r->result, "about %.*f%% of the references are missing, since they were not recorded: %s",
         percent < 10, percent, why);
}

/* Names code while its files exist. Everything else is committed before, since this may take a moment. */
static void name_code(struct run *r)
{
    struct error err;
    if (r->reducer == NULL || r->options->reduce != COLLECT_REDUCE_DISTANCES ||
        drain_trouble(r->drain) != NULL)
        return;
    struct symbols_code code = code_found(reduce_code(r->reducer));
    code.objects = object_table_all(reduce_objects(r->reducer), &code.nobjects);
    code.files = object_table_files(reduce_objects(r->reducer), &code.nfiles);
    reduce_describe(r->reducer, &code);
    if (profile_commit(r->profile, &err) < 0 || symbols_name(r->profile, &code, &err) < 0)
        warn(r->result, "functions and lines were not named: %s", err.text);
}

static void finish(struct run *r, int exit_status, double recorder_seconds)
{
    struct collect_result *result = r->result;
    struct error err = {""};
    char list[768] = ""; /* programs without the agent */
    static const char *const of_bursts[] = {"burst_refs", "budget_percent", "clock", "clock_error", "watch"};

    if (r->obstacle == NULL) {
        uint32_t refused = __atomic_load_n(&r->session.map->refused_slots, __ATOMIC_RELAXED);
        if (__atomic_load_n(&r->session.map->attached, __ATOMIC_RELAXED) == 0)
            warn(result, "the agent was never loaded into the program");
        if (__atomic_load_n(&r->session.map->refused_pids, __ATOMIC_RELAXED) != 0)
            warn(result, "what ran in another PID namespace (a sandbox or container) was not recorded: "
                         "record inside it");
        if (__atomic_load_n(&r->session.map->refused_roots, __ATOMIC_RELAXED) != 0)
            warn(result, "what ran in another root directory (chroot or container) was not recorded: the "
                         "agent's library cannot be opened there");
        if (refused != 0)
            warn(result,
                 "%u processes were not recorded, as more than %u ran, or had just ended, at the same time",
                 refused, COLLECT_SLOTS);
    } else {
        warn(result, "not profiled: %s %s, so the agent cannot be loaded into it", r->options->argv[0],
             r->obstacle);
        snprintf(list, sizeof(list), "%s (%s)", r->options->argv[0], r->obstacle);
    }
    if (r->options->reduce != COLLECT_REDUCE_DISTANCES)
        warn(result, "recorded without distances, as requested by --reduce: this profile has no curve");
    drain_finish(r->drain);
    char text[256];
    for (unsigned why = 0; unprofiled_next(drain_unprofiled(r->drain), &why, text, sizeof(text));)
        warn(result, "%s", text);
    if (r->obstacle == NULL && r->options->follow)
        drain_agentless(r->drain, list, sizeof(list));
    if (r->obstacle == NULL && list[0] != '\0')
        warn(result, "not profiled: %s", list);
    if (list[0] != '\0')
        profile_set(r->profile, "unprofiled", list, &err);
    warn_unprofiled_time(r, list[0] != '\0', &err);
    warn_missed(r, list[0] != '\0', &err);
    warn_few_bursts(r, &err);
    if (r->tee != NULL) {
        tee_flush(r->tee);
        result->trace_references = tee_references(r->tee);
        if (tee_finish(r->tee, &err) < 0)
            warn(result, "the trace is incomplete: %s", err.text);
        r->tee = NULL;
    }
    if (r->full) /* what it would have been, had the allowance not sufficed */
        for (size_t i = 0; i < sizeof(of_bursts) / sizeof(of_bursts[0]); i++)
            profile_unset(r->profile, of_bursts[i], &err);
    name_code(r);
    const struct error *trouble = drain_trouble(r->drain);
    if (trouble != NULL) {
        result->trouble = *trouble;
        warn(result, "recording ended early: %s", trouble->text);
    }
    /* Attempted in any case: if only memory was short, the file can still be written. */
    int status = store_results(r, exit_status, recorder_seconds, &err);
    if (profile_close(r->profile, trouble == NULL && status >= 0, status >= 0 ? &err : NULL) < 0)
        status = -EIO;
    if (status < 0 && trouble == NULL)
        result->trouble = err;
    r->profile = NULL;
}

int collect_run(const struct collect_options *options, struct collect_result *result, struct error *err)
{
    struct run r = {.options = options, .result = result, .session = {.fd = -1}};
    char path[PATH_MAX], name[64];
    sigset_t mask, all;

    *result = (struct collect_result){0};
    /* The start of this process counts for the first recording. */
    static int has_recorded;
    struct rusage before = {0}, after;
    uint64_t recorder_before_ns = has_recorded ? clock_ns(CLOCK_PROCESS_CPUTIME_ID) : 0;
    if (has_recorded)
        getrusage(RUSAGE_SELF, &before);
    has_recorded = 1;
    int status = launch_find(options->argv[0], path, sizeof(path), err);
    if (status < 0)
        return status == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
    r.obstacle = launch_obstacle(path);
    signals_begin();
    if (prepare(&r, err) < 0) {
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
    collect(&r, recorder_before_ns);
    result->stopped = signals_stopped(r.command);
    int exit_status =
        WIFSIGNALED(r.wait_status) ? STATUS_SIGNAL + WTERMSIG(r.wait_status) : WEXITSTATUS(r.wait_status);
    collect_rest(&r);
    getrusage(RUSAGE_SELF, &after);
    finish(&r, exit_status, cpu_seconds(&after) - cpu_seconds(&before));
    signals_end();
    clear(&r);
    return exit_status;
}
