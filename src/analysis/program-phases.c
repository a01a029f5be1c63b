/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program-phases.c - from the windows of a profile to the curves of its phases.
 *
 * A phase's curve is the curve of the whole run times the ratio of both at sizes in steps of a third of an
 * octave, with which the timeline is computed. So the steep parts of the run's curve stay where they are. The
 * ratios are scaled so that the mean over the phases, weighted by references, is the curve of the run; also
 * where a phase's curve would rise, as windows have noise, and is level instead.
 */
#include "analysis/program-phases.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline.h"

#define PER_OCTAVE 3u
#define OCTAVES 24u
#define RATIOS (PER_OCTAVE * OCTAVES + 1u)
/* A phase is one by itself if it has this share of the references, or of the CPU time, as one that waits for
 * memory makes few references; and so many bursts unless it is exact. */
#define LEAST_SHARE 0.02
#define LEAST_BURSTS 10u
/* Threads that run at the same time are in several phases at once. Then there is no use in phases. */
#define LEAST_OF_ONE_THREAD 0.9

struct part {
    double refs;
    double misses[RATIOS]; /* sums: the miss ratio times refs */
};

struct work {
    struct analysis_timeline timeline;
    struct part part[STATCC_PHASES]; /* the last is of all small phases */
    uint32_t n;
};

/* What a window has of something per ns, as references; 0 if it takes no time. */
static double density(const struct analysis_time_window *x, double all)
{
    return x->end_ns > x->start_ns ? all / (double)(x->end_ns - x->start_ns) : 0;
}

static int compare_windows(const void *a, const void *b, void *windows)
{
    const struct analysis_time_window *list = windows, *x = &list[*(const size_t *)a],
                                      *y = &list[*(const size_t *)b];
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* References and CPU time. */
struct amount {
    double refs, cpu_ns;
};

/* Adds, from one moment to the next, those of the open window that has most. */
static void add_most(const struct analysis_timeline *t, const size_t *open, size_t n, double ns,
                     struct amount *sum)
{
    struct amount most = {0};
    for (size_t i = 0; i < n; i++) {
        const struct analysis_time_window *x = &t->windows[open[i]];
        most.refs = fmax(most.refs, density(x, x->refs));
        most.cpu_ns = fmax(most.cpu_ns, density(x, x->cpu_ns));
    }
    sum->refs += most.refs * ns;
    sum->cpu_ns += most.cpu_ns * ns;
}

/* Leaves out the windows that have ended. The others: how many, and when the first of them ends. */
static size_t close_ended(const struct analysis_timeline *t, size_t *open, size_t n, uint64_t at,
                          uint64_t *next)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t end = t->windows[open[i]].end_ns;
        if (end <= at)
            continue;
        *next = end < *next ? end : *next;
        open[left++] = open[i];
    }
    return left;
}

/*
 * Whether at any time one thread makes nearly all references, in nearly all of the CPU time: the only busy
 * one, or processes that run one after the other, as those of a shell script. Windows of one thread do not
 * overlap. In full mode CPU time is not known.
 */
static int is_one_at_a_time(const struct analysis_timeline *t, int *failed)
{
    size_t *order = calloc(2 * t->n + 1, sizeof *order), *open = order + t->n, n = 0;
    struct amount all = {0}, most = {0};
    *failed = order == NULL;
    if (!order)
        return 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct analysis_time_window *x = &t->windows[i];
        order[i] = i;
        all.refs += x->refs;
        all.cpu_ns += x->cpu_ns;
        if (x->end_ns <= x->start_ns) {
            most.refs += x->refs;
            most.cpu_ns += x->cpu_ns;
        }
    }
    qsort_r(order, t->n, sizeof *order, compare_windows, t->windows);
    uint64_t at = 0;
    for (size_t next = 0; next < t->n || n > 0;) {
        uint64_t to = next < t->n ? t->windows[order[next]].start_ns : UINT64_MAX;
        n = close_ended(t, open, n, at, &to);
        if (to == UINT64_MAX)
            break;
        add_most(t, open, n, (double)(to - at), &most);
        at = to;
        while (next < t->n && t->windows[order[next]].start_ns <= at)
            open[n++] = order[next++];
    }
    free(order);
    return most.refs >= LEAST_OF_ONE_THREAD * all.refs &&
           (isnan(all.cpu_ns) || most.cpu_ns >= LEAST_OF_ONE_THREAD * all.cpu_ns);
}

static double whole_miss(const struct work *w, const struct analysis_program *program, size_t k)
{
    return statcc_curve_miss(&program->curve, w->timeline.sizes[k] / program->line_bytes);
}

static void add_phase(struct work *w, const struct analysis_program *program, size_t phase, struct part *part)
{
    double refs = w->timeline.phases[phase].refs;
    part->refs += refs;
    for (size_t k = 0; k < RATIOS; k++) {
        double miss = w->timeline.of_phase[phase * RATIOS + k];
        part->misses[k] += refs * (isnan(miss) ? whole_miss(w, program, k) : miss);
    }
}

/* Position of the largest phase that is not taken yet; timeline.nphases if none is left. */
static size_t largest(const struct work *w, const char *taken)
{
    size_t best = w->timeline.nphases;
    for (size_t i = 0; i < w->timeline.nphases; i++)
        if (!taken[i] &&
            (best == w->timeline.nphases || w->timeline.phases[i].refs > w->timeline.phases[best].refs))
            best = i;
    return best;
}

/* Whether all of the phase's windows are exact. */
static int is_exact(const struct analysis_timeline *t, uint32_t phase)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->windows[i].phase == phase && !t->windows[i].exact)
            return 0;
    return 1;
}

static int choose_parts(struct work *w, const struct analysis_program *program)
{
    const struct analysis_timeline *t = &w->timeline;
    char *taken = calloc(t->nphases + 1, 1);
    double all = 0, all_ns = 0;
    struct part rest = {0};
    if (!taken)
        return -ENOMEM;
    for (size_t i = 0; i < t->nphases; i++) {
        all += t->phases[i].refs;
        all_ns += t->phases[i].cpu_ns; /* NaN, and then no share is large enough, if it is not known */
    }
    for (size_t at; (at = largest(w, taken)) < t->nphases;) {
        const struct analysis_phase *phase = &t->phases[at];
        int large = phase->refs >= LEAST_SHARE * all || phase->cpu_ns >= LEAST_SHARE * all_ns;
        int alone = phase->phase != 0 && large && w->n + 1 < STATCC_PHASES &&
                    (phase->bursts >= LEAST_BURSTS || is_exact(t, phase->phase));
        taken[at] = 1;
        add_phase(w, program, at, alone ? &w->part[w->n++] : &rest);
    }
    if (rest.refs > 0)
        w->part[w->n++] = rest;
    free(taken);
    return 0;
}

/* Misses of the part relative to those of the whole run, at so many lines. */
static double ratio_at(const double *ratio, const double *sizes, double bytes)
{
    size_t k = 0;
    while (k + 1 < RATIOS && sizes[k + 1] < bytes)
        k++;
    if (k + 1 == RATIOS || bytes <= sizes[k])
        return ratio[k];
    double part = log(bytes / sizes[k]) / log(sizes[k + 1] / sizes[k]);
    return ratio[k] + part * (ratio[k + 1] - ratio[k]);
}

/*
 * Misses of the parts at one size: in proportion to `wanted`, but none has more than at the size before
 * (`least`, which is replaced), and the mean, weighted by shares, is that of the run. The parts that have to
 * have less leave the rest to the others.
 *
 * Example: the run misses in 6%; two parts with shares of a half each want three to one, thus 9% and 3%. The
 * first had 8% at the size before, so it keeps 8%, and the second gets (6% - 8% / 2) / (1 / 2) = 4%.
 */
static void share_out(double run, const double *share, const double *wanted, uint32_t n, double *least)
{
    int full[STATCC_PHASES] = {0};
    double left = run, sum = 0, factor = 1;
    for (int again = 1; again;) {
        sum = 0;
        for (uint32_t a = 0; a < n; a++)
            sum += full[a] ? 0 : share[a] * wanted[a];
        factor = sum > 0 ? left / sum : 0;
        again = 0;
        for (uint32_t a = 0; a < n; a++)
            if (!full[a] && factor * wanted[a] > least[a]) {
                full[a] = again = 1;
                left = fmax(left - share[a] * least[a], 0);
            }
    }
    for (uint32_t a = 0; a < n; a++)
        if (!full[a])
            least[a] = factor * wanted[a];
}

static int make_curves(struct work *w, const struct curve_point *points, size_t n,
                       struct analysis_program *program, struct error *err)
{
    double ratio[STATCC_PHASES][RATIOS], wanted[STATCC_PHASES], misses[STATCC_PHASES];
    struct curve_point *of_phase = calloc(n * w->n, sizeof *of_phase);
    double all = 0;
    int code = 0;
    program->phase_curve = calloc(w->n, sizeof *program->phase_curve);
    if (!of_phase || !program->phase_curve) {
        free(of_phase);
        return error_set(err, -ENOMEM, "out of memory computing the phases' curves");
    }
    for (uint32_t a = 0; a < w->n; a++)
        all += w->part[a].refs;
    for (uint32_t a = 0; a < w->n; a++) {
        program->phase_share[a] = w->part[a].refs / all;
        misses[a] = 1;
    }
    for (size_t k = 0; k < RATIOS; k++) {
        double sum = 0;
        for (uint32_t a = 0; a < w->n; a++)
            sum += w->part[a].misses[k];
        for (uint32_t a = 0; a < w->n; a++)
            ratio[a][k] = sum > 0 ? w->part[a].misses[k] / w->part[a].refs / (sum / all) : 1;
    }
    for (size_t i = 0; i < n; i++) {
        double size = points[i].size_bytes;
        for (uint32_t a = 0; a < w->n; a++)
            wanted[a] = ratio_at(ratio[a], w->timeline.sizes, size);
        share_out(statcc_curve_miss(&program->curve, size / program->line_bytes), program->phase_share,
                  wanted, w->n, misses);
        for (uint32_t a = 0; a < w->n; a++)
            of_phase[a * n + i] = (struct curve_point){.size_bytes = size, .miss_ratio = misses[a]};
    }
    for (uint32_t a = 0; a < w->n && code == 0; a++) {
        code = statcc_curve_points(&of_phase[a * n], n, program->line_bytes, &program->phase_curve[a], err);
        program->phase_curve[a].known_lines = program->curve.known_lines;
    }
    if (code == 0)
        program->phases = w->n;
    free(of_phase);
    return code;
}

int analysis_program_phases(struct profile *p, const struct curve_point *points, size_t n,
                            struct analysis_program *program, struct error *err)
{
    struct curve_point sizes[RATIOS];
    struct work *w = calloc(1, sizeof *w);
    struct error none;
    int code = 0;
    if (!w)
        return error_set(err, -ENOMEM, "out of memory computing the phases' curves");
    for (size_t k = 0; k < RATIOS; k++)
        sizes[k] = (struct curve_point){.size_bytes = program->line_bytes * exp2((double)k / PER_OCTAVE)};
    w->timeline.profile = program->profile;
    if (analysis_timeline_compute(p, sizes, RATIOS, &w->timeline, &none) == 0) {
        int failed = 0;
        program->found_phases = (uint32_t)w->timeline.nphases;
        program->in_several =
            w->timeline.nphases > 1 && (program->threads > 1 || !is_one_at_a_time(&w->timeline, &failed));
        code = failed ? -ENOMEM : 0;
        if (code == 0 && w->timeline.nphases > 1 && !program->in_several)
            code = choose_parts(w, program);
        if (code != 0)
            error_set(err, code, "out of memory computing the phases' curves");
        else if (w->n > 1)
            code = make_curves(w, points, n, program, err);
        analysis_timeline_clear(&w->timeline);
    }
    free(w);
    return code;
}
