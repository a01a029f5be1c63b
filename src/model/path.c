/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - the stack distance of a watched reuse.
 *
 * Problem. The number of references until a watched line is touched again is known. An LRU cache depends on
 * the number of other lines touched in that time.
 *
 * Method (docs/methods.md, section 6). At the burst's end the line's depth is known: p lines were touched
 * after it, in a references. Its growth in what was recorded after the burst may have been counted
 * (tail_lines); without that, programs that sweep through more and more data came out with half of their
 * working set, since the pooled F mixes all of its sizes. From there on the depth grows as in StatStack: a
 * reference at which the line is r references old adds a line if its own line was not touched since, which
 * holds for the share F(r) of references. F is that of the part of the run in which the line ages, that is,
 * of the burst nearest in time:
 *
 *     x = p + sum over the bursts b passed of ES_b(a + end) - ES_b(a + begin)
 *
 * where begin and end delimit the part of burst b, in references since the burst's end. ES_b comes from the
 * burst's own reuses up to half its length, and beyond that in proportion to the ES pooled over all bursts
 * and watched lines. Where the bursts' positions are not known, the pooled ES is used alone. The farther from
 * a burst, the less the program resembles it: at t references from the burst's beginning ES_b counts with
 * exp(-t / T) and the pooled ES with the rest; T is FADE.
 *
 * Example: p = 3, a = 5, reused 10 references after the burst's end, all within the burst's own part, where
 * F(6) .. F(15) = 1/2: x = 3 + 10/2 = 8.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/watched-internal.h"

/* Beyond half a burst's length only few origins, near the burst's beginning, are observed long enough. */
#define OWN_PART 0.5
/*
 * T. (Bursts are a hundred times as far apart.) Without fading, distances spread too
 * widely and miss ratios of large caches are too high: mean error over 512 KB to 8 MB of thirteen programs in
 * three recordings 0.105, 0.118, 0.082 percentage points; with 3e6 references 0.090, 0.113, 0.079; with 1e6
 * 0.082, 0.104, 0.075; with 3e5 0.086; with 1e5 0.105. Smaller caches hardly depend on it.
 */
#define FADE 1e6
/* Step of the numerical integration: FADE_PART of the distance to the burst, and at least FADE_LEAST
 * references. */
#define FADE_PART 0.25
#define FADE_LEAST 4096.
/* Distance in units of T beyond which only the pooled ES counts. */
#define FADED 40.
/* Fewest references at risk for a burst's own survival function. */
#define OWN_MIN_AT_RISK MODEL_MIN_AT_RISK

/* A burst and the part of the run around it. */
struct stretch {
    double start, end; /* references; end: half way to the next burst of the thread */
    uint32_t thread;
    size_t burst;
};

struct path {
    struct growth pooled;
    struct growth *own;      /* of each burst */
    struct stretch *stretch; /* by thread, then time; nstretches of them */
    size_t nstretches;
    size_t *at; /* of each burst: its index in stretch, or SIZE_MAX */
};

static void path_clear(struct path *p)
{
    free(p->own);
    free(p->stretch);
    free(p->at);
}

static int compare_stretches(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

static void find_stretches(struct path *p, const struct curve_burst *bursts, size_t nbursts)
{
    for (size_t b = 0; b < nbursts; b++) {
        p->at[b] = SIZE_MAX;
        if (isnan(bursts[b].start_refs) || bursts[b].references == 0)
            continue;
        p->stretch[p->nstretches++] =
            (struct stretch){.start = bursts[b].start_refs, .thread = bursts[b].thread, .burst = b};
    }
    qsort(p->stretch, p->nstretches, sizeof *p->stretch, compare_stretches);
    for (size_t i = 0; i < p->nstretches; i++) {
        struct stretch *stretch = &p->stretch[i], *next = stretch + 1;
        double length = (double)bursts[stretch->burst].references;
        p->at[stretch->burst] = i;
        stretch->end = i + 1 < p->nstretches && next->thread == stretch->thread
                           ? (stretch->start + length + next->start) / 2
                           : INFINITY;
    }
}

/* The growth of each burst and the pooled one. */
static int find_growths(struct path *p, const struct curve_burst *bursts, size_t nbursts)
{
    struct growth_counts *counts = malloc(sizeof *counts), *all = calloc(1, sizeof *all);

    if (!counts || !all) {
        free(counts);
        free(all);
        return -ENOMEM;
    }
    for (size_t b = 0; b < nbursts; b++) {
        *counts = (struct growth_counts){.endless = 0};
        watched_counts(&bursts[b], counts);
        growth_add_counts(all, counts, watched_share(&bursts[b]));
    }
    growth_estimate(all, 0, &p->pooled);
    for (size_t b = 0; b < nbursts; b++) {
        const struct curve_burst *burst = &bursts[b];
        *counts = (struct growth_counts){.endless = 0};
        growth_add_hist(counts, GROWTH_EVENT, &burst->reuse);
        growth_add_hist(counts, GROWTH_CENSORED, &burst->age);
        uint32_t known = growth_estimate(counts, OWN_MIN_AT_RISK, &p->own[b]);
        uint32_t reach = growth_bin(OWN_PART * (double)burst->references);
        growth_splice(&p->own[b], &p->pooled, known < reach ? known : reach);
    }
    free(counts);
    free(all);
    return 0;
}

/* Growth of the depth of a line, `age` references old at its burst's end, from `from` to `to` references
 * after that end, within the stretch `of` another burst, which begins at `start` on the same scale. */
static double depth_growth(const struct path *p, const struct stretch *of, double age, double from, double to,
                           double start)
{
    const struct growth *own = &p->own[of->burst];
    double distance = 0;
    while (from < to) {
        double off = fabs(from - start), step = from + fmax(FADE_LEAST, FADE_PART * off);
        if (off > FADED * FADE)
            step = from > start ? to : start - FADED * FADE;
        step = fmin(fmax(step, from + FADE_LEAST), to);
        double left = exp(-fabs((from + step) / 2 - start) / FADE);
        distance +=
            left * (growth_lines(own, age + step) - growth_lines(own, age + from)) +
            (1 - left) * (growth_lines(&p->pooled, age + step) - growth_lines(&p->pooled, age + from));
        from = step;
    }
    return distance;
}

static double distance_of(const struct path *p, const struct curve_burst *bursts, size_t b,
                          const struct curve_watch *watch)
{
    double age = watch->age, distance = watch->position + watch->tail_lines, done = watch->tail_refs;
    size_t at = p->at[b];

    if (watch->outcome == CURVE_ENDLESS)
        return INFINITY;
    if (watch->refs <= done)
        return distance;
    if (at == SIZE_MAX)
        return distance + growth_lines(&p->pooled, age + watch->refs) - growth_lines(&p->pooled, age + done);
    double end = bursts[b].start_refs + (double)bursts[b].references;
    while (done < watch->refs) {
        const struct stretch *s = &p->stretch[at++];
        double until = fmin(watch->refs, fmax(done, s->end - end));
        distance += depth_growth(p, s, age, done, until, s->start - end);
        done = until;
    }
    return distance;
}

int watched_distances(const struct curve_burst *bursts, size_t nbursts, double *distance, struct error *err)
{
    struct path *p = calloc(1, sizeof *p);
    int code = p ? 0 : -ENOMEM;

    if (code == 0) {
        p->own = malloc((nbursts + 1) * sizeof *p->own);
        p->stretch = malloc((nbursts + 1) * sizeof *p->stretch);
        p->at = malloc((nbursts + 1) * sizeof *p->at);
        code = p->own && p->stretch && p->at ? find_growths(p, bursts, nbursts) : -ENOMEM;
    }
    if (code == 0) {
        find_stretches(p, bursts, nbursts);
        for (size_t b = 0; b < nbursts; b++)
            for (size_t i = 0; i < bursts[b].nwatches; i++)
                *distance++ = distance_of(p, bursts, b, &bursts[b].watches[i]);
    }
    if (p)
        path_clear(p);
    free(p);
    return code < 0 ? error_set(err, code, "out of memory for the watched lines of %zu bursts", nbursts) : 0;
}
