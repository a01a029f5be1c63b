/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window-refs.c - how many references were made in each window that was sampled.
 *
 * A window's CPU time is known, and bursts tell the rate of references of its phase: their product is an
 * estimate. Where all references were counted, each burst knows how many its thread had made before it. Then
 * the estimates between two bursts of a thread are scaled to that number. All others are scaled so that all
 * windows have together what the bursts represent.
 *
 * Example: a thread has windows of 32 ms, the first of a phase with 2 references per ns, then two with 1. The
 * estimates are 64M, 32M and 32M. A burst in the middle of the first window began after 40M references,
 * another one at the end of the second after 80M: between them are 40M references, not 32M + 32M. So the
 * windows have 40M + 20M, 20M, and 32M times what fits the sum of all.
 */
#include "analysis/window-refs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* References per nanosecond, of profiles in which no burst has a rate. Only relative values matter then. */
#define RATE_UNKNOWN 1.0
#define ROUNDING 1e-6

struct work {
    const struct analysis_windows *windows;
    const struct analysis_burst *bursts;
    size_t nbursts, phases;
    double *guess;   /* of each window: CPU time times rate */
    double *counted; /* of each window: references between bursts that know their number */
    double *open;    /* of each window: the part of its guess that is not between such bursts */
    double *rate;    /* by phase, references per ns */
    size_t *order;   /* the bursts that know their number, by thread and time */
    size_t norder;
};

static void work_clear(struct work *w)
{
    free(w->guess);
    free(w->counted);
    free(w->open);
    free(w->rate);
    free(w->order);
}

static const struct profile_time_window *window_of(const struct work *w, const struct analysis_burst *burst)
{
    return &w->windows->list[burst->window];
}

/* The mean rate of references of the bursts of each phase. Returns whether any is known. */
static int find_rates(struct work *w, double *count)
{
    double all = 0, n = 0;
    for (size_t b = 0; b < w->nbursts; b++) {
        const struct analysis_burst *burst = &w->bursts[b];
        if (!(burst->refs_per_ns > 0))
            continue;
        w->rate[burst->group] += burst->refs_per_ns;
        count[burst->group]++;
        all += burst->refs_per_ns;
        n++;
    }
    for (size_t i = 0; i < w->phases; i++)
        w->rate[i] = count[i] > 0 ? w->rate[i] / count[i] : n > 0 ? all / n : RATE_UNKNOWN;
    return n > 0;
}

static int compare_bursts(const void *a, const void *b, void *ctx)
{
    const struct work *w = ctx;
    const struct analysis_burst *x = &w->bursts[*(const size_t *)a], *y = &w->bursts[*(const size_t *)b];
    const struct profile_time_window *in_x = window_of(w, x), *in_y = window_of(w, y);
    if (in_x->process != in_y->process)
        return in_x->process < in_y->process ? -1 : 1;
    if (in_x->tid != in_y->tid)
        return in_x->tid < in_y->tid ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void order_counted(struct work *w)
{
    for (size_t b = 0; b < w->nbursts; b++)
        if (w->bursts[b].window < w->windows->n && !isnan(w->bursts[b].start_refs))
            w->order[w->norder++] = b;
    qsort_r(w->order, w->norder, sizeof *w->order, compare_bursts, w);
}

/* Share of the window that lies before a moment. */
static double share_before(const struct profile_time_window *x, uint64_t ns)
{
    if (ns <= x->start_ns)
        return 0;
    return ns >= x->end_ns ? 1 : (double)(ns - x->start_ns) / (double)(x->end_ns - x->start_ns);
}

/*
 * The references between two bursts of a thread, of which `first` may be NULL (the thread's beginning), to
 * its windows in by_thread[from..to).
 */
static void share_out(struct work *w, size_t from, size_t to, const struct analysis_burst *first,
                      const struct analysis_burst *last)
{
    double made = last->start_refs - (first ? first->start_refs : 0), sum = 0;
    uint64_t begin = first ? first->start_ns : 0, end = last->start_ns;
    if (!(made > 0)) /* a new thread that got an old one's id */
        return;
    made *= last->refs_each;
    for (int add = 0; add < 2; add++)
        for (size_t k = from; k < to; k++) {
            size_t i = w->windows->by_thread[k];
            const struct profile_time_window *x = &w->windows->list[i];
            double part = x->exact ? 0 : w->guess[i] * (share_before(x, end) - share_before(x, begin));
            if (add && part > 0) {
                w->counted[i] += made * part / sum;
                w->open[i] -= part;
            }
            sum += add ? 0 : part;
        }
    if (!(sum > 0))
        w->counted[last->window] += made;
}

/* All bursts that know their number, one thread after the other; windows are in the same order. */
static void count_threads(struct work *w)
{
    const struct analysis_windows *all = w->windows;
    size_t at = 0;
    for (size_t from = 0, to; from < all->n && at < w->norder; from = to) {
        const struct profile_time_window *x = &all->list[all->by_thread[from]], *y;
        const struct analysis_burst *before = NULL;
        for (to = from + 1; to < all->n; to++) {
            y = &all->list[all->by_thread[to]];
            if (y->process != x->process || y->tid != x->tid)
                break;
        }
        size_t low = from; /* no window before it ends after the last burst */
        for (; at < w->norder; at++) {
            const struct analysis_burst *burst = &w->bursts[w->order[at]];
            y = window_of(w, burst);
            if (y->process != x->process || y->tid != x->tid)
                break;
            while (before && low < to && all->list[all->by_thread[low]].end_ns <= before->start_ns)
                low++;
            size_t high = low;
            while (high < to && all->list[all->by_thread[high]].start_ns <= burst->start_ns)
                high++;
            share_out(w, low, high, before, burst);
            before = burst;
        }
    }
}

/* What is left of differences of shares. It must not take what no window had. */
static void drop_rounding(struct work *w)
{
    for (size_t i = 0; i < w->windows->n; i++)
        if (w->open[i] < ROUNDING * w->guess[i])
            w->open[i] = 0;
}

/* A phase whose bursts had no rate has that of its counted references; or of all of them, if no burst had a
 * rate. */
static int rates_of_counted(struct work *w, const double *count, int known)
{
    double *refs = calloc(2 * w->phases + 1, sizeof *refs), *ns = refs + w->phases, all = 0, all_ns = 0;
    for (size_t i = 0; refs && i < w->windows->n; i++) {
        const struct profile_time_window *x = &w->windows->list[i];
        if (x->exact || !(w->guess[i] > 0))
            continue;
        refs[x->phase] += w->counted[i];
        ns[x->phase] += (double)x->cpu_ns * (w->guess[i] - w->open[i]) / w->guess[i];
    }
    for (size_t i = 0; refs && i < w->phases; i++) {
        all += refs[i];
        all_ns += ns[i];
    }
    for (size_t i = 0; refs && i < w->phases; i++) {
        int own = refs[i] > 0 && ns[i] > 0;
        if (count[i] == 0 && (own || (!known && all > 0 && all_ns > 0))) {
            double factor = (own ? refs[i] / ns[i] : all / all_ns) / w->rate[i];
            w->rate[i] *= factor;
            for (size_t k = 0; k < w->windows->n; k++)
                if (w->windows->list[k].phase == i)
                    w->open[k] *= factor;
        }
    }
    int failed = refs == NULL;
    free(refs);
    return failed ? -ENOMEM : 0;
}

static void scale(const struct work *w, double *refs)
{
    double represented = 0, counted = 0, open = 0, factor = 1;
    for (size_t b = 0; b < w->nbursts; b++)
        represented += w->bursts[b].weight;
    for (size_t i = 0; i < w->windows->n; i++) {
        counted += w->counted[i];
        open += w->open[i];
    }
    if (open > 0 && represented > counted)
        factor = (represented - counted) / open;
    for (size_t i = 0; i < w->windows->n; i++)
        if (!w->windows->list[i].exact)
            refs[i] = w->counted[i] + factor * w->open[i];
    double sum = counted + factor * open;
    for (size_t i = 0; i < w->windows->n && sum > 0 && represented > 0; i++)
        if (!w->windows->list[i].exact)
            refs[i] *= represented / sum;
}

int analysis_window_refs(const struct analysis_windows *windows, const struct analysis_burst *bursts,
                         size_t nbursts, size_t phases, double *refs, double *cpu_ns, struct error *err)
{
    struct work w = {.windows = windows, .bursts = bursts, .nbursts = nbursts, .phases = phases};
    double *count = calloc(phases + 1, sizeof *count);
    w.guess = calloc(windows->n + 1, sizeof *w.guess);
    w.counted = calloc(windows->n + 1, sizeof *w.counted);
    w.open = calloc(windows->n + 1, sizeof *w.open);
    w.rate = calloc(phases + 1, sizeof *w.rate);
    w.order = calloc(nbursts + 1, sizeof *w.order);
    int code = -ENOMEM;
    if (count && w.guess && w.counted && w.open && w.rate && w.order) {
        int known = find_rates(&w, count);
        for (size_t i = 0; i < windows->n; i++)
            if (!windows->list[i].exact)
                w.guess[i] = w.open[i] = (double)windows->list[i].cpu_ns * w.rate[windows->list[i].phase];
        order_counted(&w);
        count_threads(&w);
        drop_rounding(&w);
        code = rates_of_counted(&w, count, known);
        scale(&w, refs);
        known |= w.norder > 0;
        for (size_t i = 0; i < windows->n; i++)
            cpu_ns[i] = !windows->list[i].exact ? (double)windows->list[i].cpu_ns
                        : known                 ? refs[i] / w.rate[windows->list[i].phase]
                                                : NAN;
    }
    free(count);
    work_clear(&w);
    return code < 0 ? error_set(err, code, "out of memory computing the references of windows") : 0;
}
