/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bursts-weigh.c - how many references of the run each burst represents. A burst represents the CPU time
 * around it, times the rate at which the program made references there. That rate was measured just before
 * the burst and may be wrong by chance, or because the code was new, so it is bounded first. If a part of the
 * run was recorded completely, or counted, weights become absolute: bursts of the counted part represent the
 * references that were counted there, the others for their CPU time times a rate.
 *
 * Example: 3e9 references were counted, with four bursts; the rest took 2 s, with six bursts of equal weight,
 * at 1.5e9 references a second. The four get 0.75e9 each, the six 0.5e9 each.
 */
#include "analysis/bursts-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/rates.h"

/* New blocks of a burst from which on its code is cold. Other programs have as many in few bursts. */
#define COLD_BLOCKS 256

/* Whether the rates before the burst were measured, if at all, in code of which much was not translated yet.
 */
static int is_cold(const struct profile_burst *b)
{
    return isnan(b->start_refs) && b->new_blocks >= COLD_BLOCKS;
}

/*
 * A program that executes other code all the time, as compilers do, is counted in code that was translated a
 * moment ago and is in none of the processor's caches: at 0.07 to 0.7 references per ns before eight bursts
 * of cc1plus, whose mean is 1.9, and often the stretch ends before anything was timed. Where most bursts are
 * such, they take the mean rate of the counted part. (cc1plus, 8.9e9 references, six recordings: 1.6e9
 * to 13.6e9 estimated, and now 7.1e9 to 8.8e9. Mean error of the curve over 1-16 KB 0.74 points, and now
 * 0.62; over 32 KB to 8 MB 0.20 and 0.18.)
 */
static void replace_cold_rates(struct loaded *l)
{
    size_t timed = 0, cold = 0;
    for (size_t i = 0; i < l->nlist; i++) {
        timed += isnan(l->list[i].start_refs) != 0;
        cold += (size_t)is_cold(&l->list[i]);
    }
    for (size_t i = 0; i < l->nlist && 2 * cold > timed && l->counted_per_ns > 0; i++)
        if (is_cold(&l->list[i])) {
            l->list[i].near_per_ns = NAN;
            l->list[i].refs_per_ns = l->counted_per_ns;
        }
}

/* Distinct lines that the burst touched, for each of its references; 0: not known, or not placed by time. */
static double lines_each(const struct profile_burst *b)
{
    return isnan(b->start_refs) && b->references > 0 ? (double)b->lines / (double)b->references : 0;
}

/* Bounds the rates that weight bursts, so that no single burst gets half of the total weight by chance, and
 * fills in missing ones. */
static int bound_weights(struct loaded *l, struct error *err)
{
    struct rates_pair *pairs = calloc(l->nlist + 1, sizeof *pairs);
    if (!pairs)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    for (size_t i = 0; i < l->nlist; i++)
        pairs[i] =
            (struct rates_pair){l->list[i].near_per_ns, l->list[i].refs_per_ns, lines_each(&l->list[i])};
    int code = rates_bound(pairs, l->nlist);
    if (code == 0)
        code = rates_fill(pairs, l->nlist);
    if (code < 0)
        error_set(err, code, "out of memory computing the curve");
    for (size_t i = 0; i < l->nlist; i++) {
        l->list[i].near_per_ns = pairs[i].near_per_ns;
        l->list[i].refs_per_ns = pairs[i].refs_per_ns;
    }
    free(pairs);
    return code;
}

double loaded_weight_rate(const struct profile_burst *b)
{
    return isnan(b->near_per_ns) ? b->refs_per_ns : b->near_per_ns;
}

/*
 * Hits within string instructions are stored by step of the counting stretch. Where such an instruction took
 * most of the stretch, there were few steps, with many hits each. If the burst is weighted by a higher rate,
 * so many hits for each of more steps would take more time than there is. So their number by time is kept.
 * (One burst of brotli had more hits than the whole run.)
 */
static void scale_string_hits(struct profile_burst *b)
{
    if (isnan(b->start_refs) && b->refs_per_ns > 0 && loaded_weight_rate(b) > 0)
        b->string_hits *= b->refs_per_ns / loaded_weight_rate(b);
}

int loaded_rates(struct loaded *l, struct error *err)
{
    replace_cold_rates(l);
    int code = bound_weights(l, err);
    for (size_t i = 0; code == 0 && i < l->nlist; i++)
        scale_string_hits(&l->list[i]);
    return code;
}

double positive_number(struct profile *p, const char *key)
{
    double value;
    return profile_get_number(p, key, &value, NULL) == 0 && value > 0 && isfinite(value) ? value : 0;
}

double loaded_weight(const struct loaded *l, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += l->bursts[i].weight;
    return sum;
}

/* Scales the weights of the bursts that are counted, or not, to that sum; all: of both kinds. */
static void scale_weights(struct loaded *l, size_t n, int counted, int all, double references)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += all || l->times[i].counted == counted ? l->bursts[i].weight : 0;
    for (size_t i = 0; i < n && sum > 0; i++)
        if (all || l->times[i].counted == counted)
            l->bursts[i].weight *= references / sum;
}

/* Weight of the bursts that were placed by CPU time. */
static double timed_weight(const struct loaded *l, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += l->times[i].counted ? 0 : l->bursts[i].weight;
    return sum;
}

/*
 * Scales the weights of bursts relative to each other and to the part in full mode: those in the counted part
 * to the number of its references, the others to their CPU time, rest_ns, times a rate. That is the mean of
 * the measured rate and of a typical one, or that of the counted part. A part without bursts is represented
 * by the other's.
 */
static void scale_parts(struct loaded *l, size_t n, double rest_ns, int has_rates)
{
    int knows = l->counted_per_ns > 0;
    double typical = knows ? l->counted_per_ns : REST_REFS_PER_NS,
           doubt = knows ? REST_MEASURED_DOUBT : REST_DOUBT;
    double timed = timed_weight(l, n), counted = loaded_weight(l, n) - timed,
           share = rest_ns / (rest_ns + REST_COLD_NS),
           per_ns = timed > 0 && rest_ns > 0 ? timed / rest_ns : 0;
    if (!(per_ns > 0) || !has_rates)
        per_ns = typical, share = 0;
    double rest = rest_ns * exp(share * log(per_ns) + (1 - share) * log(typical));
    doubt = share * REST_MEASURED_DOUBT + (1 - share) * doubt;
    if (isnan(rest_ns)) { /* the weights are references already, by the time from one burst to the next */
        rest = timed;
        doubt = REST_MEASURED_DOUBT;
    }
    if (timed > 0 && counted > 0) {
        scale_weights(l, n, 1, 0, l->counted_references);
        scale_weights(l, n, 0, 0, rest);
        for (size_t i = 0; i < n; i++)
            l->bursts[i].scale_doubt = l->times[i].counted ? doubt : 0;
    } else {
        scale_weights(l, n, 0, 1, l->counted_references + rest);
        doubt *= rest > 0 ? rest / (l->counted_references + rest) : 0;
    }
    l->bursts[n].scale_doubt = doubt;
}

/* Weights of bursts that were placed by CPU time, but whose rates are not known, are relative: scales them to
 * that time at a typical rate. */
static void scale_without_rates(struct profile *p, struct loaded *l, size_t n)
{
    double seconds = positive_number(p, "sampled_cpu_seconds");
    for (size_t i = 0; i < n; i++)
        if (!isnan(l->bursts[i].start_refs))
            return;
    if (seconds > 0)
        scale_weights(l, n, 0, 1, seconds * 1e9 * REST_REFS_PER_NS);
}

/* rest_ns: the CPU time that the bursts represent that were placed by it; NaN: not known. */
static void scale_rest(struct profile *p, struct loaded *l, double rest_ns,
                       const struct analysis_curve *curve)
{
    char clock[16];
    double counted;
    if (l->parts == 0 || profile_get(p, "clock", clock, sizeof clock, NULL) != 0 || strcmp(clock, "pmu") == 0)
        return;
    if (strcmp(clock, "count-always") == 0) { /* the weights are references, but some strata had no burst */
        if (profile_get_number(p, "clock_references", &counted, NULL) == 0 &&
            counted > (double)curve->full_references)
            scale_weights(l, curve->bursts, 0, 1, counted - (double)curve->full_references);
        return;
    }
    if (rest_ns > 0 || l->counted_references > 0)
        scale_parts(l, curve->bursts, rest_ns, strcmp(clock, "count") == 0);
}

int loaded_weigh(struct profile *p, struct loaded *l, uint32_t tid, const struct analysis_curve *curve,
                 double *rest_ns, struct error *err)
{
    if (tid || profile_get_number(p, "rest_cpu_seconds", rest_ns, NULL) != 0)
        *rest_ns = NAN; /* not known for a thread alone, nor if the recorder was killed */
    *rest_ns *= 1e9;
    int weighted = curve_weight_by_time(l->bursts, l->times, curve->bursts, *rest_ns);
    if (weighted < 0)
        return error_set(err, -ENOMEM, "out of memory computing the weights of bursts");
    if (weighted == 0 && l->parts == 0)
        scale_without_rates(p, l, curve->bursts);
    if (!tid)
        scale_rest(p, l, *rest_ns, curve);
    struct error why;
    return curve_check_watched(l->bursts, curve->bursts + l->parts, &why) == 0
               ? 0
               : profile_damaged(p, err, "%s", why.text);
}
