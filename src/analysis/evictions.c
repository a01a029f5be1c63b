/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evictions.c - the matrix of victims and evictors.
 *
 * A miss on a line that was touched before happens because at least as many other lines as the cache has were
 * touched in between: these evicted it. The recorder draws one of them for a sample of reuses, with equal
 * probability, so the share of an evictor in a victim's misses is its share in the samples at distances that
 * miss. Where a victim has fewer than LEAST_SAMPLES, since its reuses span bursts, what was touched in
 * between is taken to be what the program fetches at all: evictors have the shares that they have in all
 * misses.
 */
#include "analysis/evictions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"

#define LEAST_SAMPLES 8
#define LEAST_EVICTOR 0.01

static int compare_pairs(const void *a, const void *b)
{
    const struct analysis_evictions *x = a, *y = b;
    if (x->victim != y->victim)
        return x->victim < y->victim ? -1 : 1;
    return x->evictor < y->evictor ? -1 : x->evictor > y->evictor;
}

/* Sums equal pairs, sorted by victim. Returns their number. */
static size_t sum_pairs(struct analysis_evictions *list, size_t n)
{
    size_t used = 0;
    if (n > 0)
        qsort(list, n, sizeof *list, compare_pairs);
    for (size_t i = 0; i < n; i++) {
        if (used > 0 && compare_pairs(&list[used - 1], &list[i]) == 0)
            list[used - 1].reuses += list[i].reuses;
        else
            list[used++] = list[i];
    }
    return used;
}

static int compare_causes(const void *a, const void *b)
{
    const struct analysis_cause *x = a, *y = b;
    return x->share < y->share ? 1 : -(x->share > y->share);
}

static int add(struct analysis_causes *c, size_t *capacity, const struct analysis_cause *cause)
{
    if (!(cause->share > 0))
        return 0;
    if (ARRAY_GROW(c->list, c->n, *capacity) < 0)
        return -ENOMEM;
    c->list[c->n++] = *cause;
    return 0;
}

/* Part of the misses of which it may be unknown whether they are cold. */
#define MOST_GUESSED 0.05

/* Evictors of a victim whose own are not known; those with less than a hundredth of the misses are left
 * out. */
static int add_usual(struct analysis_causes *c, size_t *capacity, const struct analysis_hotspot *victim,
                     double share)
{
    double sum = 0;
    int code = 0;
    for (size_t i = 0; i < c->h.n; i++)
        sum += c->h.rows[i].shares.misses_share >= LEAST_EVICTOR ? c->h.rows[i].shares.misses_share : 0;
    for (size_t i = 0; i < c->h.n && code == 0 && sum > 0; i++) {
        double part = c->h.rows[i].shares.misses_share;
        if (part >= LEAST_EVICTOR)
            code = add(c, capacity, &(struct analysis_cause){victim, &c->h.rows[i], share * part / sum, 0});
    }
    return code;
}

/* The part of all misses that are cold; NaN: not known. */
static double cold_part(const struct analysis_hotspots *h)
{
    double cold = 0, guessed = 0;
    for (size_t i = 0; i < h->n; i++) {
        cold += h->rows[i].shares.misses_share * h->rows[i].cold;
        guessed += h->rows[i].shares.misses_share * h->rows[i].cold_guessed;
    }
    return h->cold_samples < ANALYSIS_COLD_LEAST && guessed > MOST_GUESSED ? NAN : cold;
}

static int fill(struct analysis_causes *c)
{
    struct analysis_hotspots *h = &c->h;
    size_t capacity = 0, at = 0;
    int code = 0;
    h->nevictions = sum_pairs(h->evictions, h->nevictions);
    c->cold = cold_part(h);
    for (size_t i = 0; i < h->n && code == 0; i++) {
        const struct analysis_hotspot *victim = &h->rows[i];
        double share = victim->shares.misses_share, sum = 0;
        double cold = isnan(c->cold) ? victim->cold_known : victim->cold;
        size_t end = at;
        for (; end < h->nevictions && h->evictions[end].victim == i; end++)
            sum += h->evictions[end].reuses;
        code = add(c, &capacity, &(struct analysis_cause){victim, NULL, share * cold, 0});
        if (code == 0 && (sum <= 0 || sum < LEAST_SAMPLES * h->sample_reuses))
            code = add_usual(c, &capacity, victim, share * (1 - cold));
        else
            for (size_t k = at; k < end && code == 0; k++)
                code = add(c, &capacity,
                           &(struct analysis_cause){victim, &h->rows[h->evictions[k].evictor],
                                                    share * (1 - cold) * h->evictions[k].reuses / sum,
                                                    h->evictions[k].reuses});
        at = end;
    }
    if (code == 0 && c->n > 0)
        qsort(c->list, c->n, sizeof *c->list, compare_causes);
    return code;
}

int analysis_causes(struct profile *p, const char *name, const struct analysis_hotspots_question *question,
                    struct analysis_causes *causes, struct error *err)
{
    struct analysis_hotspots_question q = *question;
    *causes = (struct analysis_causes){0};
    q.causes = 1;
    int code = analysis_hotspots(p, name, &q, &causes->h, err);
    if (code != 0)
        return code;
    if ((code = fill(causes)) != 0) {
        analysis_causes_clear(causes);
        return error_set(err, code, "out of memory for the causes of misses");
    }
    return 0;
}

void analysis_causes_clear(struct analysis_causes *causes)
{
    analysis_hotspots_clear(&causes->h);
    free(causes->list);
    causes->list = NULL;
    causes->n = 0;
}
