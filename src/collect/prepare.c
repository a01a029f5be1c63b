/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.c - everything that can fail before the command is started: the clock is chosen, the memory shared
 * with the agents and the profile are created, and the profile gets a description of the run.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "collect/clock/faultcost.h"
#include "collect/clock/trigger.h"
#include "collect/launch/launch.h"
#include "collect/launch/process-time.h"
#include "collect/records/filter.h"
#include "collect/records/tee.h"
#include "collect/run-internal.h"
#include "collect/tunables.h"
#include "machine/cpuinfo.h"
#include "machine/machine.h"
#include "machine/vectors.h"

static const struct {
    const char *name;
    enum wire_clock wire;
    double error; /* relative error of rates; NaN: unknown */
} clocks[] = {
    [COLLECT_CLOCK_AUTO] = {"count", WIRE_CLOCK_COUNT, COLLECT_COUNT_ERROR},
    /* The counters' error is unknown: they have not been compared with exact counts. */
    [COLLECT_CLOCK_PMU] = {"pmu", WIRE_CLOCK_CPUTIME, NAN},
    [COLLECT_CLOCK_COUNT] = {"count", WIRE_CLOCK_COUNT, COLLECT_COUNT_ERROR},
    [COLLECT_CLOCK_COUNT_ALWAYS] = {"count-always", WIRE_CLOCK_COUNT, 0},
    [COLLECT_CLOCK_CPUTIME] = {"cputime", WIRE_CLOCK_CPUTIME, NAN},
};

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

/* Counters are used if the user asks for them, and where the agent cannot count: they give no ticks, which
 * phases need, and were never tested on a machine that has them. */
static int choose_clock(struct run *r, struct error *err)
{
    struct error why = {""};
    int perf = r->session.map->perf != 0, asked = r->options->clock == COLLECT_CLOCK_PMU;
    r->clock = r->options->clock;
    if (r->clock == COLLECT_CLOCK_AUTO && vectors_for_counting() != 0)
        r->clock = COLLECT_CLOCK_COUNT;
    int counts = r->clock == COLLECT_CLOCK_COUNT || r->clock == COLLECT_CLOCK_COUNT_ALWAYS;
    if (counts && !r->options->full && vectors_for_counting() == 0) {
        int always = r->clock == COLLECT_CLOCK_COUNT_ALWAYS;
        return error_set(err, -ENODEV,
                         "%s: needs a processor with AVX2 and BMI2, and a kernel that saves its vector "
                         "registers; use %s",
                         always ? "--mode count" : "--clock count",
                         always ? "--mode burst" : "--clock cputime");
    }
    if (r->options->full || (r->clock != COLLECT_CLOCK_AUTO && !asked))
        return 0;
    if (!perf)
        error_set(&why, -ENODEV,
                  "perf events that interrupt a thread are not available (see cachegram doctor)");
    r->clock = perf && counters_find(&r->counters, &why) == 0 ? COLLECT_CLOCK_PMU : COLLECT_CLOCK_CPUTIME;
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
    /* Perhaps for a part of the run. */
    int counts = r->full || o->clock == COLLECT_CLOCK_COUNT_ALWAYS;
    const struct session_setting setting = {
        .mode = r->full                                           ? WIRE_MODE_FULL
                : r->options->clock == COLLECT_CLOCK_COUNT_ALWAYS ? WIRE_MODE_COUNT
                                                                  : WIRE_MODE_BURST,
        .begins_full = r->full && !o->full,
        .burst_refs = o->burst_refs,
        .tail_refs = has_tails ? COLLECT_TAIL_TIMES * o->burst_refs : 0,
        .long_tail_refs = has_tails && counts ? COLLECT_LONG_TAIL_TIMES * o->burst_refs : 0,
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
    if (!o->unfiltered && o->full && o->lines_rate < 1 && o->reduce == COLLECT_REDUCE_DISTANCES &&
        o->trace == NULL && vectors_have_bmi2()) {
        struct wire_session *ours = &r->session.layout;
        r->filter_share = filter_choose(ours->filter, o->lines_rate, o->seed);
        memcpy(map->filter, ours->filter, sizeof(map->filter));
        map->filters = 1;
    }
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

int run_prepare(struct run *r, struct error *err)
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
    if (r->reducer != NULL && r->filter_share > 0)
        reducer_filter(r->reducer, r->session.layout.filter, r->filter_share);
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
