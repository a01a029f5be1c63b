/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - the stack distance of a watched reuse.
 *
 * Problem. A watch says after how many references its line was touched again, an LRU cache cares for how many
 * other lines were touched meanwhile.
 *
 * Method. At the burst's end the line's depth is known: p lines were touched after it, in a references. From
 * there on it grows as StatStack has it: a reference at which the line is r references old adds to the depth
 * if its own line was not touched since, which the share F(r) of references fulfils. F is that of the part of
 * the run through which the line ages, that is, of the burst next to it in time:
 *
 *     x = p + sum over the bursts b passed of ES_b(a + end) - ES_b(a + begin),
 *
 * begin and end telling, in references since the burst's end, where the part of burst b lies. ES_b comes from
 * the burst's own reuses as far as it reaches, half its length, and from there on in proportion to that of
 * all bursts and watches together. Where the clock did not tell when bursts were, ES of all together is
 * taken; and the farther from a burst, the more of it, since programs go on to something else: t references
 * from the burst's beginning, all but exp(-t / T), with T what is known of the program (rates.h), or FADE.
 *
 * Example: p = 3, a = 5, reused 10 references after the burst's end, all within the burst's own part, where
 * F(6) .. F(15) = 1/2: x = 3 + 10/2 = 8.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/watched-internal.h"

/* At distances beyond half a burst few origins are seen to the end, and those at its beginning only. */
#define OWN_PART 0.5
/*
 * Bursts are a hundred times as far apart. Without any fading, distances were spread too widely, and large
 * caches told to miss too often: mean error over 512 KB to 8 MB of thirteen programs, two recordings of half
 * a minute and one of a whole, .105, .118, .082 points; with 3e6 references .090, .113, .079; 1e6 .082, .104,
 * .075; 3e5 .086; 1e5 .105. Smaller caches hardly depend on it.
 */
#define FADE 1e6
/* A step of the sum over what fades: this part of the distance to the burst, or so many references. */
#define FADE_PART .25
#define FADE_LEAST 4096.
/* Farther away than so many T nothing is left. */
#define FADED 40.
/* Fewer references at risk than this make no survival function: 7 points of standard error. */
#define OWN_MIN_AT_RISK MODEL_MIN_AT_RISK

struct place {
    double start, end; /* end: where its part of the run ends, half way to the next burst */
    double fade;       /* T */
    uint32_t thread;
    size_t burst;
};

struct path {
    struct growth pooled;
    struct growth *own;  /* of each burst */
    struct place *place; /* by thread, then time; nplaces of them */
    size_t nplaces;
    size_t *at; /* of each burst: its index in place, or SIZE_MAX */
};

static void path_clear(struct path *p)
{
    free(p->own);
    free(p->place);
    free(p->at);
}

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

static void find_places(struct path *p, const struct curve_burst *bursts, size_t nbursts)
{
    for (size_t b = 0; b < nbursts; b++) {
        p->at[b] = SIZE_MAX;
        if (isnan(bursts[b].start_refs) || bursts[b].references == 0)
            continue;
        p->place[p->nplaces++] =
            (struct place){.start = bursts[b].start_refs,
                           .fade = bursts[b].persistence > 0 ? bursts[b].persistence : FADE,
                           .thread = bursts[b].thread,
                           .burst = b};
    }
    qsort(p->place, p->nplaces, sizeof *p->place, compare_places);
    for (size_t i = 0; i < p->nplaces; i++) {
        struct place *place = &p->place[i], *next = place + 1;
        double length = (double)bursts[place->burst].references;
        p->at[place->burst] = i;
        place->end = i + 1 < p->nplaces && next->thread == place->thread
                         ? (place->start + length + next->start) / 2
                         : INFINITY;
    }
}

/* Each burst's own growth, and that of all. */
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
        growth_add_hist(counts, GROWTH_EVENT, &burst->reuse, 1);
        growth_add_hist(counts, GROWTH_CENSORED, &burst->age, 1);
        uint32_t known = growth_estimate(counts, OWN_MIN_AT_RISK, &p->own[b]);
        uint32_t reach = growth_bin(OWN_PART * (double)burst->references);
        growth_splice(&p->own[b], &p->pooled, known < reach ? known : reach);
    }
    free(counts);
    free(all);
    return 0;
}

/* Lines that a line meets which is `age` references old at a burst's end, from `from` to `to` references
 * behind that, of the part of another burst that begins at `place` on that scale. */
static double met(const struct path *p, const struct place *of, double age, double from, double to,
                  double place)
{
    const struct growth *own = &p->own[of->burst];
    double distance = 0;
    while (from < to) {
        double off = fabs(from - place), step = from + fmax(FADE_LEAST, FADE_PART * off);
        if (off > FADED * of->fade)
            step = from > place ? to : place - FADED * of->fade;
        step = fmin(fmax(step, from + FADE_LEAST), to);
        double left = exp(-fabs((from + step) / 2 - place) / of->fade);
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
    double age = watch->age, distance = watch->position, done = 0;
    size_t at = p->at[b];

    if (watch->outcome == CURVE_ENDLESS)
        return INFINITY;
    if (at == SIZE_MAX)
        return distance + growth_lines(&p->pooled, age + watch->refs) - growth_lines(&p->pooled, age);
    double end = bursts[b].start_refs + (double)bursts[b].references;
    while (done < watch->refs) {
        const struct place *place = &p->place[at++];
        double until = fmin(watch->refs, fmax(done, place->end - end));
        distance += met(p, place, age, done, until, place->start - end);
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
        p->place = malloc((nbursts + 1) * sizeof *p->place);
        p->at = malloc((nbursts + 1) * sizeof *p->at);
        code = p->own && p->place && p->at ? find_growths(p, bursts, nbursts) : -ENOMEM;
    }
    if (code == 0) {
        find_places(p, bursts, nbursts);
        for (size_t b = 0; b < nbursts; b++)
            for (size_t i = 0; i < bursts[b].nwatches; i++)
                *distance++ = distance_of(p, bursts, b, &bursts[b].watches[i]);
    }
    if (p)
        path_clear(p);
    free(p);
    return code < 0 ? error_set(err, code, "no memory for the watched lines of %zu bursts", nbursts) : 0;
}
