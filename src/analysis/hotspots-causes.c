/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-causes.c - cold misses and evictions, by row.
 *
 * Cold misses. In full mode they are the first touches. In a burst, a line's first touch is cold or not: the
 * burst does not know what was before it. But every line has one first touch and one last touch in the run,
 * so an object has as many cold misses as it has touches after which its line is never touched again, and
 * these are seen: watched lines that nothing touched until the end. So the cold part of an object's first
 * touches that miss is estimated by the part of its watched lines that missed which were never touched again.
 * With few of these, it is shrunk towards the part of all objects: as if PRIOR more had been watched. A row
 * that touches several objects has the mean of their parts, by its first touches.
 *
 * Evictions are those that the profile has (table `cause`) at distances that miss.
 */
#include "analysis/hotspots-causes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/octaves.h"

#define PRIOR 2.

struct causes_reading {
    double lines;
    struct profile_cause *list;
    size_t n;
    struct analysis_evictions *rows; /* those of the list that miss, by unsorted row */
    size_t nrows;
    double samples;    /* effective number of watched lines that missed */
    double cold;       /* part of the misses that were cold, of all objects */
    double *of_object; /* likewise, by id */
    uint64_t most_object;
    /* of each row */
    double *replaced;    /* misses of reuses that were recorded */
    double *known_cold;  /* cold misses likewise */
    double *firsts;      /* other first touches */
    double *cold_firsts; /* of these, as far as they miss, cold ones */
};

struct causes_reading *analysis_causes_read(struct profile *p, double lines, struct error *err)
{
    struct causes_reading *c = calloc(1, sizeof *c);
    if (!c) {
        error_set(err, -ENOMEM, "out of memory for the causes of misses");
        return NULL;
    }
    c->lines = lines;
    if (profile_causes(p, &c->list, &c->n, err) == 0)
        return c;
    analysis_causes_free(c);
    return NULL;
}

void analysis_causes_free(struct causes_reading *c)
{
    if (!c)
        return;
    free(c->list);
    free(c->rows);
    free(c->of_object);
    free(c->replaced);
    free(c->known_cold);
    free(c->firsts);
    free(c->cold_firsts);
    free(c);
}

/* The part of those reuses that miss. */
static double missing_part(const struct causes_reading *c, const struct profile_cause *cause)
{
    return far_shares_part_above(octaves_bin(cause->lines), c->lines);
}

static int has_sites(const struct profile_cause *cause)
{
    return cause->victim_site <= UINT32_MAX && cause->site <= UINT32_MAX &&
           cause->victim_object <= UINT32_MAX && cause->object <= UINT32_MAX;
}

int analysis_causes_add_rows(struct causes_reading *c, struct analysis_hotspots *h,
                             struct analysis_groups *groups, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < c->n && code == 0; i++) {
        const struct profile_cause *cause = &c->list[i];
        if (!has_sites(cause) || !(missing_part(c, cause) > 0))
            continue;
        code = analysis_groups_add(h, groups, (uint32_t)cause->victim_site, (uint32_t)cause->victim_object);
        if (code == 0)
            code = analysis_groups_add(h, groups, (uint32_t)cause->site, (uint32_t)cause->object);
    }
    return code == 0 ? 0 : error_set(err, code, "out of memory for the causes of misses");
}

static void find_cold_parts(struct causes_reading *c, const struct analysis_missed *missed, size_t nmissed,
                            double *all_of)
{
    double all = 0, squares = 0, never = 0, mean;
    for (size_t i = 0; i < nmissed; i++) {
        all += missed[i].weight;
        squares += missed[i].weight * missed[i].weight;
        never += missed[i].never ? missed[i].weight : 0;
    }
    c->cold = all > 0 ? never / all : 0;
    c->samples = squares > 0 ? all * all / squares : 0;
    mean = nmissed > 0 ? all / (double)nmissed : 0;
    for (size_t i = 0; i < nmissed; i++) {
        if (missed[i].object > c->most_object)
            continue;
        all_of[missed[i].object] += missed[i].weight;
        c->of_object[missed[i].object] += missed[i].never ? missed[i].weight : 0;
    }
    for (uint64_t id = 0; id <= c->most_object; id++)
        c->of_object[id] = mean > 0 && id > 0
                               ? (c->of_object[id] + PRIOR * mean * c->cold) / (all_of[id] + PRIOR * mean)
                               : c->cold;
}

/* Which rows the causes are of. */
static int find_rows(struct causes_reading *c, const struct analysis_hotspots *h,
                     const struct analysis_groups *groups)
{
    if (!(c->rows = calloc(c->n + 1, sizeof *c->rows)))
        return -ENOMEM;
    for (size_t i = 0; i < c->n; i++) {
        const struct profile_cause *cause = &c->list[i];
        double part = missing_part(c, cause);
        if (!has_sites(cause) || !(part > 0))
            continue;
        uint32_t victim = analysis_groups_row(h, groups, (uint32_t)cause->victim_site,
                                              (uint32_t)cause->victim_object),
                 evictor = analysis_groups_row(h, groups, (uint32_t)cause->site, (uint32_t)cause->object);
        if (victim != ANALYSIS_NO_GROUP && evictor != ANALYSIS_NO_GROUP)
            c->rows[c->nrows++] = (struct analysis_evictions){victim, evictor, part * (double)cause->reuses};
    }
    return 0;
}

int analysis_causes_begin(struct causes_reading *c, struct analysis_hotspots *h,
                          const struct analysis_groups *groups, const struct analysis_missed *missed,
                          size_t nmissed, struct error *err)
{
    double *all_of;
    for (size_t i = 0; i < nmissed; i++)
        if (missed[i].object <= UINT32_MAX / 64 && missed[i].object > c->most_object)
            c->most_object = missed[i].object;
    c->of_object = calloc(c->most_object + 1, sizeof *c->of_object);
    all_of = calloc(c->most_object + 1, sizeof *all_of);
    c->replaced = calloc(h->n + 1, sizeof *c->replaced);
    c->known_cold = calloc(h->n + 1, sizeof *c->known_cold);
    c->firsts = calloc(h->n + 1, sizeof *c->firsts);
    c->cold_firsts = calloc(h->n + 1, sizeof *c->cold_firsts);
    int failed = !c->of_object || !all_of || !c->replaced || !c->known_cold || !c->firsts ||
                 !c->cold_firsts || find_rows(c, h, groups) < 0;
    if (!failed)
        find_cold_parts(c, missed, nmissed, all_of);
    free(all_of);
    return failed ? error_set(err, -ENOMEM, "out of memory for the causes of misses") : 0;
}

void analysis_causes_touches(struct causes_reading *c, uint32_t row, uint32_t object, double touches,
                             double certain, int first)
{
    if (!first) {
        c->replaced[row] += certain;
        return;
    }
    c->known_cold[row] += certain;
    c->firsts[row] += touches - certain;
    c->cold_firsts[row] += (touches - certain) * (object <= c->most_object ? c->of_object[object] : c->cold);
}

double analysis_causes_cold(const struct causes_reading *c, size_t row, double misses, double *known,
                            double *guessed)
{
    double part = c->firsts[row] > 0 ? c->cold_firsts[row] / c->firsts[row] : c->cold;
    double rest = fmax(0, misses - c->replaced[row] - c->known_cold[row]);
    *known = misses > 0 ? fmin(1, c->known_cold[row] / misses) : 0;
    *guessed = misses > 0 ? rest / misses : 0;
    return misses > 0 ? fmin(1, (c->known_cold[row] + part * rest) / misses) : 0;
}

int analysis_causes_evictions(const struct causes_reading *c, struct analysis_hotspots *h)
{
    size_t most = 0, *sorted;
    for (size_t i = 0; i < h->n; i++)
        most = h->rows[i].number > most ? h->rows[i].number : most;
    for (size_t i = 0; i < c->nrows; i++) {
        most = c->rows[i].victim > most ? c->rows[i].victim : most;
        most = c->rows[i].evictor > most ? c->rows[i].evictor : most;
    }
    for (size_t i = 0; i < c->n; i++)
        if (i == 0 || (double)c->list[i].reuses < h->sample_reuses)
            h->sample_reuses = (double)c->list[i].reuses;
    h->cold_samples = h->full ? INFINITY : c->samples;
    sorted = calloc(most + 1, sizeof *sorted); /* + 1; 0: the row is gone, as it has no references */
    h->evictions = calloc(c->nrows + 1, sizeof *h->evictions);
    if (!sorted || !h->evictions) {
        free(sorted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < h->n; i++)
        sorted[h->rows[i].number] = i + 1;
    for (size_t i = 0; i < c->nrows; i++) {
        size_t victim = sorted[c->rows[i].victim], evictor = sorted[c->rows[i].evictor];
        if (victim && evictor)
            h->evictions[h->nevictions++] =
                (struct analysis_evictions){victim - 1, evictor - 1, c->rows[i].reuses};
    }
    free(sorted);
    return 0;
}
