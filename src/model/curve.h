/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve.h - miss ratio as a function of cache size, from histograms. Pure: no files, no globals.
 */
#ifndef CACHEGRAM_CURVE_H
#define CACHEGRAM_CURVE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"

/* A point of a curve. low..high is a band or hard bounds; NaN where the data carries no answer. */
struct curve_point {
    double size_bytes;
    double miss_ratio, low, high;
};

/*
 * Exact fully associative LRU: share of references whose stack distance is >= lines, plus cold.
 * points[i].size_bytes is given; the rest is filled. low = high = miss_ratio.
 */
int curve_exact(const struct hist *stack, uint64_t cold, unsigned line_bytes, struct curve_point *points,
                size_t n, struct error *err);

/* StatStack (Eklov & Hagersten 2010; METHODS.md 3): from forward reuse distances and the number of
 * dangling references. */
int curve_statstack(const struct hist *reuse, uint64_t dangling, unsigned line_bytes,
                    struct curve_point *points, size_t n, struct error *err);

/*
 * StatStack for one window: adds its references but the dangling ones to `expected`, by the stack distance
 * that StatStack expects for theirs. The windows of a run, each with a distribution of its own, thus make a
 * histogram that curve_exact turns into a curve. Distances may be backward ones (with first touches for
 * dangling references): what is true of the last touches in an epoch is true of the first.
 */
void curve_statstack_window(const struct hist *reuse, uint64_t dangling, struct hist *expected);

/* StatCache (METHODS.md 2), random replacement. */
int curve_statcache(const struct hist *reuse, uint64_t dangling, unsigned line_bytes,
                    struct curve_point *points, size_t n, struct error *err);

enum curve_outcome {
    CURVE_REUSED,   /* touched again after `refs` references */
    CURVE_CENSORED, /* not yet touched after `refs` references; no more is known */
    CURVE_ENDLESS   /* never touched again */
};

/* A random survivor of a burst: the last touch of a line in it. */
struct curve_watch {
    double position; /* distinct lines that the burst touched after it */
    double age;      /* touches that the burst made after it */
    double refs;     /* from the burst's end to the outcome; any value if endless */
    double weight;   /* survivors that it stands for; 0: as many as the burst's others */
    enum curve_outcome outcome;
};

/* Reuses inside a burst by the number of other lines of their own set touched since; CURVE_SETS_WAYS: or
 * more.
 */
#define CURVE_SETS_LEVELS 13u
#define CURVE_SETS_WAYS 32u
struct curve_sets {
    uint64_t count[CURVE_SETS_LEVELS][CURVE_SETS_WAYS + 1]; /* [l]: 2^(l + 1) sets */
};

/*
 * One burst's histograms: exact in-burst stack distances, in-burst reuse distances, and `first`: for
 * each line's first touch in the burst, the number of distinct lines before it, which its true stack
 * distance is known to reach (right-censored there). weight >= 0: references it stands for.
 */
struct curve_burst {
    struct hist stack, reuse, first, age;
    uint64_t references;
    double weight;
    /* For watched.h only: */
    uint32_t thread;    /* bursts of the same thread are on the same clock */
    double start_refs;  /* its beginning on that clock, in references; NaN: not known */
    double log_rate;    /* if its weight is by a measured rate: logarithm of that over the average; else 0 */
    double persistence; /* references over which the program goes on as it is here; not above 0: not known */
    const struct curve_watch *watches;
    size_t nwatches;
    const struct curve_sets *sets; /* NULL: this burst did not look */
};

/*
 * What bursts alone carry: weighted mean over bursts. Hard bounds: unknown first touches count as hits
 * (low) or misses (high) wherever `first` does not decide. Centre: Kaplan-Meier over stack distances with
 * `first` as censored. Where no burst reaches the size (fewer than min_at_risk references at risk),
 * miss_ratio is NaN and the bounds stand. Sampling noise between bursts (bootstrap, seeded) widens the
 * bounds: low is its 2.5% quantile of the lower, high the 97.5% of the upper.
 */
int curve_bursts(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes, uint64_t seed,
                 struct curve_point *points, size_t n, struct error *err);
/* StatCache from the same bursts: pooled reuse distances, survivors (age) censored by Kaplan-Meier. */
int curve_bursts_statcache(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                           struct curve_point *points, size_t n, struct error *err);

/*
 * Stack distances of a random sample of lines (SHARDS: Waldspurger et al. 2015, with the adjustment of their
 * section 3.2): all distances and counts are those of the sample.
 */
#define CURVE_SAMPLE_GROUPS 8u
struct curve_sample {
    double rate;      /* share of the lines that is in the sample, 0 < rate <= 1 */
    uint64_t touches; /* of all lines */
    const struct hist *stack;
    uint64_t cold;
    /* The share that the lines of each of eight equal parts of the sample have in those. */
    const struct hist *group_stack[CURVE_SAMPLE_GROUPS];
    uint64_t group_cold[CURVE_SAMPLE_GROUPS];
};
/*
 * low..high: 95% band, by what the groups differ and by how exactly the sample tells a distance. Sizes of
 * which the sample holds fewer than eight lines have no answer: miss_ratio, low and high are NaN.
 */
int curve_sampled(const struct curve_sample *sample, unsigned line_bytes, struct curve_point *points,
                  size_t n, struct error *err);

#endif
