/* SPDX-License-Identifier: Apache-2.0 */
/* bursts-load.c - from a profile's bursts and watched lines to what the models take. */
#include "analysis/bursts-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/thread-hist.h"
#include "analysis/windows.h"
#include "model/rates.h"

/* A larger number for one burst is corrupt. */
#define MOST_STRING_HITS 1e15
/* New blocks of a burst from which on its code is cold. Other programs have as many in few bursts. */
#define COLD_BLOCKS 256

/* Gets a stored histogram, or leaves it as it is if there is none. */
static int get_hist(struct profile *p, uint64_t burst, enum profile_hist kind, struct packed_hist *into,
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

/* Whether the rates before the burst were measured, if at all, in code of which much was not translated yet.
 */
static int is_cold(const struct profile_burst *b)
{
    return isnan(b->start_refs) && b->new_blocks >= COLD_BLOCKS;
}

/*
 * A program that executes other code all the time, as compilers do, is counted in code that was translated a
 * moment ago and is in none of the processor's caches: at 0.07 to 0.7 references per ns before eight bursts
 * of cc1plus, whose mean is 1.9, and often the stretch ends before anything was timed. Where most bursts are
 * such, they take the mean rate of the counted part. (cc1plus, 8.9e9 references, six recordings: 1.6e9
 * to 13.6e9 estimated, and now 7.1e9 to 8.8e9. Mean error of the curve over 1-16 KB 0.74 points, and now
 * 0.62; over 32 KB to 8 MB 0.20 and 0.18.)
 */
static void replace_cold_rates(struct loaded *l)
{
    size_t timed = 0, cold = 0;
    for (size_t i = 0; i < l->nlist; i++) {
        timed += isnan(l->list[i].start_refs) != 0;
        cold += (size_t)is_cold(&l->list[i]);
    }
    for (size_t i = 0; i < l->nlist && 2 * cold > timed && l->counted_per_ns > 0; i++)
        if (is_cold(&l->list[i])) {
            l->list[i].near_per_ns = NAN;
            l->list[i].refs_per_ns = l->counted_per_ns;
        }
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

/* Distinct lines that the burst touched, for each of its references; 0: not known, or not placed by time. */
static double lines_each(const struct profile_burst *b)
{
    return isnan(b->start_refs) && b->references > 0 ? (double)b->lines / (double)b->references : 0;
}

/* Bounds the rates that weight bursts, so that no single burst gets half of the total weight by chance, and
 * fills in missing ones. */
static int bound_weights(struct loaded *l, struct error *err)
{
    struct rates_pair *pairs = calloc(l->nlist + 1, sizeof *pairs);
    if (!pairs)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    for (size_t i = 0; i < l->nlist; i++)
        pairs[i] =
            (struct rates_pair){l->list[i].near_per_ns, l->list[i].refs_per_ns, lines_each(&l->list[i])};
    int code = rates_bound(pairs, l->nlist);
    if (code < 0)
        error_set(err, code, "out of memory computing the curve");
    rates_fill(pairs, l->nlist);
    for (size_t i = 0; i < l->nlist; i++) {
        l->list[i].near_per_ns = pairs[i].near_per_ns;
        l->list[i].refs_per_ns = pairs[i].refs_per_ns;
    }
    free(pairs);
    return code;
}

/* Of references in native execution by which a burst is weighted. */
static double weight_rate(const struct profile_burst *b)
{
    return isnan(b->near_per_ns) ? b->refs_per_ns : b->near_per_ns;
}

/*
 * Hits within string instructions are stored by step of the counting stretch. Where such an instruction took
 * most of the stretch, there were few steps, with many hits each. If the burst is weighted by a higher rate,
 * so many hits for each of more steps would take more time than there is. So their number by time is kept.
 * (One burst of brotli had more hits than the whole run.)
 */
static void scale_string_hits(struct profile_burst *b)
{
    if (isnan(b->start_refs) && b->refs_per_ns > 0 && weight_rate(b) > 0)
        b->string_hits *= b->refs_per_ns / weight_rate(b);
}

double positive_number(struct profile *p, const char *key)
{
    double value;
    return profile_get_number(p, key, &value, NULL) == 0 && value > 0 && isfinite(value) ? value : 0;
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
    replace_cold_rates(l);
    code = bound_weights(l, err);
    for (size_t i = 0; code == 0 && i < l->nlist; i++)
        scale_string_hits(&l->list[i]);
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

int loaded_bursts(struct profile *p, uint32_t tid, struct loaded *l, struct analysis_curve *curve,
                  struct error *err)
{
    const struct profile_burst *list = l->list;
    size_t next = 0;
    int code = 0;
    struct hist *scratch = malloc(sizeof *scratch);
    if (!scratch)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    for (size_t i = 0; code == 0 && i < l->nlist; i++) {
        if ((tid && list[i].tid != tid) || list[i].references == 0)
            continue;
        struct curve_burst *b = &l->bursts[curve->bursts];
        l->times[curve->bursts] = (struct curve_time){
            .cpu_ns = (double)list[i].cpu_start_ns,
            .refs_per_ns = weight_rate(&list[i]),
            .planned_ns = isnan(list[i].gap_ns) ? 0 : list[i].gap_ns,
            .counted = l->counted_references > 0 && !isnan(list[i].start_refs),
        };
        struct packed_hist *const into[] = {[PROFILE_HIST_STACK] = &b->stack,
                                            [PROFILE_HIST_REUSE] = &b->reuse,
                                            [PROFILE_HIST_FIRST] = &b->first,
                                            [PROFILE_HIST_AGE] = &b->age};
        b->references = list[i].references;
        b->weight = list[i].weight;
        curve->references += b->references;
        b->thread = thread_number(list, i);
        b->start_refs = list[i].start_refs;
        b->watches = l->watches + curve->watches;
        b->nwatches = take_watches(l, &next, &list[i], b->thread, l->watches + curve->watches);
        for (size_t k = 0; k < b->nwatches; k++)
            l->sites[curve->watches + k] =
                (struct analysis_missed){.burst = list[i].id,
                                         .process = list[i].process,
                                         .tid = list[i].tid,
                                         .site = l->watched[next - b->nwatches + k].site,
                                         .object = l->watched[next - b->nwatches + k].object,
                                         .never = b->watches[k].outcome == CURVE_ENDLESS};
        curve->watches += b->nwatches;
        note_watches(l, next - b->nwatches, next, curve);
        for (size_t kind = 0; code == 0 && kind < sizeof into / sizeof into[0]; kind++)
            code = get_hist(p, list[i].id, (enum profile_hist)kind, into[kind], err);
        /* A reference that straddles two lines touches both: the curve is of touches, which are more. */
        uint64_t touches = b->stack.total + b->first.total;
        int in_steps = list[i].steps > 0 && touches > 0; /* 0: distances were not recorded */
        if (touches > b->references || in_steps)
            b->references = touches;
        if (code == 0 && in_steps)
            code = add_string_hits(&list[i], b, &l->times[curve->bursts], &l->hits[curve->bursts], err);
        if (code == 0 && l->sets && (code = load_sets(p, list[i].id, scratch, &l->sets[i], err)) > 0) {
            b->sets = &l->sets[i];
            code = 0;
        }
        curve->bursts++;
    }
    free(scratch);
    return code;
}

/* The run's full part: its histograms, first touches, and lines of processes or threads that went on. */
struct full_part {
    struct thread_hist stack;
    struct hist reuse;
};

/* 1, or 0 if it has nothing of the thread, or negative with err. */
static int get_part(struct profile *p, const struct analysis_curve *curve, uint32_t tid,
                    struct full_part *part, struct error *err)
{
    int code = profile_get_hist(p, 0, PROFILE_HIST_STACK, &part->stack.stack, err);
    if (code == 0 || code == -ENOENT)
        code = profile_get_hist(p, 0, PROFILE_HIST_REUSE, &part->reuse, err);
    if (code == -ENOENT)
        code = 0;
    if (code == 0 && curve->separate)
        code = thread_hist_separate(p, curve->profile, tid, &part->stack, err);
    return code == 0 ? 1 : code == -ENODATA && tid != 0 ? 0 : code;
}

/* Packs a histogram, with so many reuses more that miss in every cache. */
static int pack(struct hist *h, uint64_t misses, struct packed_hist *into, struct error *err)
{
    h->count[HIST_BINS - 1] += misses;
    h->total += misses;
    return packed_hist_set(into, h) == 0 ? 0 : error_set(err, -ENOMEM, "out of memory computing the curve");
}

/* The first touches of `left` lines, one after the other. */
static int make_first(uint64_t left, struct packed_hist *first, struct error *err)
{
    struct hist *h = calloc(1, sizeof *h);
    int code = h ? 0 : -ENOMEM;
    if (code == 0) {
        hist_add_up_to(h, left);
        code = packed_hist_set(first, h);
    }
    free(h);
    return code == 0 ? 0 : error_set(err, code, "out of memory computing the curve");
}

static int get_count(struct profile *p, const char *key, uint64_t *n)
{
    double value;
    *n = 0;
    if (profile_get_number(p, key, &value, NULL) != 0 || !(value >= 0 && value < 0x1p63))
        return 0;
    *n = (uint64_t)value;
    return 1;
}

/*
 * The run's first part, if it was recorded in full mode: a burst of weight one, after those that are samples.
 * Every burst's references are origins of reuses, so this one's first touches are not counted as misses, but
 * what becomes of its survivors, each of which was touched first in it. Lines of processes
 * that ended in it are never touched again. If no lines were watched, none of the others are taken to be
 * either: then it is the misses of this part itself that are counted.
 */
int loaded_full_part(struct profile *p, uint32_t tid, struct loaded *l, struct analysis_curve *curve,
                     struct error *err)
{
    uint64_t references, cold, left;
    struct curve_burst *b = &l->bursts[curve->bursts];
    if (!get_count(p, "full_references", &references) || references == 0 ||
        !get_count(p, "full_cold", &cold) || !get_count(p, "full_left", &left))
        return 0;
    struct full_part *part = calloc(1, sizeof *part);
    if (!part)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    part->stack.cold = cold;
    part->stack.left = left;
    int code = get_part(p, curve, tid, part, err);
    if (code <= 0) {
        free(part);
        return code;
    }
    cold = part->stack.cold;
    left = part->stack.left;
    if (left > cold || curve->watches == 0)
        left = 0;
    if (tid)
        references = part->stack.stack.total + cold;
    code = pack(&part->stack.stack, cold - left, &b->stack, err);
    if (code == 0)
        code = pack(&part->reuse, cold - left, &b->reuse, err);
    free(part);
    if (code == 0 && left > 0)
        code = get_hist(p, 0, PROFILE_HIST_AGE, &b->age, err);
    if (code == 0)
        code = make_first(left, &b->first, err);
    if (code != 0)
        return code;
    b->references = b->stack.total + left;
    b->weight = (double)b->references;
    b->certain = 1;
    b->thread = UINT32_MAX;
    b->start_refs = NAN;
    l->parts = 1;
    l->left_share = cold > 0 ? (double)left / (double)cold : 0;
    curve->references += references;
    curve->full_references = references;
    return 0;
}

double loaded_weight(const struct loaded *l, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += l->bursts[i].weight;
    return sum;
}

/* Scales the weights of the bursts that are counted, or not, to that sum; all: of both kinds. */
static void scale_weights(struct loaded *l, size_t n, int counted, int all, double references)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += all || l->times[i].counted == counted ? l->bursts[i].weight : 0;
    for (size_t i = 0; i < n && sum > 0; i++)
        if (all || l->times[i].counted == counted)
            l->bursts[i].weight *= references / sum;
}

/* Weight of the bursts that were placed by CPU time. */
static double timed_weight(const struct loaded *l, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += l->times[i].counted ? 0 : l->bursts[i].weight;
    return sum;
}

/*
 * Scales the weights of bursts relative to each other and to the part in full mode: those in the counted part
 * to the number of its references, the others to their CPU time, rest_ns, times a rate. That is the mean of
 * the measured rate and of a typical one, or that of the counted part. A part without bursts is represented
 * by the other's.
 */
static void scale_parts(struct loaded *l, size_t n, double rest_ns, int has_rates)
{
    int knows = l->counted_per_ns > 0;
    double typical = knows ? l->counted_per_ns : REST_REFS_PER_NS,
           doubt = knows ? REST_MEASURED_DOUBT : REST_DOUBT;
    double timed = timed_weight(l, n), counted = loaded_weight(l, n) - timed,
           share = rest_ns / (rest_ns + REST_COLD_NS),
           per_ns = timed > 0 && rest_ns > 0 ? timed / rest_ns : 0;
    if (!(per_ns > 0) || !has_rates)
        per_ns = typical, share = 0;
    double rest = rest_ns * exp(share * log(per_ns) + (1 - share) * log(typical));
    doubt = share * REST_MEASURED_DOUBT + (1 - share) * doubt;
    if (isnan(rest_ns)) { /* the weights are references already, by the time from one burst to the next */
        rest = timed;
        doubt = REST_MEASURED_DOUBT;
    }
    if (timed > 0 && counted > 0) {
        scale_weights(l, n, 1, 0, l->counted_references);
        scale_weights(l, n, 0, 0, rest);
        for (size_t i = 0; i < n; i++)
            l->bursts[i].scale_doubt = l->times[i].counted ? doubt : 0;
    } else {
        scale_weights(l, n, 0, 1, l->counted_references + rest);
        doubt *= rest > 0 ? rest / (l->counted_references + rest) : 0;
    }
    l->bursts[n].scale_doubt = doubt;
}

/* Weights of bursts that were placed by CPU time, but whose rates are not known, are relative: scales them to
 * that time at a typical rate. */
static void scale_without_rates(struct profile *p, struct loaded *l, size_t n)
{
    double seconds = positive_number(p, "sampled_cpu_seconds");
    for (size_t i = 0; i < n; i++)
        if (!isnan(l->bursts[i].start_refs))
            return;
    if (seconds > 0)
        scale_weights(l, n, 0, 1, seconds * 1e9 * REST_REFS_PER_NS);
}

/* rest_ns: the CPU time that the bursts represent that were placed by it; NaN: not known. */
static void scale_rest(struct profile *p, struct loaded *l, double rest_ns,
                       const struct analysis_curve *curve)
{
    char clock[16];
    double counted;
    if (l->parts == 0 || profile_get(p, "clock", clock, sizeof clock, NULL) != 0 || strcmp(clock, "pmu") == 0)
        return;
    if (strcmp(clock, "count-always") == 0) { /* the weights are references, but some strata had no burst */
        if (profile_get_number(p, "clock_references", &counted, NULL) == 0 &&
            counted > (double)curve->full_references)
            scale_weights(l, curve->bursts, 0, 1, counted - (double)curve->full_references);
        return;
    }
    if (rest_ns > 0 || l->counted_references > 0)
        scale_parts(l, curve->bursts, rest_ns, strcmp(clock, "count") == 0);
}

int loaded_weigh(struct profile *p, struct loaded *l, uint32_t tid, const struct analysis_curve *curve,
                 double *rest_ns, struct error *err)
{
    if (tid || profile_get_number(p, "rest_cpu_seconds", rest_ns, NULL) != 0)
        *rest_ns = NAN; /* not known for a thread alone, nor if the recorder was killed */
    *rest_ns *= 1e9;
    int weighted = curve_weight_by_time(l->bursts, l->times, curve->bursts, *rest_ns);
    if (weighted < 0)
        return error_set(err, -ENOMEM, "out of memory computing the weights of bursts");
    if (weighted == 0 && l->parts == 0)
        scale_without_rates(p, l, curve->bursts);
    if (!tid)
        scale_rest(p, l, *rest_ns, curve);
    return 0;
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
    int whole =
        profile_get(p, "complete", complete, sizeof complete, NULL) == 0 && strcmp(complete, "yes") == 0;
    if (whole && processes > 1)
        return error_set(err, -ENODATA,
                         "the profile '%s' holds no bursts: its %zu processes were each too short to be "
                         "sampled; record with --mode full",
                         name, processes);
    if (whole)
        return error_set(err, -ENODATA,
                         "the profile '%s' holds no bursts: the program was too short to be sampled; "
                         "record with --mode full",
                         name);
    return error_set(err, -ENODATA, "the profile '%s' holds no bursts: its recording ended early", name);
}
