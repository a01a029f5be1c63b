/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "analysis/burst-weights.h"
#include "analysis/curve.h"
#include "analysis/window-refs.h"
#include "analysis/windows.h"
#include "model/shrink.h"

/* A column of elapsed time is idle if all threads together used less than this share of it. Windows are of
 * CPU time, and one that contains a pause has that of 32 ms and more. */
#define IDLE_SHARE 0.1

struct work {
    struct profile *p;
    struct analysis_windows windows;
    size_t n;
    struct analysis_burst *bursts;
    size_t nbursts;
    double *of_burst; /* miss ratios */
    double *of_phase; /* likewise, of the bursts in each phase; by its number */
    struct analysis_timeline *t;
};

static void work_clear(struct work *w)
{
    analysis_windows_clear(&w->windows);
    free(w->bursts);
    free(w->of_burst);
    free(w->of_phase);
}

static void place_burst(void *ctx, const struct profile_burst *burst, struct analysis_burst *placed)
{
    const struct work *w = ctx;
    placed->window = analysis_windows_find(&w->windows, burst);
    placed->group = placed->window < w->n ? w->windows.list[placed->window].phase : 0;
}

/* Weighted means of miss ratios, of which some are not known. */
struct mean {
    double *sum, *known;
};

static int mean_new(struct mean *m, size_t groups, size_t nsizes)
{
    m->sum = calloc(groups * nsizes + 1, sizeof *m->sum);
    m->known = calloc(groups * nsizes + 1, sizeof *m->known);
    return m->sum && m->known ? 0 : -ENOMEM;
}

static void mean_clear(struct mean *m)
{
    free(m->sum);
    free(m->known);
}

static void mean_add(struct mean *m, size_t group, size_t nsizes, const double *values, double weight)
{
    for (size_t i = 0; i < nsizes; i++)
        if (!isnan(values[i])) {
            m->sum[group * nsizes + i] += weight * values[i];
            m->known[group * nsizes + i] += weight;
        }
}

static double mean_of(const struct mean *m, size_t at)
{
    return m->known[at] > 0 ? m->sum[at] / m->known[at] : NAN;
}

static int take_exact(struct work *w, size_t i, struct hist *h, struct error *err)
{
    struct analysis_timeline *t = w->t;
    const struct profile_time_window *x = &w->windows.list[i];
    uint64_t cold = t->separate ? x->own_cold : x->cold;
    int code = analysis_window_stack(w->p, x->id, t->separate, h, err);
    double total = (double)h->total + (double)cold;
    for (size_t k = 0; k < t->nsizes && code == 0; k++) {
        double lines = fmax(1, floor(t->sizes[k] / t->line_bytes));
        t->miss_ratio[i * t->nsizes + k] = total > 0 ? (hist_at_least(h, lines) + (double)cold) / total : NAN;
    }
    return code;
}

static int take_all_exact(struct work *w, struct error *err)
{
    struct hist *h = malloc(sizeof *h);
    int code = h ? 0 : error_set(err, -ENOMEM, "out of memory computing the timeline");
    for (size_t i = 0; i < w->n && code == 0; i++)
        if (w->windows.list[i].exact) {
            code = take_exact(w, i, h, err);
            w->t->exact++;
        }
    free(h);
    return code;
}

static int find_refs(struct work *w, size_t phases, struct error *err)
{
    struct analysis_timeline *t = w->t;
    double *refs = calloc(2 * w->n + 1, sizeof *refs), *cpu_ns = refs + w->n;
    if (!refs)
        return error_set(err, -ENOMEM, "out of memory computing the timeline");
    for (size_t i = 0; i < w->n; i++)
        if (w->windows.list[i].exact)
            refs[i] = (double)w->windows.list[i].references;
    int code = analysis_window_refs(&w->windows, w->bursts, w->nbursts, phases, refs, cpu_ns, err);
    for (size_t i = 0; i < w->n && code == 0; i++) {
        t->windows[i].refs = refs[i];
        t->windows[i].cpu_ns = cpu_ns[i];
    }
    free(refs);
    return code;
}

static int take_sampled(struct work *w, size_t phases, struct error *err)
{
    struct analysis_timeline *t = w->t;
    size_t n = t->nsizes;
    struct shrink_value *values = calloc(w->nbursts + 1, sizeof *values);
    uint32_t *phase_of = calloc(w->n + 1, sizeof *phase_of);
    int code = -ENOMEM;
    w->of_phase = calloc(phases * n + 1, sizeof *w->of_phase);
    for (size_t b = 0; values && b < w->nbursts; b++) {
        const struct analysis_burst *burst = &w->bursts[b];
        values[b] = (struct shrink_value){burst->window, burst->group, burst->weight, w->of_burst + b * n};
        if (burst->window < w->n)
            t->windows[burst->window].bursts++;
    }
    for (size_t i = 0; phase_of && i < w->n; i++)
        phase_of[i] = w->windows.list[i].phase;
    if (values && phase_of && w->of_phase)
        code = shrink_values(values, w->nbursts, n, phase_of, w->n, phases, t->miss_ratio, w->of_phase);
    free(values);
    free(phase_of);
    return code < 0 ? error_set(err, code, "out of memory computing the timeline") : 0;
}

/* Miss ratios of each row fall with the size, as those of the run's curve do. */
static int make_rows_monotone(double *rows, size_t n, size_t nsizes, struct error *err)
{
    struct curve_point *points = calloc(nsizes + 1, sizeof *points);
    int code = points ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && code == 0; i++) {
        for (size_t k = 0; k < nsizes; k++)
            points[k] = (struct curve_point){.miss_ratio = rows[i * nsizes + k], .low = NAN, .high = NAN};
        code = curve_make_monotone(points, nsizes);
        for (size_t k = 0; k < nsizes; k++)
            rows[i * nsizes + k] = points[k].miss_ratio;
    }
    free(points);
    return code < 0 ? error_set(err, code, "out of memory computing the timeline") : 0;
}

/* Sums over the windows of each phase. */
static int sum_phases(struct work *w, size_t phases, struct error *err)
{
    struct analysis_timeline *t = w->t;
    struct mean of_phase = {0};
    t->phases = calloc(phases + 1, sizeof *t->phases);
    t->of_phase = calloc(phases * t->nsizes + 1, sizeof *t->of_phase);
    if (!t->phases || !t->of_phase || mean_new(&of_phase, phases, t->nsizes) < 0) {
        mean_clear(&of_phase);
        return error_set(err, -ENOMEM, "out of memory computing the timeline");
    }
    struct analysis_phase *sums = calloc(phases + 1, sizeof *sums);
    for (size_t i = 0; sums && i < t->n; i++) {
        const struct analysis_time_window *x = &t->windows[i];
        struct analysis_phase *s = &sums[x->phase];
        s->windows++;
        s->refs += x->refs;
        s->cpu_ns += x->cpu_ns;
        s->bursts += x->bursts;
        mean_add(&of_phase, x->phase, t->nsizes,
                 x->exact ? t->miss_ratio + i * t->nsizes : w->of_phase + x->phase * t->nsizes, x->refs);
    }
    /* The exact windows of a phase do not speak for its bursts. */
    for (size_t i = 0; sums && i < phases * t->nsizes; i++)
        if (sums[i / t->nsizes].bursts > 0 && isnan(w->of_phase[i]))
            of_phase.known[i] = 0;
    for (uint32_t phase = 1; sums && phase <= phases; phase++) { /* those without a phase come last */
        uint32_t from = phase < phases ? phase : 0;
        if (sums[from].windows == 0)
            continue;
        for (size_t k = 0; k < t->nsizes; k++)
            t->of_phase[t->nphases * t->nsizes + k] = mean_of(&of_phase, from * t->nsizes + k);
        t->phases[t->nphases] = sums[from];
        t->phases[t->nphases++].phase = from;
    }
    mean_clear(&of_phase);
    int failed = !sums;
    free(sums);
    return failed ? error_set(err, -ENOMEM, "out of memory computing the timeline") : 0;
}

static void find_starts(struct analysis_timeline *t)
{
    const struct analysis_time_window *last = NULL;
    for (size_t k = 0; k < t->n; k++) {
        struct analysis_time_window *x = &t->windows[t->by_thread[k]];
        if (last && last->process == x->process && last->tid == x->tid)
            x->start_refs = last->start_refs + last->refs;
        last = x;
    }
}

static int prepare(struct work *w, const struct curve_point *points, size_t n, size_t *phases,
                   struct error *err)
{
    struct analysis_timeline *t = w->t;
    int code = analysis_windows_load(w->p, t->profile, &w->windows, err);
    if (code != 0)
        return code;
    w->n = w->windows.n;
    if ((code = profile_line_bytes(w->p, &t->line_bytes, err)) != 0)
        return code;
    t->n = w->n;
    t->nsizes = n;
    t->windows = calloc(w->n + 1, sizeof *t->windows);
    t->sizes = calloc(n + 1, sizeof *t->sizes);
    t->miss_ratio = calloc(w->n * n + 1, sizeof *t->miss_ratio);
    if (!t->windows || !t->sizes || !t->miss_ratio)
        return error_set(err, -ENOMEM, "out of memory computing the timeline");
    for (size_t i = 0; i < n; i++)
        t->sizes[i] = points[i].size_bytes;
    for (size_t i = 0; i < w->n; i++) {
        const struct profile_time_window *x = &w->windows.list[i];
        *phases = x->phase + 1 > *phases ? x->phase + 1 : *phases;
        t->windows[i] = (struct analysis_time_window){.id = x->id,
                                                      .process = x->process,
                                                      .tid = x->tid,
                                                      .exact = x->exact,
                                                      .start_ns = x->start_ns,
                                                      .end_ns = x->end_ns,
                                                      .spent_ns = x->cpu_ns,
                                                      .phase = x->phase};
    }
    return 0;
}

/* Leaves only the windows of the selection. */
static int select_windows(struct work *w, struct error *err)
{
    struct analysis_timeline *t = w->t;
    size_t *place = t->selection ? calloc(t->n + 1, sizeof *place) : NULL, n = 0, left = 0;
    if (!t->selection)
        return 0;
    if (!place)
        return error_set(err, -ENOMEM, "out of memory computing the timeline");
    t->exact = t->bursts = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct analysis_time_window *x = &t->windows[i];
        place[i] = SIZE_MAX;
        if (!analysis_selection_has(t->selection, x->process, x->tid))
            continue;
        t->exact += x->exact != 0;
        t->bursts += x->bursts;
        memmove(t->miss_ratio + n * t->nsizes, t->miss_ratio + i * t->nsizes,
                t->nsizes * sizeof *t->miss_ratio);
        t->windows[n] = *x;
        place[i] = n++;
    }
    for (size_t k = 0; k < t->n; k++)
        if (place[t->by_thread[k]] != SIZE_MAX)
            t->by_thread[left++] = place[t->by_thread[k]];
    t->n = n;
    free(place);
    return n > 0 ? 0 : analysis_selection_refuse(w->p, t->profile, t->selection, err);
}

/* Threads of which no event was seen have no windows, and others none after their last event. */
static double find_covered(struct profile *p, const struct analysis_timeline *t)
{
    double all, sum = 0;
    if (t->selection || profile_get_number(p, "user_cpu_seconds", &all, NULL) != 0 || !(all > 0))
        return NAN;
    for (size_t i = 0; i < t->n; i++)
        sum += (double)t->windows[i].spent_ns * 1e-9;
    return fmin(sum / all, 1);
}

/* Of increasing sizes. */
static int compute(struct profile *p, const struct curve_point *points, size_t n,
                   struct analysis_timeline *timeline, struct error *err)
{
    struct work w = {.p = p, .t = timeline};
    size_t phases = 1; /* numbers 0 .. phases - 1 */
    *timeline = (struct analysis_timeline){
        .profile = timeline->profile, .selection = timeline->selection, .separate = timeline->separate};
    int code = prepare(&w, points, n, &phases, err);
    if (code == 0)
        code = analysis_each_burst(p, timeline->profile, timeline->line_bytes, timeline->separate, points, n,
                                   place_burst, &w, &w.bursts, &w.nbursts, &w.of_burst, err);
    if (code == 0) {
        timeline->bursts = w.nbursts;
        code = find_refs(&w, phases, err);
    }
    if (code == 0)
        code = take_sampled(&w, phases, err);
    if (code == 0)
        code = take_all_exact(&w, err);
    /* Each size has an error of its own; and a size that is not known in some windows is a mean of the
     * others. */
    if (code == 0)
        code = make_rows_monotone(timeline->miss_ratio, timeline->n, n, err);
    if (code == 0) {
        timeline->by_thread = w.windows.by_thread;
        w.windows.by_thread = NULL;
        find_starts(timeline);
        code = select_windows(&w, err);
    }
    if (code == 0)
        code = sum_phases(&w, phases, err);
    if (code == 0)
        code = make_rows_monotone(timeline->of_phase, timeline->nphases, n, err);
    if (code == 0) {
        char complete[8] = "";
        timeline->covered = find_covered(p, timeline);
        timeline->incomplete =
            profile_get(p, "complete", complete, sizeof complete, NULL) != 0 || strcmp(complete, "yes") != 0;
    }
    work_clear(&w);
    if (code != 0)
        analysis_timeline_clear(timeline);
    return code;
}

/* Keeps from each row of nall values those at the places index[n], in their order. */
static void keep_columns(double *rows, size_t nrows, size_t nall, const size_t *index, size_t n, double *row)
{
    for (size_t i = 0; i < nrows; i++) {
        memcpy(row, rows + i * nall, nall * sizeof *row);
        for (size_t k = 0; k < n; k++)
            rows[i * n + k] = row[index[k]];
    }
}

int analysis_timeline_compute(struct profile *p, const struct curve_point *points, size_t n,
                              struct analysis_timeline *timeline, struct error *err)
{
    size_t nall = 0;
    struct curve_point *all = analysis_curve_with_grid(points, n, &nall);
    size_t *index = calloc(n + 1, sizeof *index);
    double *row = calloc(nall + 1, sizeof *row);
    int code = all && index && row ? compute(p, all, nall, timeline, err)
                                   : error_set(err, -ENOMEM, "out of memory computing the timeline");
    if (code == 0) {
        for (size_t k = 0; k < n; k++)
            index[k] = (size_t)(analysis_curve_find(all, nall, points[k].size_bytes) - all);
        keep_columns(timeline->miss_ratio, timeline->n, nall, index, n, row);
        keep_columns(timeline->of_phase, timeline->nphases, nall, index, n, row);
        keep_columns(timeline->sizes, 1, nall, index, n, row);
        timeline->nsizes = n;
    }
    free(all);
    free(index);
    free(row);
    return code;
}

void analysis_timeline_clear(struct analysis_timeline *t)
{
    free(t->sizes);
    free(t->windows);
    free(t->by_thread);
    free(t->miss_ratio);
    free(t->phases);
    free(t->of_phase);
    *t = (struct analysis_timeline){.profile = t->profile};
}

/* --- the whole program in equal parts --- */

/* Share of the window that lies before a moment. */
static double share_before(const struct analysis_time_window *x, double ns)
{
    double start = (double)x->start_ns, end = (double)x->end_ns;
    if (ns <= start)
        return 0;
    return ns >= end ? 1 : (ns - start) / (end - start);
}

static double refs_before(const struct analysis_timeline *t, double ns)
{
    double sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += t->windows[i].refs * share_before(&t->windows[i], ns);
    return sum;
}

/* The moment before which so many references were made. */
static double moment_of(const struct analysis_timeline *t, double refs, double low, double high)
{
    for (int step = 0; step < 60 && high - low > 0.5; step++) {
        double middle = (low + high) / 2;
        if (refs_before(t, middle) < refs)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void fill_column(const struct analysis_timeline *t, double from_ns, double to_ns, double *of_phase,
                        size_t phases, struct analysis_grid *grid, size_t column, struct mean *mean)
{
    double exact = 0, all = 0, most = 0, spent = 0;
    memset(of_phase, 0, phases * sizeof *of_phase);
    for (size_t i = 0; i < t->n; i++) {
        const struct analysis_time_window *x = &t->windows[i];
        double share = share_before(x, to_ns) - share_before(x, from_ns), refs = x->refs * share;
        if (!(share > 0))
            continue;
        /* In full mode threads wait for the recorder, too. */
        spent += x->exact ? fmin((double)x->end_ns, to_ns) - fmax((double)x->start_ns, from_ns)
                          : (double)x->spent_ns * share;
        of_phase[x->phase] += grid->axis == ANALYSIS_AXIS_TIME ? (double)x->spent_ns * share : refs;
        if (!(refs > 0))
            continue;
        mean_add(mean, column, t->nsizes, t->miss_ratio + i * t->nsizes, refs);
        exact += x->exact ? refs : 0;
        all += refs;
    }
    for (size_t k = 0; k < t->nsizes; k++) { /* unknown if most of it is */
        size_t at = column * t->nsizes + k;
        grid->miss_ratio[at] = mean->known[at] >= all / 2 ? mean_of(mean, at) : NAN;
    }
    grid->idle[column] = spent < IDLE_SHARE * (to_ns - from_ns);
    for (uint32_t phase = 0; phase < phases; phase++)
        if (of_phase[phase] > most) {
            most = of_phase[phase];
            grid->phase[column] = phase;
        }
    grid->exact[column] = all > 0 ? exact / all : 0;
    grid->end_ns[column] = to_ns;
}

int analysis_grid_compute(const struct analysis_timeline *t, enum analysis_axis axis, size_t columns,
                          struct analysis_grid *grid, struct error *err)
{
    struct mean mean = {0};
    uint32_t phases = 1;
    double first = INFINITY, last = 0;
    for (size_t i = 0; i < t->n; i++) {
        phases = t->windows[i].phase + 1 > phases ? t->windows[i].phase + 1 : phases;
        first = fmin(first, (double)t->windows[i].start_ns);
        last = fmax(last, (double)t->windows[i].end_ns);
    }
    double *of_phase = calloc(phases, sizeof *of_phase);
    if (axis == ANALYSIS_AXIS_TIME)
        first = 0;
    *grid = (struct analysis_grid){.axis = axis, .columns = columns, .nsizes = t->nsizes};
    grid->miss_ratio = calloc(columns * t->nsizes + 1, sizeof *grid->miss_ratio);
    grid->phase = calloc(columns + 1, sizeof *grid->phase);
    grid->idle = calloc(columns + 1, sizeof *grid->idle);
    grid->exact = calloc(columns + 1, sizeof *grid->exact);
    grid->end_ns = calloc(columns + 1, sizeof *grid->end_ns);
    int code = mean_new(&mean, columns, t->nsizes);
    if (code < 0 || !of_phase || !grid->miss_ratio || !grid->phase || !grid->idle || !grid->exact ||
        !grid->end_ns)
        code = error_set(err, -ENOMEM, "out of memory computing the timeline");
    grid->refs = refs_before(t, INFINITY);
    for (size_t column = 0; column < columns && code == 0; column++) {
        double part = (double)(column + 1) / (double)columns;
        double end = column + 1 == columns        ? last
                     : axis == ANALYSIS_AXIS_TIME ? last * part
                                                  : moment_of(t, grid->refs * part, first, last);
        fill_column(t, first, end, of_phase, phases, grid, column, &mean);
        first = end;
    }
    free(of_phase);
    mean_clear(&mean);
    if (code != 0)
        analysis_grid_clear(grid);
    return code;
}

void analysis_grid_clear(struct analysis_grid *grid)
{
    free(grid->miss_ratio);
    free(grid->phase);
    free(grid->idle);
    free(grid->exact);
    free(grid->end_ns);
    *grid = (struct analysis_grid){0};
}

/* --- comparison --- */

/* The area between two distribution functions is that between their inverses, which are the sorted values. */
double analysis_cdf_error(const struct analysis_grid *estimate, const struct analysis_grid *exact,
                          size_t size, double *at_time)
{
    size_t n = exact->columns;
    double *a = calloc(2 * n + 1, sizeof *a), *b = a + n, sum = 0;
    *at_time = 0;
    for (size_t i = 0; a && i < n; i++) {
        a[i] = estimate->miss_ratio[i * estimate->nsizes + size];
        b[i] = exact->miss_ratio[i * exact->nsizes + size];
        *at_time += fabs(a[i] - b[i]) / (double)n;
        if (isnan(a[i]) || isnan(b[i]))
            sum = NAN;
    }
    if (!a || n == 0 || isnan(sum)) {
        free(a);
        return *at_time = NAN;
    }
    qsort(a, n, sizeof *a, array_compare_doubles);
    qsort(b, n, sizeof *b, array_compare_doubles);
    for (size_t i = 0; i < n; i++)
        sum += fabs(a[i] - b[i]) / (double)n;
    free(a);
    return sum;
}
