/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ways.c - from the fully associative curve to that of a set-associative cache.
 *
 * Problem. In a cache of S sets and A ways a line is lost when A others of its own set were touched, which
 * may be long before S A lines were (conflicts), or later. It depends on addresses, not on stack distances.
 *
 * Method. The fully associative curve is corrected by two differences.
 *
 *  - Inside bursts: in some bursts the set distance of each reuse is counted (sim/setdist.h). The correction
 *    is the number of their reuses that miss with sets less the number that miss without. That difference
 *    varies less from burst to burst than either number, so a few bursts suffice.
 *  - Survivors: the stack distance of a watched line's reuse was estimated (path.c) as x lines, which are
 *    assumed to fall into sets at random: the line is lost with the probability that A or more of them fall
 *    into its own set (Hill & Smith 1989; docs/methods.md, section 5), Poisson with mean x / S. The
 *    correction is that probability, less 1 if x >= S A.
 *
 * Conflicts are therefore modelled within a burst's reach only, not those of regular strides beyond it.
 *
 * Example: 2 ways, 4 sets, and x = 8: the mean is 2, and 1 - (1 + 2) exp(-2) = 0.59 are lost instead of 1.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/watched-internal.h"

/* Probability that a Poisson number of that mean is at least `ways`. */
static double poisson_at_least(double mean, unsigned ways)
{
    double term = exp(-mean), below = 0;

    if (!(mean < 700)) /* exp would underflow; 32 or more are certain */
        return 1;
    for (unsigned k = 0; k < ways; k++) {
        below += term;
        term *= mean / (k + 1);
    }
    return fmax(0, 1 - below);
}

/* log2 of the number of sets; negative if it is not a power of two. */
static int level_of(double lines, unsigned ways)
{
    double sets = lines / ways;
    int level = 0;

    while (sets > 1) {
        sets /= 2;
        level++;
    }
    return sets == 1 ? level : -1;
}

struct correction {
    double mean, sd;
};

/* Reuses of a burst that miss with sets, less those that miss in a fully associative cache; weighted. */
static double change_of(const struct curve_burst *burst, unsigned level, unsigned ways, double lines)
{
    double missing = 0;

    for (unsigned d = ways; d <= CURVE_SETS_WAYS; d++)
        missing += (double)burst->sets->count[level - 1][d];
    return watched_share(burst) * (missing - packed_hist_at_least(&burst->stack, lines));
}

/* Correction per reference from the bursts that have set distances; NaN if none has. */
static struct correction inside_bursts(const struct curve_burst *bursts, size_t nbursts, unsigned level,
                                       unsigned ways, double lines)
{
    double total = 0, sum = 0, squares = 0;

    for (size_t b = 0; b < nbursts; b++) {
        if (!bursts[b].sets || watched_share(&bursts[b]) <= 0)
            continue;
        total += bursts[b].weight;
        sum += change_of(&bursts[b], level, ways, lines);
    }
    if (total <= 0)
        return (struct correction){NAN, NAN};
    for (size_t b = 0; b < nbursts; b++) {
        if (!bursts[b].sets || watched_share(&bursts[b]) <= 0)
            continue;
        double difference = change_of(&bursts[b], level, ways, lines) - bursts[b].weight * sum / total;
        squares += difference * difference;
    }
    return (struct correction){sum / total, sqrt(squares) / total};
}

/* Correction per reference from the watched lines, sorted by distance. Kaplan-Meier gives each its share. */
static double outside_bursts(const struct watched_seen *seen, size_t n, double survivors, double sets,
                             unsigned ways, double lines)
{
    double risk = 0, alive = 1, sum = 0;

    for (size_t i = 0; i < n; i++)
        risk += seen[i].weight;
    for (size_t i = 0; i < n && risk > 0; i++) {
        double part = seen[i].censored ? 0 : alive * fmin(1, seen[i].weight / risk);
        risk -= seen[i].weight;
        alive -= part;
        if (isfinite(seen[i].distance))
            sum += part * (poisson_at_least(seen[i].distance / sets, ways) - (seen[i].distance >= lines));
    }
    return survivors * sum;
}

static struct watched_seen *list_seen(const struct curve_burst *bursts, size_t nbursts, size_t *n,
                                      double *survivors)
{
    double total = 0, left = 0;
    size_t watches = 0;

    for (size_t b = 0; b < nbursts; b++) {
        double share = watched_share(&bursts[b]);
        watches += bursts[b].nwatches;
        total += share * (double)bursts[b].references;
        left += share * (double)bursts[b].first.total;
    }
    double *distance = malloc((watches + 1) * sizeof *distance);
    struct watched_seen *seen = malloc((watches + 1) * sizeof *seen);
    if (!distance || !seen || watched_distances(bursts, nbursts, distance, NULL) < 0) {
        free(distance);
        free(seen);
        return NULL;
    }
    *n = watched_list(bursts, nbursts, distance, seen);
    free(distance);
    *survivors = total > 0 ? left / total : 0;
    return seen;
}

int curve_ways(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes, unsigned ways,
               uint64_t seed, struct curve_point *points, size_t n, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);

    if (code < 0)
        return code;
    if (ways < 1 || ways > CURVE_SETS_WAYS)
        return error_set(err, -EINVAL, "%u ways: must be 1 to %u", ways, CURVE_SETS_WAYS);
    for (size_t i = 0; i < n; i++)
        if (level_of(points[i].size_bytes / line_bytes, ways) < 0)
            return error_set(
                err, -EINVAL,
                "a cache of %.0f bytes, %u ways and %u-byte lines has %g sets: they must be a power "
                "of two",
                points[i].size_bytes, ways, line_bytes, points[i].size_bytes / line_bytes / ways);
    code = curve_watched(bursts, nbursts, line_bytes, seed, points, n, err);
    if (code < 0)
        return code;
    size_t nseen;
    double survivors;
    struct watched_seen *seen = list_seen(bursts, nbursts, &nseen, &survivors);
    if (!seen)
        return error_set(err, -ENOMEM, "out of memory for the curve of %zu bursts", nbursts);
    for (size_t i = 0; i < n; i++) {
        double lines = model_lines(&points[i], line_bytes);
        int level = level_of(lines, ways);
        struct correction correction = {0, 0};
        if (level == 0) /* one set: fully associative */
            continue;
        if (level <= (int)CURVE_SETS_LEVELS)
            correction = inside_bursts(bursts, nbursts, (unsigned)level, ways, lines);
        correction.mean += outside_bursts(seen, nseen, survivors, lines / ways, ways, lines);
        double centre = points[i].miss_ratio;
        double from = isnan(centre) ? points[i].low : centre, to = isnan(centre) ? points[i].high : centre;
        /* The wider side of the interval: the other may have been clipped at 0 or 1. */
        double half = hypot(fmax(from - points[i].low, points[i].high - to), 2 * correction.sd);
        points[i].low = fmin(1, fmax(0, from + correction.mean - half));
        points[i].high = fmax(0, fmin(1, to + correction.mean + half));
        points[i].miss_ratio = isnan(centre) ? NAN : fmin(1, fmax(0, centre + correction.mean));
        if (isnan(correction.mean)) /* fmin and fmax do not propagate NaN */
            model_set_point(&points[i], NAN);
    }
    free(seen);
    return 0;
}
