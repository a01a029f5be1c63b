/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirating.c - before and after the measurement: the cache, the Pirate, which sizes it can hold; results.
 *
 * Nothing is started before all conditions for a result hold: the cache is shared, the Pirate has its own
 * core, cache and memory can be distinguished, and the meter exists.
 */
#include "pirate/pirating.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/read-text.h"
#include "base/sizes.h"
#include "collect/launch/launch.h"
#include "pirate/pirating-internal.h"
#include "collect/launch/process-time.h"

#define DEFAULT_SIZES 16u
/* How long the Pirate is observed alone, and how often it may fail before a size is rejected. In a virtual
 * machine, a neighbour's activity lasts some milliseconds. */
#define ALONE_NS 30000000u
#define ALONE_TRIES 3
#define ALONE_STEPS 32 /* of the size: resolution of the largest size that can be held alone */
/* Share of the last level from which on the cache counts as exclusively ours: indexing and pages explain the
 * rest. */
#define ENOUGH 0.75
/* Hosts migrate their guests' CPUs every few seconds: how long to wait until two share a cache. */
#define SHARED_WAIT_NS UINT64_C(5000000000)
#define INTERVALS_LEAST 3u /* fewest for a meaningful interval */
#define PIRATES_AUTO \
    2u /* Eklov: two worked on every machine that they tried, three saturate the cache (III.4.4) */

/* --- sizes --- */

static int larger_first(const void *a, const void *b)
{
    uint64_t x = ((const struct cell *)a)->available_bytes, y = ((const struct cell *)b)->available_bytes;
    return (x < y) - (x > y);
}

static int make_cells(struct pirating *p, struct error *err)
{
    const struct pirating_options *o = p->options;
    uint64_t llc = p->result->llc_bytes, line = p->result->llc.line_bytes;
    size_t lost = 0;
    p->n = o->available ? o->n : DEFAULT_SIZES;
    p->cells = calloc(p->n, sizeof *p->cells);
    if (!p->cells)
        return error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < p->n; i++) {
        uint64_t size = o->available ? o->available[i] : llc / DEFAULT_SIZES * (i + 1);
        struct cell *cell = &p->cells[i];
        cell->available_bytes = size;
        cell->out_of_reach = size > llc;
        if (cell->out_of_reach) {
            lost++;
            continue;
        }
        cell->stolen_bytes = (llc - size) / line * line;
        cell->available_bytes = llc - cell->stolen_bytes;
        cell->out_of_reach = p->pirate && cell->stolen_bytes > p->result->alone_bytes;
        lost += (size_t)cell->out_of_reach;
    }
    if (lost > 0)
        pirating_note(
            p,
            "%zu of %zu sizes are larger than the cache or smaller than the Pirate can leave: not measured",
            lost, p->n);
    qsort(p->cells, p->n, sizeof *p->cells, larger_first);
    return 0;
}

/* --- set-up --- */

/* The CPU on which a process ran last, -1 if unknown. */
static int cpu_of(pid_t pid)
{
    char text[1024];
    int cpu = -1;
    read_text(text, sizeof text, "/proc/%d/stat", pid);
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 39; field++) /* proc(5): field 39, counted from 1 */
        at = strchr(at + 1, ' ');
    if (at)
        cpu = atoi(at + 1);
    return cpu;
}

static int set_up_pirate(struct pirating *p, struct error *err)
{
    struct pirating_result *r = p->result;
    unsigned threads = p->options->threads ? p->options->threads : PIRATES_AUTO;
    if (p->options->threads > r->llc.pirates)
        return error_set(
            err, -EINVAL,
            "%u Pirate threads need as many cores in addition to the program's, but there are %u",
            p->options->threads, r->llc.pirates);
    r->threads = threads < r->llc.pirates ? threads : r->llc.pirates;
    p->threads = 1;
    if (p->options->threads)
        p->threads = p->options->threads;
    uint64_t most = r->llc.size_bytes + r->llc.size_bytes / ALONE_STEPS + r->threads * r->llc.private_bytes;
    int code = pirate_new(&r->llc, r->threads, most, &p->pirate, err);
    if (code == 0)
        code = pirate_calibrate(p->pirate, err);
    if (code != 0)
        return code;
    r->scale = *pirate_scale(p->pirate);
    r->ticks_per_ns = pirate_ticks_per_ns(p->pirate);
    r->huge_pages = pirate_has_huge_pages(p->pirate);
    if (!r->huge_pages)
        pirating_note(p, "no huge pages: the Pirate's data may be distributed unevenly over the cache's "
                         "sets, and occupy less of it");
    return 0;
}

/* Does the Pirate hold so much while the program does not run? */
static int holds_alone(struct pirating *p, uint64_t stolen_bytes)
{
    const struct timespec watch = {0, ALONE_NS};
    pirating_take(p, p->threads, stolen_bytes, NULL);
    for (int i = 0; i < ALONE_TRIES; i++) {
        struct hold_count before = pirate_count(p->pirate);
        nanosleep(&watch, NULL);
        struct hold_count now = pirate_count(p->pirate), seen = hold_since(&before, &now);
        /* Not having had its CPU says nothing about the cache. */
        if (hold_judge(&seen, pirate_scale(p->pirate), p->options->limit).fetch_ratio_upper <
            p->options->limit)
            return 1;
    }
    return 0;
}

/*
 * Size of the last level that can be shared: what the Pirate alone can hold. Other programs use the cache
 * too, also on the host of a virtual machine, and their part is not available. By bisection.
 */
static int find_size(struct pirating *p, struct error *err)
{
    struct pirating_result *r = p->result;
    uint64_t held = 0, lost = r->llc.size_bytes + r->llc.size_bytes / ALONE_STEPS;
    while (lost - held > r->llc.size_bytes / ALONE_STEPS) {
        uint64_t half = held + (lost - held) / 2;
        if (holds_alone(p, half))
            held = half;
        else
            lost = half;
    }
    pirating_take(p, 0, 0, NULL);
    r->alone_bytes = held < r->llc.size_bytes ? held : r->llc.size_bytes;
    if (held == 0)
        return error_set(
            err, -EBUSY,
            "the Pirate cannot hold even a small part of the last-level cache, so nothing can be measured: "
            "other programs use all of it; try on a quieter machine, or a higher --limit");
    if (p->options->llc_bytes || (double)r->alone_bytes >= ENOUGH * (double)r->llc.size_bytes)
        return 0;
    char held_text[SIZE_TEXT], all[SIZE_TEXT];
    r->llc_bytes = r->alone_bytes / r->llc.line_bytes * r->llc.line_bytes;
    pirating_note(p,
                  "of the last-level cache's %s the Pirate can hold only %s, even alone (others use it, or "
                  "the host of this virtual machine provides no more): sizes are relative to that",
                  size_format(r->llc.size_bytes, all), size_format(r->alone_bytes, held_text));
    return 0;
}

/* A line that the Pirate evicts from an inclusive last level is evicted from the program's private caches,
 * too. */
static void note_inclusion(struct pirating *p)
{
    const struct llc *llc = &p->result->llc;
    if (!llc->inclusive)
        return;
    pirating_note(
        p,
        "the last level is inclusive: lines that it evicts leave the program's private caches (%llu KB), "
        "too, even frequently used ones, so sizes near that cost more than a smaller cache would",
        (unsigned long long)(llc->inner_bytes >> 10));
}

static void note_rivals(struct pirating *p)
{
    size_t n = rivals_count(&p->rivals);
    if (n > 0)
        pirating_note(
            p,
            "%s cachegram pirate measured on this machine at the same time (process %d): each takes cache "
            "and time from the other; measure one after the other",
            n == 1 ? "another" : "more than one other", (int)p->rivals.pid[0]);
}

static int set_up(struct pirating *p, struct error *err)
{
    const struct pirating_options *o = p->options;
    struct pirating_result *r = p->result;
    int code = llc_find(o->pid > 0 ? cpu_of(o->pid) : -1, &r->llc, err);
    if (code != 0)
        return code;
    r->llc_bytes = o->llc_bytes ? o->llc_bytes : r->llc.size_bytes;
    if (r->llc_bytes > r->llc.size_bytes)
        return error_set(err, -EINVAL, "--llc: the last level has only %llu bytes",
                         (unsigned long long)r->llc.size_bytes);
    rivals_enter(&p->rivals);
    note_inclusion(p);
    if (o->resctrl) {
        code = resctrl_new(RESCTRL_FOLDER, r->llc_bytes, &p->resctrl, err);
    } else {
        code = set_up_pirate(p, err);
        if (code == 0)
            code = find_size(p, err);
    }
    if (code == 0)
        code = make_cells(p, err);
    for (size_t i = 0; code == 0 && p->resctrl && i < p->n; i++) {
        p->cells[i].available_bytes = resctrl_round(p->resctrl, p->cells[i].available_bytes);
        p->cells[i].stolen_bytes = r->llc_bytes - p->cells[i].available_bytes;
    }
    return code;
}

/* Called when running on the program's CPUs. */
static int wait_until_shared(struct pirating *p, struct error *err)
{
    const struct timespec pause = {0, ALONE_NS};
    uint64_t give_up = monotonic_ns() + SHARED_WAIT_NS;
    while (!pirating_shared(p)) {
        if (monotonic_ns() > give_up)
            return error_set(
                err, -ENOTSUP,
                "a line takes %.0f ns from one CPU to the other, as from memory: they do not share their "
                "last-level cache, whatever the system says (the host of a virtual machine may put them on "
                "different ones); try again later, or on bare metal",
                pirate_transfer_ticks(p->pirate) / p->result->ticks_per_ns);
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* --- results --- */

/* NaN for a divisor of 0. */
static double over(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static void fill_row(const struct pirating *p, const struct cell *cell, struct profile_pirate *row)
{
    *row = (struct profile_pirate){.available_bytes = cell->available_bytes,
                                   .stolen_bytes = cell->stolen_bytes,
                                   .intervals = cell->rate.n,
                                   .dropped = cell->dropped,
                                   .cpu_ns = cell->rate.x,
                                   .units = cell->rate.y,
                                   .ns_per_ref = NAN,
                                   .cpi = NAN,
                                   .gbps = NAN,
                                   .fetch_ratio = NAN,
                                   .miss_ratio = NAN,
                                   .pirate_fetch_ratio = NAN,
                                   .lost_share = NAN};
    snprintf(row->by, sizeof row->by, "%s", p->resctrl ? "resctrl" : "pirate");
    if (p->pirate && cell->stolen_bytes > 0) {
        struct hold_verdict v = hold_judge(&cell->seen, pirate_scale(p->pirate), p->options->limit);
        row->pirate_fetch_ratio = v.fetch_ratio;
        row->lost_share = v.lost_share;
    }
    const double *events = cell->events;
    if (p->options->progress && cell->rate.n > 0) {
        double fetches = events[PERF_LLC_MISSES] + events[PERF_LLC_FETCHES];
        row->cpi = over(events[PERF_CYCLES], events[PERF_INSTRUCTIONS]);
        row->ns_per_ref = over(row->cpu_ns, events[PERF_REFERENCES]);
        row->miss_ratio = over(events[PERF_LLC_MISSES], events[PERF_REFERENCES]);
        row->fetch_ratio = over(fetches, events[PERF_REFERENCES]);
        row->gbps = over(fetches * p->result->llc.line_bytes, row->cpu_ns);
    }
    ratio_estimate(&cell->rate, &row->ns_per_unit, &row->ns_low, &row->ns_high);
    /*
     * Intervals in which the Pirate did not run are dropped at random. Those in which it lost its set are not
     * random: there the program competed for its cache. The remaining ones represent the program only if they
     * are the majority.
     */
    row->valid = cell->rate.n >= (p->options->progress ? INTERVALS_LEAST : 1u) &&
                 cell->rate.n >= cell->not_held && !isnan(row->ns_per_unit);
    if (!row->valid)
        row->ns_per_unit = row->ns_low = row->ns_high = row->ns_per_ref = row->cpi = row->gbps =
            row->miss_ratio = row->fetch_ratio = NAN;
}

static int fill_rows(struct pirating *p, struct error *err)
{
    p->result->rows = calloc(p->n, sizeof *p->result->rows);
    if (!p->result->rows)
        return error_set(err, -ENOMEM, "out of memory");
    p->result->n = p->n;
    for (size_t i = 0; i < p->n; i++)
        fill_row(p, &p->cells[i], &p->result->rows[i]);
    return 0;
}

static void note_dropped(struct pirating *p, uint64_t n, const char *why)
{
    if (n > 0)
        pirating_note(p, "%llu measurements were dropped, since %s", (unsigned long long)n, why);
}

int pirating_run(const struct pirating_options *options, struct pirating_result *result, struct error *err)
{
    struct pirating p = {.options = options, .result = result, .rivals.fd = -1};
    struct meter meter = {.kind = METER_NONE, .fd = -1};
    char path[PATH_MAX];
    int status, code = 0;
    *result = (struct pirating_result){.unit = "run",
                                       .stopped_share = NAN,
                                       .cachegram_share = NAN,
                                       .alone_ns = NAN,
                                       .interference_ns = NAN,
                                       .cpu_seconds = NAN,
                                       .wall_seconds = NAN,
                                       .ticks_per_ns = NAN};
    sched_getaffinity(0, sizeof p.all, &p.all);
    if (options->argv && (code = launch_find(options->argv[0], path, sizeof path, err)) != 0)
        return pirating_start_status(code);
    const struct span span = pirating_span(&p);
    if ((code = span_check(&span, options->argv ? path : NULL, err)) != 0)
        return options->argv ? 125 : 1;
    if (options->progress) {
        code = meter_init(&meter, options->progress, options->argv ? path : NULL, err);
        result->unit = meter_unit(&meter);
    } else if (!options->argv) {
        code = error_set(err, -EINVAL,
                         "an attached program is measured in intervals, and these need --progress");
    }
    if (code == 0)
        code = set_up(&p, err);
    status = options->argv ? 125 : 1;
    if (code == 0) {
        cpu_set_t target_cpus;
        pirating_target_cpus(&p, &target_cpus);
        sched_setaffinity(0, sizeof target_cpus, &target_cpus); /* when we wake up, the Pirate sweeps on */
        code = wait_until_shared(&p, err);
    }
    if (code == 0)
        status = options->progress ? pirating_intervals(&p, &meter, err) : pirating_whole_runs(&p, err);
    sched_setaffinity(0, sizeof p.all, &p.all);
    if (result->ran) {
        result->status = status;
        note_dropped(&p, result->unshared,
                     "the two CPUs did not share their cache at that time (the host of a virtual machine "
                     "migrates them)");
        note_rivals(&p);
        note_dropped(&p, result->disturbed,
                     "the program or cachegram was stopped by a signal (Ctrl-Z) meanwhile");
        if (fill_rows(&p, err) != 0)
            pirating_note(&p, "%s", err->text);
    }
    rivals_leave(&p.rivals);
    pirate_free(p.pirate);
    resctrl_free(p.resctrl);
    free(p.cells);
    return status;
}

void pirating_clear(struct pirating_result *result)
{
    free(result->rows);
    result->rows = NULL;
    result->n = 0;
}
