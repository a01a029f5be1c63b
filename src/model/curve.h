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
#include "base/packed-hist.h"

/* A point of a curve. low..high is a confidence interval or hard bounds; NaN where the data has no answer. */
struct curve_point {
    double size_bytes;
    double miss_ratio, low, high;
};

/*
 * Exact fully associative LRU: share of references with a stack distance >= lines, plus cold misses.
 * points[i].size_bytes is input; the rest is output. low = high = miss_ratio.
 */
int curve_exact(const struct hist *stack, uint64_t cold, unsigned line_bytes, struct curve_point *points,
                size_t n, struct error *err);

/* StatStack (docs/methods.md, section 3): from forward reuse distances and the number of dangling references.
 */
int curve_statstack(const struct hist *reuse, uint64_t dangling, unsigned line_bytes,
                    struct curve_point *points, size_t n, struct error *err);

/*
 * StatStack for one window: adds each reference that is not dangling to `expected`, at the stack distance
 * that StatStack expects. The sum over the windows of a run is a histogram that curve_exact turns into a
 * curve. Distances may be backward ones, with first touches in place of dangling references: in an interval
 * there are as many first touches as last ones.
 */
void curve_statstack_window(const struct hist *reuse, uint64_t dangling, struct hist *expected);

/* StatCache, random replacement (docs/methods.md, section 2). */
int curve_statcache(const struct hist *reuse, uint64_t dangling, unsigned line_bytes,
                    struct curve_point *points, size_t n, struct error *err);

/*
 * Replaces miss ratios and bounds by the falling ones that are nearest (least squares); monotone.c. points:
 * by increasing size. A NaN stays, and is ignored. 0, or -ENOMEM.
 */
int curve_make_monotone(struct curve_point *points, size_t n);

enum curve_outcome {
    CURVE_REUSED,   /* touched again after `refs` references */
    CURVE_CENSORED, /* observed for `refs` references and not touched; no more is known */
    CURVE_ENDLESS   /* never touched again */
};

/* A watched line: a survivor of the burst, drawn at random. */
struct curve_watch {
    double position; /* distinct lines that the burst touched after it */
    double age;      /* touches that the burst made after it */
    double refs;     /* from the burst's end to the outcome; any value if endless */
    double weight;   /* survivors that it represents; 0: the same for all of the burst */
    enum curve_outcome outcome;
    /* By so many lines its depth grew in the first tail_refs of these references, as measured; tail_refs 0:
     * it was not measured. */
    double tail_refs, tail_lines;
};

/* Reuses inside a burst by their set distance: other lines of their own set touched in between.
 * The last counter is of distances of CURVE_SETS_WAYS and more. */
#define CURVE_SETS_LEVELS 13u
#define CURVE_SETS_WAYS 32u
struct curve_sets {
    uint64_t count[CURVE_SETS_LEVELS][CURVE_SETS_WAYS + 1]; /* [l]: 2^(l + 1) sets */
};

/*
 * One burst's histograms: exact stack distances and reuse distances inside the burst; `first`: for each
 * line's first touch, the number of distinct lines before it, a lower bound of its stack distance
 * (right-censored there); `age`: touches after each line's last one. weight >= 0: references of the run that
 * the burst represents.
 */
struct curve_burst {
    struct packed_hist stack, reuse, first, age;
    uint64_t references;
    double weight;
    /* Nonzero: not a sample but all references of a part of the run, with its own number of them as weight;
     * it has no sampling error. Such bursts come after all others. */
    int certain;
    /* The weights of the bursts without this, relative to those with it, may be wrong by a common factor: the
     * standard deviation of that factor's logarithm. */
    double scale_doubt;
    /* For watched.h only: */
    uint32_t thread;   /* bursts of the same thread are on the same clock */
    double start_refs; /* its beginning on that clock, in references; NaN: not known */
    double log_rate;   /* if its weight has a measured rate in it: log(rate / mean rate); else 0 */
    const struct curve_watch *watches;
    size_t nwatches;
    const struct curve_sets *sets; /* NULL: not counted in this burst */
};

void curve_burst_clear(struct curve_burst *b); /* frees its histograms */

/*
 * From bursts without watched lines: weighted mean over bursts. Hard bounds: first touches that `first` does
 * not decide count as hits (low) or misses (high). miss_ratio: Kaplan-Meier over stack distances, censored at
 * `first`; NaN where fewer than MODEL_MIN_AT_RISK references are at risk. Sampling noise (bootstrap over
 * bursts, seeded) widens the bounds: low is the 2.5% quantile of the lower one, high the 97.5% quantile of
 * the upper one.
 */
int curve_bursts(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes, uint64_t seed,
                 struct curve_point *points, size_t n, struct error *err);
/* StatCache from the same bursts: pooled reuse distances, survivors censored at their age. */
int curve_bursts_statcache(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                           struct curve_point *points, size_t n, struct error *err);

/*
 * Stack distances of a random sample of lines (SHARDS; docs/methods.md, section 5). All distances and counts
 * are those of the sample.
 */
#define CURVE_SAMPLE_GROUPS 8u
struct curve_sample {
    double rate;      /* share of the lines that is in the sample, 0 < rate <= 1 */
    uint64_t touches; /* of all lines */
    const struct hist *stack;
    uint64_t cold;
    /* The parts of the above that belong to each of eight equal groups of lines. */
    const struct hist *group_stack[CURVE_SAMPLE_GROUPS];
    uint64_t group_cold[CURVE_SAMPLE_GROUPS];
};
/*
 * low..high: 95% confidence interval, from the differences between groups and from the sampling error of a
 * distance. For sizes that are fewer than eight lines of the sample miss_ratio, low and high are NaN.
 */
int curve_sampled(const struct curve_sample *sample, unsigned line_bytes, struct curve_point *points,
                  size_t n, struct error *err);

#endif
