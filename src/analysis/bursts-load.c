/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bursts-load.c - from a profile's bursts and watched lines to what the models take. Each burst gets its
 * histograms of distances and what became of its watched lines: when a line was touched again, in references
 * from the burst's end, by the clock of the burst's thread (or, for caches of single threads, by that
 * thread's share of the time). What each burst counts for is decided in bursts-weigh.c; the part of the run
 * in full mode comes from bursts-part.c.
 */
#include "analysis/bursts-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/windows.h"

/* A larger number for one burst is corrupt. */
#define MOST_STRING_HITS 1e15

int loaded_hist(struct profile *p, uint64_t burst, enum profile_hist kind, struct packed_hist *into,
                struct error *err)
{
    int code = profile_get_packed_hist(p, burst, kind, into, err);
    return code == -ENOENT ? 0 : code;
}

static const enum curve_outcome outcomes[PROFILE_OUTCOMES] = {
    [PROFILE_OPEN] = CURVE_CENSORED, [PROFILE_REUSED] = CURVE_REUSED,    [PROFILE_DROPPED] = CURVE_CENSORED,
    [PROFILE_ENDED] = CURVE_ENDLESS, [PROFILE_UNMAPPED] = CURVE_ENDLESS, [PROFILE_REFUSED] = CURVE_CENSORED,
};

/* References from the burst's end to the outcome; NaN: not known. They are those of all threads of the
 * process, or with l->thread_time of the burst's own thread. */
static double refs_until(const struct loaded *l, const struct profile_burst *b, uint32_t thread,
                         const struct profile_watch *w)
{
    double end_ns = (double)b->cpu_end_ns, share = 1,
           translated = isnan(w->translated_refs) ? 0 : w->translated_refs,
           tail = w->tail_refs > 0 ? fmin(w->tail_refs, translated) : 0; /* the thread's own */
    if (w->outcome == PROFILE_REFUSED)
        return 0;
    if (!isnan(w->refs) || isnan(w->cpu_ns))
        return w->refs;
    int separate =
        l->thread_time && w->cpu_ns > 0 && !thread_time_is_alone(l->thread_time, b->process, b->tid);
    if (separate && w->own_cpu_ns >= 0)
        share = fmin(w->own_cpu_ns / w->cpu_ns, 1);
    else if (separate)
        share = thread_time_share(l->thread_time, b->process, b->tid, b->end_ns, w->cpu_ns);
    return clock_refs(l->clock, thread, end_ns, end_ns + share * w->cpu_ns) + tail +
           share * (translated - tail);
}

/* Takes the watches of a burst from the list of all (sorted by burst). Returns their number; *next is moved
 * past them. */
static size_t take_watches(const struct loaded *l, size_t *next, const struct profile_burst *b,
                           uint32_t thread, struct curve_watch *into)
{
    size_t used = 0;
    while (*next < l->nwatched && l->watched[*next].burst < b->id)
        ++*next;
    for (; *next < l->nwatched && l->watched[*next].burst == b->id; ++*next) {
        const struct profile_watch *w = &l->watched[*next];
        enum curve_outcome outcome = outcomes[w->outcome];
        double refs = refs_until(l, b, thread, w);
        if (l->thread_time && outcome == CURVE_REUSED && w->tid != 0 && w->tid != b->tid)
            outcome = CURVE_CENSORED;               /* when its own thread does is not known */
        if (isnan(refs) && outcome == CURVE_REUSED) /* reused, at an unknown time */
            outcome = CURVE_CENSORED;
        int in_tail = w->tail_refs > 0 && w->tail_lines >= 0 && isfinite(w->tail_lines);
        into[used++] = (struct curve_watch){
            .position = (double)w->position,
            .age = (double)w->age,
            .refs = isnan(refs) ? 0 : refs,
            .weight = isnan(w->weight) ? 0 : w->weight,
            .outcome = outcome,
            .tail_refs = in_tail ? w->tail_refs : 0,
            .tail_lines = in_tail ? w->tail_lines : 0,
        };
    }
    return used;
}

/* A number for the burst's thread, equal for all its bursts: the index of the first one. */
static uint32_t thread_number(const struct profile_burst *list, size_t i)
{
    size_t first = 0;
    while (list[first].tid != list[i].tid || list[first].process != list[i].process)
        first++;
    return (uint32_t)first;
}

void loaded_clear(struct loaded *l)
{
    free(l->list);
    free(l->watched);
    for (size_t i = 0; l->bursts && i <= l->nlist; i++)
        curve_burst_clear(&l->bursts[i]);
    free(l->bursts);
    free(l->watches);
    free(l->sites);
    free(l->sets);
    free(l->times);
    free(l->hits);
    clock_free(l->clock);
    thread_time_free(l->thread_time);
}

/* Creates the clock: each thread's rates at its bursts. */
static int make_clock(struct loaded *l, struct error *err)
{
    struct clock_knot *knots = calloc(l->nlist + 1, sizeof *knots);
    for (size_t i = 0; knots && i < l->nlist; i++)
        knots[i] = (struct clock_knot){thread_number(l->list, i), (double)l->list[i].cpu_start_ns,
                                       l->list[i].refs_per_ns};
    l->clock = knots ? clock_new(knots, l->nlist) : NULL;
    free(knots);
    return l->clock ? 0 : error_set(err, -ENOMEM, "out of memory computing the curve");
}

int loaded_make(struct loaded *l, struct profile *p, int sets, struct error *err)
{
    int code = profile_bursts(p, &l->list, &l->nlist, err);
    if (code == 0)
        code = profile_watches(p, &l->watched, &l->nwatched, err);
    if (code != 0)
        return code;
    l->bursts = calloc(l->nlist + 1, sizeof *l->bursts);
    l->times = calloc(l->nlist + 1, sizeof *l->times);
    l->hits = calloc(l->nlist + 1, sizeof *l->hits);
    l->watches = calloc(l->nwatched + 1, sizeof *l->watches);
    l->sites = calloc(l->nwatched + 1, sizeof *l->sites);
    l->sets = sets ? calloc(l->nlist + 1, sizeof *l->sets) : NULL;
    if (!l->bursts || !l->times || !l->hits || !l->watches || !l->sites || (sets && !l->sets))
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    l->counted_references = positive_number(p, "counted_references");
    l->counted_per_ns = positive_number(p, "counted_refs_per_ns");
    l->counted_strings = positive_number(p, "counted_string_references");
    code = loaded_rates(l, err);
    return code != 0 ? code : make_clock(l, err);
}

/* Loads distances within sets: 1, or 0 if the burst has none, or an error. */
static int load_sets(struct profile *p, uint64_t burst, struct hist *scratch, struct curve_sets *sets,
                     struct error *err)
{
    for (unsigned level = 0; level < CURVE_SETS_LEVELS; level++) {
        int code = profile_get_sets(p, burst, 2u << level, scratch, err);
        if (code != 0)
            return code == -ENOENT ? 0 : code;
        for (unsigned distance = 0; distance <= CURVE_SETS_WAYS; distance++)
            sets->count[level][distance] = scratch->count[distance];
    }
    return 1;
}

static void note_watches(const struct loaded *l, size_t from, size_t to, struct analysis_curve *curve)
{
    for (size_t i = from; i < to; i++) {
        const struct profile_watch *w = &l->watched[i];
        curve->unwatched += w->outcome == PROFILE_OPEN || w->outcome == PROFILE_REFUSED;
        curve->censored += w->outcome == PROFILE_DROPPED;
        if (!isnan(w->clock_error) && !(curve->clock_error >= w->clock_error))
            curve->clock_error = w->clock_error;
    }
}

static uint64_t string_hits(const struct profile_burst *b, uint64_t touches)
{
    if (isnan(b->string_hits)) /* not counted: the burst's own */
        return b->references > touches ? b->references - touches : 0;
    double hits = b->string_hits * (double)b->steps;
    return hits > 0 && hits < MOST_STRING_HITS ? (uint64_t)(hits + 0.5) : 0; /* else the file is corrupt */
}

/*
 * Elements of repeated string instructions that lie in the same line as the element before hit in any cache.
 * They are not contained in the burst's distances, nor in the counts for time and weights. Their number is
 * estimated from those counted before the burst, since the counting saw far more of the program than the
 * burst, and such instructions are rare and have many elements. Including them, the burst's weight is in
 * references, not in steps.
 */
static int add_string_hits(const struct profile_burst *from, struct curve_burst *b, struct curve_time *time,
                           uint64_t *hits, struct error *err)
{
    *hits = string_hits(from, b->references);
    if (packed_hist_add_zeros(&b->stack, *hits) < 0)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    b->references += *hits;
    time->references_each = (double)b->references / (double)from->steps;
    b->weight *= time->references_each;
    return 0;
}

/* One of the profile's bursts as the next of l->bursts. *next: of l->watched. */
static int load_burst(struct profile *p, struct loaded *l, size_t i, size_t *next,
                      struct analysis_curve *curve, struct hist *scratch, struct error *err)
{
    const struct profile_burst *from = &l->list[i];
    struct curve_burst *b = &l->bursts[curve->bursts];
    struct curve_time *time = &l->times[curve->bursts];
    struct packed_hist *const into[] = {[PROFILE_HIST_STACK] = &b->stack,
                                        [PROFILE_HIST_REUSE] = &b->reuse,
                                        [PROFILE_HIST_FIRST] = &b->first,
                                        [PROFILE_HIST_AGE] = &b->age};
    int code = 0;
    *time = (struct curve_time){
        .cpu_ns = (double)from->cpu_start_ns,
        .refs_per_ns = loaded_weight_rate(from),
        .planned_ns = isnan(from->gap_ns) ? 0 : from->gap_ns,
        .counted = l->counted_references > 0 && !isnan(from->start_refs),
    };
    b->references = from->references;
    b->weight = from->weight;
    curve->references += b->references;
    b->thread = thread_number(l->list, i);
    b->start_refs = from->start_refs;
    b->watches = l->watches + curve->watches;
    b->nwatches = take_watches(l, next, from, b->thread, l->watches + curve->watches);
    size_t first = *next - b->nwatches;
    for (size_t k = 0; k < b->nwatches; k++)
        l->sites[curve->watches + k] =
            (struct analysis_missed){.burst = from->id,
                                     .process = from->process,
                                     .tid = from->tid,
                                     .site = l->watched[first + k].site,
                                     .object = l->watched[first + k].object,
                                     .never = b->watches[k].outcome == CURVE_ENDLESS};
    curve->watches += b->nwatches;
    note_watches(l, first, *next, curve);
    for (size_t kind = 0; code == 0 && kind < sizeof into / sizeof into[0]; kind++)
        code = loaded_hist(p, from->id, (enum profile_hist)kind, into[kind], err);
    /* A reference that straddles two lines touches both: the curve is of touches, which are more. */
    uint64_t touches = b->stack.total + b->first.total;
    int in_steps = from->steps > 0 && touches > 0; /* 0: distances were not recorded */
    if (touches > b->references || in_steps)
        b->references = touches;
    if (code == 0 && in_steps)
        code = add_string_hits(from, b, time, &l->hits[curve->bursts], err);
    if (code == 0 && l->sets && (code = load_sets(p, from->id, scratch, &l->sets[i], err)) > 0) {
        b->sets = &l->sets[i];
        code = 0;
    }
    curve->bursts++;
    return code;
}

int loaded_bursts(struct profile *p, uint32_t tid, struct loaded *l, struct analysis_curve *curve,
                  struct error *err)
{
    size_t next = 0;
    int code = 0;
    struct hist *scratch = malloc(sizeof *scratch);
    if (!scratch)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    for (size_t i = 0; code == 0 && i < l->nlist; i++)
        if ((!tid || l->list[i].tid == tid) && l->list[i].references > 0)
            code = load_burst(p, l, i, &next, curve, scratch, err);
    free(scratch);
    return code;
}

/* Other bursts than the phase's get no weight, but keep their place between watched lines. Returns the number
 * of the phase's bursts, or a negative code. */
int loaded_phase(struct profile *p, uint32_t phase, struct loaded *l, struct analysis_curve *curve,
                 uint64_t *exact_references, struct error *err)
{
    struct analysis_windows windows;
    size_t next = 0, watch = 0;
    int bursts = 0, code = analysis_windows_load(p, curve->profile, &windows, err);
    if (code == 0)
        code = analysis_windows_phase(&windows, curve->profile, phase, exact_references, err);
    curve->references = 0;
    curve->watches = curve->unwatched = curve->censored = 0;
    for (size_t i = 0; i < l->nlist && code == 0; i++) {
        if (l->list[i].references == 0)
            continue;
        while (watch < l->nwatched && l->watched[watch].burst < l->list[i].id)
            watch++;
        size_t first = watch;
        watch += l->bursts[next].nwatches;
        size_t at = analysis_windows_find(&windows, &l->list[i]);
        if (at < windows.n && windows.list[at].phase == phase) {
            curve->references += l->list[i].references;
            curve->watches += watch - first;
            note_watches(l, first, watch, curve);
            bursts++;
        } else {
            l->bursts[next].weight = 0;
        }
        next++;
    }
    analysis_windows_clear(&windows);
    return code < 0 ? code : bursts;
}

static void add_process(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe)
{
    (void)id, (void)pid, (void)ppid, (void)exe;
    ++*(size_t *)ctx;
}

size_t loaded_processes(struct profile *p)
{
    size_t n = 0;
    return profile_processes(p, add_process, &n, NULL) == 0 ? n : 0;
}

/* Why there are no bursts. A run that was recorded to its end was too short; otherwise the reason is in the
 * profile's warning, which is printed too. */
int loaded_nothing(struct profile *p, const char *name, struct error *err)
{
    char complete[8] = "", few[300];
    double unprofiled;
    int noted = profile_get(p, "few_bursts", few, sizeof few, NULL) == 0;
    /* what took little time, if any, is not the reason if another is noted */
    if (!noted || profile_get_number(p, "unprofiled_cpu_seconds", &unprofiled, NULL) == 0) {
        int code = analysis_refuse_unprofiled(p, name, err);
        if (code != 0)
            return code;
    }
    if (noted)
        return error_set(err, -ENODATA, "the profile '%s' holds no bursts: %s", name, few);
    size_t processes = loaded_processes(p);
    if (profile_get(p, "complete", complete, sizeof complete, NULL) != 0 || strcmp(complete, "yes") != 0)
        return error_set(err, -ENODATA, "the profile '%s' holds no bursts: its recording ended early", name);
    if (processes > 1)
        return error_set(err, -ENODATA,
                         "the profile '%s' holds no bursts: its %zu processes were each too short to be "
                         "sampled; record with --mode full",
                         name, processes);
    return error_set(err, -ENODATA,
                     "the profile '%s' holds no bursts: the program was too short to be sampled; "
                     "record with --mode full",
                     name);
}
