/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c - from a profile to its curve: which model gets which histograms. */
#include "analysis/curve-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/busy-threads.h"
#include "analysis/thread-hist.h"

/* The standard grid: half powers of two from 1 KB to 64 MB. */
#define GRID_FIRST_BYTES 1024.
#define GRID_POINTS 33

/* First touches of the whole run. While the run is in progress, only their histogram has the number. */
static int get_cold(struct profile *p, struct hist *scratch, uint64_t *cold, struct error *err)
{
    double value;
    int code = profile_get_number(p, "cold", &value, err);
    if (code == 0 && !(value >= 0 && value < 0x1p63))
        return profile_damaged(p, err, "it counts %g first touches", value);
    if (code == 0) {
        *cold = (uint64_t)value;
    } else if (code == -ENOENT && (code = profile_get_hist(p, 0, PROFILE_HIST_FIRST, scratch, err)) == 0) {
        *cold = scratch->total;
    }
    return code;
}

/* Distances count touches of lines; a reference that straddles two lines is still one reference. */
static void use_references(struct profile *p, struct analysis_curve *curve)
{
    double references;
    if (profile_get_number(p, "references", &references, NULL) == 0 && references > 0 && references < 0x1p63)
        curve->references = (uint64_t)references;
}

/* Of each thread by itself: all of them, or one. */
static int compute_threads(struct profile *p, uint32_t tid, struct analysis_curve *curve, struct error *err)
{
    struct thread_hist *h = calloc(1, sizeof *h);
    if (!h)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    int code = get_cold(p, &h->stack, &h->cold, err);
    if (code == 0)
        code = profile_get_hist(p, 0, PROFILE_HIST_STACK, &h->stack, err);
    if (code == 0)
        code = thread_hist_separate(p, curve->profile, tid, h, err);
    if (code == 0 && (curve->references = h->stack.total + h->cold) == 0)
        code = error_set(err, -ENODATA, "the profile '%s' holds no references", curve->profile);
    if (code == 0)
        code = curve_exact(&h->stack, h->cold, curve->line_bytes, curve->points, curve->n, err);
    if (code == 0 && tid == 0)
        use_references(p, curve);
    free(h);
    return code;
}

static int compute_full(struct profile *p, enum analysis_model model, struct analysis_curve *curve,
                        struct error *err)
{
    static const enum profile_hist kinds[] = {[ANALYSIS_MODEL_LRU] = PROFILE_HIST_STACK,
                                              [ANALYSIS_MODEL_RANDOM] = PROFILE_HIST_REUSE,
                                              [ANALYSIS_MODEL_STATSTACK] = PROFILE_HIST_EXPECTED};
    uint64_t cold = 0;
    struct hist *h = malloc(sizeof *h);
    if (!h)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    int code = get_cold(p, h, &cold, err), whole = 0;
    if (code == 0)
        code = profile_get_hist(p, 0, kinds[model], h, err);
    if (code == -ENOENT && model == ANALYSIS_MODEL_STATSTACK) {
        code = profile_get_hist(p, 0, PROFILE_HIST_REUSE, h, err); /* not computed while recording */
        whole = 1;
    }
    if (code == -ENOENT && (code = analysis_refuse_unprofiled(p, curve->profile, err)) == 0)
        code = error_set(
            err, -ENOENT,
            "the profile '%s' holds no distances: the program ended, or the recording was killed, too "
            "early; record again",
            curve->profile);
    if (code == 0) {
        curve->references = h->total + cold;
        if (curve->references == 0)
            code = error_set(err, -ENODATA, "the profile '%s' holds no references", curve->profile);
        /* In a complete run every line has one last reference: as many dangle as were cold. */
        else if (model == ANALYSIS_MODEL_RANDOM)
            code = curve_statcache(h, cold, curve->line_bytes, curve->points, curve->n, err);
        else if (whole)
            code = curve_statstack(h, cold, curve->line_bytes, curve->points, curve->n, err);
        else /* StatStack was applied window by window while recording, so that these are stack distances, too
              */
            code = curve_exact(h, cold, curve->line_bytes, curve->points, curve->n, err);
        if (code == 0)
            use_references(p, curve);
    }
    free(h);
    return code;
}

/* Full mode on a sample of lines. */
static int compute_lines(struct profile *p, enum analysis_model model, struct analysis_curve *curve,
                         struct error *err)
{
    double touches = 0;
    if (model != ANALYSIS_MODEL_LRU)
        return error_set(
            err, -EINVAL,
            "the profile '%s' has a sample of lines, which only the lru model can use: record without "
            "--lines",
            curve->profile);
    struct hist *h = calloc(1 + CURVE_SAMPLE_GROUPS, sizeof *h);
    if (!h)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    struct curve_sample sample = {.rate = curve->lines_rate, .stack = h};
    int code = profile_get_number(p, "touches", &touches, err);
    if (code == 0)
        code = profile_get_hist(p, 0, PROFILE_HIST_STACK, h, err);
    for (unsigned g = 0; g < CURVE_SAMPLE_GROUPS && code == 0; g++) {
        struct hist *group = &h[1 + g];
        code = profile_get_group(p, g, group, err);
        sample.group_stack[g] = group;
        sample.group_cold[g] = group->count[HIST_BINS - 1];
        sample.cold += sample.group_cold[g];
        group->total -= sample.group_cold[g];
        group->count[HIST_BINS - 1] = 0;
    }
    if (code == -ENOENT && (code = analysis_refuse_unprofiled(p, curve->profile, err)) == 0)
        code =
            error_set(err, -ENOENT,
                      "the profile '%s' holds no distances: the recording was killed too early; record again",
                      curve->profile);
    if (code == 0 && !(touches >= 1 && touches < 0x1p63))
        code = error_set(err, -ENODATA, "the profile '%s' holds no references", curve->profile);
    if (code == 0) {
        sample.touches = (uint64_t)touches;
        code = curve_sampled(&sample, curve->line_bytes, curve->points, curve->n, err);
        curve->references = sample.touches;
        if (code == 0)
            use_references(p, curve);
    }
    free(h);
    return code;
}

/* Share of the lines whose distances were measured (record --lines); 1: all. 0, or negative with err. */
static int lines_rate_of(struct profile *p, double *rate, struct error *err)
{
    char mode[16] = "";
    *rate = 1;
    int code = profile_get(p, "mode", mode, sizeof mode, err);
    if (code != 0 && code != -ENOENT)
        return code;
    if (strcmp(mode, "lines") != 0)
        return 0;
    code = profile_get_number(p, "lines_rate", rate, err);
    if (code == 0 && !(*rate > 0 && *rate < 1))
        code = profile_damaged(p, err, "its share of sampled lines is %g", *rate);
    return code;
}

int analysis_refuse_lines(struct profile *p, const char *name, struct error *err)
{
    double rate;
    int code = lines_rate_of(p, &rate, err);
    if (code == 0 && rate < 1)
        code = error_set(
            err, -EINVAL,
            "the profile '%s' has a sample of lines, which only mrc and report can use: record without "
            "--lines",
            name);
    return code;
}

static int compare_sizes(const void *a, const void *b)
{
    const struct curve_point *x = a, *y = b;
    return (x->size_bytes > y->size_bytes) - (x->size_bytes < y->size_bytes);
}

struct curve_point *analysis_curve_find(struct curve_point *points, size_t n, double size_bytes)
{
    const struct curve_point key = {.size_bytes = size_bytes};
    return bsearch(&key, points, n, sizeof *points, compare_sizes);
}

struct curve_point *analysis_curve_with_grid(const struct curve_point *points, size_t n, size_t *all_n)
{
    struct curve_point *all = calloc(n + GRID_POINTS, sizeof *all);
    if (!all)
        return NULL;
    for (size_t i = 0; i < n; i++)
        all[i].size_bytes = points[i].size_bytes;
    qsort(all, n, sizeof *all, compare_sizes);
    /* Each size once: one that is there twice would count twice where the curve is made monotone. */
    size_t once = 0;
    for (size_t i = 0; i < n; i++)
        if (once == 0 || all[i].size_bytes > all[once - 1].size_bytes)
            all[once++] = all[i];
    n = *all_n = once;
    for (int half = 0; half < GRID_POINTS; half++) {
        /* in whole bytes, as sizes of a range are (base/sizes) */
        double size = floor(GRID_FIRST_BYTES * exp2(half / 2.));
        if (!analysis_curve_find(all, n, size))
            all[(*all_n)++].size_bytes = size;
    }
    qsort(all, *all_n, sizeof *all, compare_sizes);
    return all;
}

/* Estimates the curve at the sizes of a standard grid, too, so that a size has the same answer whichever
 * others are requested with it, and makes it monotone. */
static int compute_bursts(struct profile *p, const struct analysis_question *question,
                          struct analysis_curve *curve, struct error *err)
{
    if (question->ways) /* of set-associative caches, the curve may rise */
        return analysis_curve_bursts(p, question, curve, err);
    size_t nrequested = curve->n, n = 0;
    struct curve_point *requested = curve->points;
    struct curve_point *all = analysis_curve_with_grid(requested, nrequested, &n);
    if (!all)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    curve->points = all;
    curve->n = n;
    int code = analysis_curve_bursts(p, question, curve, err);
    curve->points = requested;
    curve->n = nrequested;
    if (code == 0 && curve_make_monotone(all, n) < 0)
        code = error_set(err, -ENOMEM, "out of memory computing the curve");
    for (size_t i = 0; code == 0 && i < nrequested; i++)
        requested[i] = *analysis_curve_find(all, n, requested[i].size_bytes);
    free(all);
    return code;
}

int analysis_curve_compute(struct profile *p, const struct analysis_question *question,
                           struct analysis_curve *curve, struct error *err)
{
    static const char *const names[] = {"lru", "random", "statstack"};
    char mode[16] = "";
    int code = profile_get(p, "mode", mode, sizeof mode, err);
    if (code != 0 && code != -ENOENT)
        return code;
    if ((code = profile_line_bytes(p, &curve->line_bytes, err)) != 0)
        return code;
    if ((code = lines_rate_of(p, &curve->lines_rate, err)) != 0)
        return code;
    curve->full = strcmp(mode, "full") == 0;
    curve->extent = analysis_extent(p);
    curve->missed_percent = analysis_missed_percent(p);
    curve->estimated = curve->full && question->model != ANALYSIS_MODEL_LRU;
    curve->model = names[question->model];
    curve->ways = question->ways;
    curve->phase = question->phase;
    curve->references = 0;
    curve->full_references = curve->skipped_references = 0;
    curve->bursts = 0;
    curve->windows = curve->samples = 0;
    curve->watches = curve->unwatched = curve->censored = 0;
    curve->user_seconds = curve->sampled_seconds = curve->sampled_error = NAN;
    curve->clock_error = curve->ns_per_instruction = curve->references_per_instruction = NAN;
    struct analysis_busy busy = {.threads = 0};
    if (!question->tid && strcmp(mode, "sparse") != 0)
        busy = analysis_busy_threads(p);
    curve->busy_threads = busy.threads;
    curve->busy_processes = busy.processes;
    curve->separate = question->separate;
    if (question->separate)
        curve->busy_threads = 0;
    if (question->separate && question->model != ANALYSIS_MODEL_LRU)
        return error_set(err, -EINVAL, "caches of single threads can be computed for the lru model only");
    if (question->separate && (curve->lines_rate < 1 || strcmp(mode, "sparse") == 0))
        return error_set(err, -EINVAL,
                         "the profile '%s' does not distinguish threads: record without --lines",
                         curve->profile);
    if (curve->full && question->separate && !question->ways && !question->phase)
        return compute_threads(p, question->tid, curve, err);
    if ((curve->full || curve->lines_rate < 1) && question->tid)
        return analysis_refuse_thread(curve->profile, "", err);
    if (question->ways && question->model != ANALYSIS_MODEL_LRU)
        return error_set(err, -EINVAL, "set-associative caches can be computed for the lru model only");
    if (question->ways && (curve->full || curve->lines_rate < 1 || strcmp(mode, "sparse") == 0))
        return analysis_refuse_ways(curve->profile, question->ways, err);
    if (question->phase && (question->model != ANALYSIS_MODEL_LRU || question->tid || question->ways))
        return error_set(err, -EINVAL,
                         "the curve of a phase can be computed for the lru model only, for all threads "
                         "together, without sets");
    if (question->phase && curve->full)
        return analysis_curve_phase_exact(p, question->phase, curve, err);
    if (question->phase && (strcmp(mode, "sparse") == 0 || curve->lines_rate < 1))
        return error_set(err, -ENODATA, "the profile '%s' has no phases: record without --lines",
                         curve->profile);
    if (strcmp(mode, "sparse") == 0) {
        if (question->tid)
            return error_set(err, -EINVAL, "samples of single references do not distinguish threads");
        return analysis_curve_sparse(p, question->model, curve, err);
    }
    if (curve->lines_rate < 1)
        return compute_lines(p, question->model, curve, err);
    return curve->full ? compute_full(p, question->model, curve, err)
                       : compute_bursts(p, question, curve, err);
}
