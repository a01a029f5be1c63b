/* SPDX-License-Identifier: Apache-2.0 */
/* curve-bursts.c - the curve of a profile of bursts. */
#include "analysis/bursts-internal.h"
#include "analysis/curve-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With so many bursts, their differences show how different the parts of the run are. */
#define FEW_BURSTS 5u

/* The counted part and the rest have bursts of their own, more of them for each reference in the former. */
static double find_unseen(const struct loaded *l, size_t n)
{
    double weight[2] = {0}, all = l->parts != 0 ? l->bursts[n].weight : 0, unseen = 0;
    size_t bursts[2] = {0};
    for (size_t i = 0; i < n; i++) {
        weight[l->times[i].counted != 0] += l->bursts[i].weight;
        bursts[l->times[i].counted != 0]++;
    }
    all += weight[0] + weight[1];
    for (int i = 0; i < 2 && all > 0; i++)
        if (bursts[i] > 0)
            unseen = fmax(unseen, curve_unseen_share(bursts[i]) * weight[i] / all);
    return unseen;
}

/*
 * A few bursts that are alike say little about the rest of the run after full mode: code in which
 * none of them fell may be as much of it as n bursts miss with a probability of 5%, and may hit or miss
 * throughout.
 */
static void widen_for_rest(const struct loaded *l, double rest_ns, struct analysis_curve *curve)
{
    size_t n = curve->bursts;
    if (n >= FEW_BURSTS || (l->parts != 0 && n > 0 && !(rest_ns > 0 || l->counted_references > 0)))
        return;
    double unseen = n > 0 ? 1 - pow(0.05, 1 / (double)n) : 1;
    if (l->parts != 0) {
        const struct curve_burst *part = &l->bursts[n];
        double rest =
            n > 0 ? loaded_weight(l, n) * exp(part->scale_doubt)
                  : fmax(rest_ns, REST_LEAST_NS) * REST_REFS_PER_NS * exp(REST_DOUBT) + l->counted_references;
        unseen *= rest / (part->weight + rest);
    }
    for (size_t i = 0; i < curve->n; i++) {
        struct curve_point *point = &curve->points[i];
        if (isnan(point->low) || isnan(point->high))
            continue;
        point->low *= 1 - unseen;
        point->high = point->high * (1 - unseen) + unseen;
    }
}

/*
 * Means over the run: each burst represents `weight` references, at its own rate and with its own share of
 * instructions. Without a known rate there is no time. l->bursts are the selected ones of l->list, in its
 * order.
 */
static void find_speed(const struct loaded *l, uint32_t tid, struct analysis_curve *curve)
{
    double touches = 0, instructions = 0, timed = 0, ns = 0;
    size_t next = 0;
    for (size_t i = 0; i < l->nlist; i++) {
        const struct profile_burst *from = &l->list[i];
        if ((tid && from->tid != tid) || from->references == 0)
            continue;
        const struct curve_burst *b = &l->bursts[next++];
        double counted = (double)(from->steps > 0 ? from->steps : from->references);
        double of_each = b->weight / (double)(from->steps > 0 ? b->references : from->references),
               rate = from->refs_per_ns;
        touches += of_each * (double)b->references;
        instructions += of_each * (double)from->instructions;
        if (rate > 0) {
            ns += of_each * counted / rate;
            timed += of_each * (double)from->instructions;
        }
    }
    if (instructions > 0)
        curve->references_per_instruction = touches / instructions;
    if (timed > 0)
        curve->ns_per_instruction = ns / timed;
}

/* Reuse distances, and the results of random replacement, exclude hits within string instructions. This
 * includes them. */
static void add_string_hits_to_random(const struct loaded *l, struct analysis_curve *curve)
{
    double all = 0, hits = 0;
    for (size_t i = 0; i < curve->bursts; i++) {
        const struct curve_burst *b = &l->bursts[i];
        if (b->references == 0)
            continue;
        all += b->weight;
        hits += b->weight / (double)b->references * (double)l->hits[i];
    }
    for (size_t i = 0; i < l->parts; i++)
        all += l->bursts[curve->bursts + i].weight;
    for (size_t i = 0; i < curve->n && all > 0; i++) {
        curve->points[i].miss_ratio *= 1 - hits / all;
        curve->points[i].low *= 1 - hits / all;
        curve->points[i].high *= 1 - hits / all;
    }
}

static void add_unseen_strings(const struct loaded *l, uint32_t tid, struct analysis_curve *curve)
{
    struct unseen_strings strings = loaded_unseen_strings(l, tid, 0, curve);
    double seen = 1 - strings.share - strings.hits;
    curve->unseen_strings = strings.share;
    curve->unseen_string_bytes = strings.lines * curve->line_bytes;
    for (size_t i = 0; i < curve->n && seen < 1; i++) {
        struct curve_point *point = &curve->points[i];
        double missed = unseen_strings_miss(&strings, point->size_bytes / curve->line_bytes);
        point->miss_ratio = seen * point->miss_ratio + strings.share * missed;
        point->low *= seen;
        point->high = seen * point->high + strings.share;
    }
}

/* Finds the CPU time that the bursts represent, if there are several processes. (A single process is either
 * sampled many times or too short.) */
static void find_sampled(struct profile *p, const struct loaded *l, struct analysis_curve *curve)
{
    static const char *const added[] = {"burst_cpu_seconds", "watch_cpu_seconds", "start_cpu_seconds",
                                        "unprofiled_cpu_seconds"};
    double user, sampled, value, squares = 0;
    curve->processes = loaded_processes(p);
    if (curve->processes < 2 || profile_get_number(p, "user_cpu_seconds", &user, NULL) != 0 ||
        profile_get_number(p, "sampled_cpu_seconds", &sampled, NULL) != 0)
        return;
    for (size_t i = 0; i < sizeof added / sizeof added[0]; i++)
        if (profile_get_number(p, added[i], &value, NULL) == 0)
            user -= value;
    /* Of a run with a counted part, bursts that were placed by CPU time represent the rest only. */
    if (l->counted_references > 0 && (user = positive_number(p, "rest_cpu_seconds")) == 0)
        return;
    curve->user_seconds = user;
    curve->sampled_seconds = sampled;
    for (size_t i = 0; i < l->nlist; i++)
        if (!isnan(l->list[i].gap_ns))
            squares += l->list[i].gap_ns * l->list[i].gap_ns * 1e-18;
    /* As if all of the time had been sampled like this part. */
    curve->sampled_error = sampled > 0 ? sqrt(squares * user / sampled) : 0;
}

/* For bursts with weights and positions. */
static int model(const struct analysis_question *question, const struct loaded *l, uint64_t seed,
                 struct analysis_curve *curve, struct error *err)
{
    size_t n = curve->bursts + l->parts;
    find_speed(l, question->tid, curve);
    if (question->model == ANALYSIS_MODEL_RANDOM) {
        int code =
            curve_watched_statcache(l->bursts, n, curve->line_bytes, seed, curve->points, curve->n, err);
        if (code == 0)
            add_string_hits_to_random(l, curve);
        return code;
    }
    if (question->ways)
        return curve_ways(l->bursts, n, curve->line_bytes, question->ways, seed, curve->points, curve->n,
                          err);
    return curve_watched(l->bursts, n, curve->line_bytes, seed, curve->points, curve->n, err);
}

/* A phase with fewer bursts has no interval: its sampled part may hit or miss throughout. */
#define PHASE_BURSTS_LEAST 3

/* The curve of a phase: its bursts, and its windows in the part of the run that was recorded in full mode. */
static int model_phase(struct profile *p, const struct analysis_question *question, struct loaded *l,
                       uint64_t seed, struct analysis_curve *curve, struct error *err)
{
    struct analysis_curve exact = *curve;
    double sampled = 0;
    uint64_t ignored;
    int bursts = loaded_phase(p, question->phase, l, curve, &ignored, err);
    if (bursts < 0)
        return bursts;
    if (!(exact.points = calloc(curve->n + 1, sizeof *exact.points)))
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    memcpy(exact.points, curve->points, curve->n * sizeof *exact.points);
    int code = analysis_curve_phase_exact(p, question->phase, &exact, err);
    if (code == -ENODATA && bursts > 0)
        code = 0;
    if (code == 0 && bursts > 0)
        code = curve_watched(l->bursts, curve->bursts, curve->line_bytes, seed, curve->points, curve->n, err);
    for (size_t b = 0; b < curve->bursts; b++)
        sampled += l->bursts[b].weight;
    double part = bursts > 0 ? sampled / (sampled + (double)exact.references) : 0;
    for (size_t i = 0; i < curve->n && code == 0; i++) {
        struct curve_point *point = &curve->points[i];
        double before = part < 1 ? (1 - part) * exact.points[i].miss_ratio : 0;
        int known = bursts >= PHASE_BURSTS_LEAST;
        double ratio = part > 0 ? point->miss_ratio : 0, low = known ? point->low : 0,
               high = known ? point->high : 1;
        point->miss_ratio = before + part * ratio;
        point->low = before + part * low;
        point->high = before + part * high;
    }
    free(exact.points);
    curve->full_references = exact.references;
    curve->references += exact.references;
    curve->bursts = (size_t)bursts;
    return code;
}

int analysis_curve_bursts(struct profile *p, const struct analysis_question *question,
                          struct analysis_curve *curve, struct error *err)
{
    struct loaded l = {0};
    double number = DEFAULT_SEED;
    if (question->model == ANALYSIS_MODEL_STATSTACK)
        return error_set(err, -EINVAL, "the statstack model needs every reference: record with --mode full");
    int code = loaded_make(&l, p, question->ways != 0, err);
    if (code == 0 && question->separate && !(l.thread_time = thread_time_load(p, err)))
        code = -ENOMEM;
    if (code == 0)
        code = loaded_bursts(p, question->tid, &l, curve, err);
    if (code == 0 && (!question->tid || question->separate))
        code = loaded_full_part(p, question->tid, &l, curve, err);
    double first;
    if (code == 0 && (question->tid ? l.parts == 0 : question->ways != 0) &&
        profile_get_number(p, "full_references", &first, NULL) == 0 && first >= 1 && first < 0x1p63) {
        if (l.nlist == 0)
            code = question->tid ? analysis_refuse_thread(curve->profile, " before the first burst", err)
                                 : analysis_refuse_ways(curve->profile, question->ways, err);
        else if (question->tid)
            curve->skipped_references = (uint64_t)first;
    }
    if (code == 0 && curve->bursts == 0 && question->tid && l.nlist && l.parts == 0)
        code = error_set(err, -ENODATA, "the profile '%s' holds no bursts of thread %u", curve->profile,
                         question->tid);
    if (code == 0 && curve->bursts == 0 && l.parts == 0)
        code = loaded_nothing(p, curve->profile, err);
    if (code == 0) {
        if (profile_get_number(p, "seed", &number, NULL) != 0 || !(number >= 0 && number < 0x1p63))
            number = DEFAULT_SEED;
        uint64_t seed = (uint64_t)number;
        double rest_ns;
        code = loaded_weigh(p, &l, question->tid, curve, &rest_ns, err);
        curve->unseen = code == 0 ? find_unseen(&l, curve->bursts) : 0;
        if (code == 0)
            code = question->phase ? model_phase(p, question, &l, seed, curve, err)
                                   : model(question, &l, seed, curve, err);
        if (code == 0 && !question->phase)
            add_unseen_strings(&l, question->tid, curve);
        if (code == 0 && !question->phase)
            widen_for_rest(&l, rest_ns, curve);
    }
    if (code == 0 && !question->tid)
        find_sampled(p, &l, curve);
    loaded_clear(&l);
    return code;
}
