/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phases-chains.c - joins windows of a thread that follow each other and are alike. 16 samples of a program
 * with many hot places look different each time, and noise that is removed hides differences as well. So
 * neighbours are joined, the most similar ones before others, as long as chance explains their differences:
 * chains of windows have many samples and several bursts. Windows with all of their code stay as they are.
 *
 * Example: three windows with 16 samples each, of two places of code: 8 and 8, 10 and 6, 0 and 16. The first
 * two differ less than samples of the same code do in the mean, and become one of 32 samples. The third
 * differs from that by 13 standard deviations more.
 */
#include "model/phases-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LN_2 0.693147180559945
/* Standard deviations of chance that a difference between neighbours must exceed. */
#define LIKELY 3

size_t phases_before(const struct phases_work *work, size_t i, int with_data)
{
    for (size_t k = i; k-- > 0;)
        if (phases_is_used(&work->w[k]) && work->w[k].thread == work->w[i].thread &&
            (!with_data || work->w[k].kind == work->w[i].kind))
            return k;
    return work->n;
}

size_t phases_after(const struct phases_work *work, size_t i)
{
    for (size_t k = i + 1; k < work->n; k++)
        if (phases_is_used(&work->w[k]) && work->w[k].thread == work->w[i].thread)
            return k;
    return work->n;
}

/* A chain of windows of one thread. */
struct chain {
    double counts[PHASES_CODE], samples;
    double x_log_x; /* sum over all places */
    double bursts, data[PHASES_DATA], weight;
    size_t next;     /* chain of the same thread, n: none */
    double unlikely; /* that the next one is of the same phase; INFINITY: there is no next one */
    size_t into;     /* joined to; itself if it was not */
};

static double x_log_x(double x)
{
    return x > 0 ? x * log(x) : 0;
}

/*
 * How many standard deviations the difference of two chains exceeds what samples of the same code give: for
 * the statistic G = 2 sum(observed ln(observed / expected)), whose mean is about the number of places less
 * one, at most 2 ln 2 times as much where all counts are small, and whose variance is twice that number. Data
 * count likewise, relative to the noise of their bursts.
 */
static double unlikeliness(const struct chain *a, const struct chain *b, double burst_noise)
{
    double sum = 0, places = -1, all = a->samples + b->samples, of_data = 0;
    for (unsigned i = 0; i < PHASES_CODE; i++) {
        double x = a->counts[i] + b->counts[i];
        if (x > 0) {
            sum += x * log(x);
            places++;
        }
    }
    double g = 2 * (a->x_log_x + b->x_log_x - sum - x_log_x(a->samples) - x_log_x(b->samples) + x_log_x(all));
    if (a->bursts > 0 && b->bursts > 0 && burst_noise > 0)
        of_data = LIKELY * phases_data_distance(a->data, b->data) /
                  (burst_noise * sqrt(1 / a->bursts + 1 / b->bursts));
    return fmax(of_data, places > 0 ? (g - 2 * LN_2 * places) / sqrt(2 * places) : 0);
}

static void append(struct chain *a, const struct chain *b)
{
    a->x_log_x = 0;
    for (unsigned i = 0; i < PHASES_CODE; i++) {
        a->counts[i] += b->counts[i];
        a->x_log_x += x_log_x(a->counts[i]);
    }
    a->samples += b->samples;
    if (b->bursts > 0)
        phases_add_to_mean(a->data, b->data, PHASES_DATA, a->bursts, b->bursts);
    a->bursts += b->bursts;
    a->weight += b->weight;
    a->next = b->next;
}

static void make_chains(const struct phases_work *work, struct chain *chains)
{
    for (size_t i = 0; i < work->n; i++) {
        const struct phases_window *w = &work->w[i];
        struct chain *c = &chains[i];
        c->next = work->n;
        c->unlikely = INFINITY;
        c->into = i;
        if (!phases_is_used(w) || isinf(w->samples))
            continue;
        c->samples = w->samples;
        c->weight = w->weight;
        for (unsigned k = 0; k < PHASES_CODE; k++) {
            c->counts[k] = w->code[k] * w->samples;
            c->x_log_x += x_log_x(c->counts[k]);
        }
        if (w->kind == PHASES_SAMPLED) {
            c->bursts = fmax(1, w->bursts);
            memcpy(c->data, w->data, sizeof c->data);
        }
        size_t k = phases_before(work, i, 0);
        if (k == work->n || isinf(work->w[k].samples))
            continue;
        chains[k].next = i;
        chains[k].unlikely = unlikeliness(&chains[k], c, work->noise[PHASES_SAMPLED]);
    }
}

/* Joins neighbours, those first that are most alike. */
static void join_chains(const struct phases_work *work, struct chain *chains)
{
    double noise = work->noise[PHASES_SAMPLED];
    for (;;) {
        size_t a = 0, last = work->n;
        for (size_t i = 1; i < work->n; i++)
            if (chains[i].unlikely < chains[a].unlikely)
                a = i;
        if (work->n == 0 || !(chains[a].unlikely < LIKELY))
            return;
        struct chain *b = &chains[chains[a].next];
        b->into = a;
        b->unlikely = INFINITY;
        append(&chains[a], b);
        for (size_t i = 0; i < a; i++)
            if (chains[i].into == i && chains[i].next == a)
                last = i;
        if (last < work->n)
            chains[last].unlikely = unlikeliness(&chains[last], &chains[a], noise);
        chains[a].unlikely =
            chains[a].next < work->n ? unlikeliness(&chains[a], &chains[chains[a].next], noise) : INFINITY;
    }
}

/* One window for each chain. Returns their number. */
static size_t collect_chains(const struct phases_work *work, const struct chain *chains,
                             struct phases_window *more, size_t *into)
{
    size_t n = 0;
    for (size_t i = 0; i < work->n; i++) {
        const struct chain *c = &chains[i];
        size_t root = i;
        while (chains[root].into != root)
            root = chains[root].into;
        if (root != i) {
            into[i] = into[root];
            continue;
        }
        into[i] = n;
        more[n] = work->w[i];
        if (c->samples > work->w[i].samples) {
            more[n].samples = c->samples;
            more[n].weight = c->weight;
            for (unsigned k = 0; k < PHASES_CODE; k++)
                more[n].code[k] = c->counts[k] / c->samples;
            more[n].kind = c->bursts > 0 ? PHASES_SAMPLED : PHASES_NO_DATA;
            more[n].bursts = c->bursts;
            memcpy(more[n].data, c->data, sizeof c->data);
        }
        n++;
    }
    return n;
}

int phases_join_neighbours(struct phases_work *work, struct phases_window *more, size_t *into)
{
    struct chain *chains = calloc(work->n + 1, sizeof *chains);
    if (!chains)
        return -ENOMEM;
    make_chains(work, chains);
    join_chains(work, chains);
    work->n = collect_chains(work, chains, more, into);
    work->w = more;
    free(chains);
    return 0;
}
