/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampling.h - simulation of a part of a trace: intervals (time sampling), or a part of the sets. Source:
 * MemSpy, sections 3, 6.4 and 7.3 (docs/methods.md, section 5).
 */
#ifndef CACHEGRAM_SIM_SAMPLING_H
#define CACHEGRAM_SIM_SAMPLING_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "sim/cache.h"

/* --- time samples --- */

/*
 * One LRU cache sees samples of `length` accesses, each at a random position of a `period`. At the start of a
 * sample the state of the cache is unknown. In a set of W ways, a line is known to be cached once it was
 * accessed in the sample and fewer than W other lines of the set since. Once W lines of the set were
 * accessed, any other line is known not to be cached. Accesses that neither rule decides are "unknown".
 */
struct timesample_config {
    uint64_t size_bytes;
    uint32_t ways; /* 0: fully associative */
    uint32_t line_bytes;
    uint64_t length, period; /* accesses, 1 <= length <= period; both 0: timesample_cut sets the positions */
    uint64_t seed;           /* of the positions */
};

struct timesample_result {
    uint64_t samples;  /* started */
    uint64_t accesses; /* in them: the sum of the next three */
    uint64_t hits, misses, unknown;
    uint64_t seen; /* all accesses, including skipped ones */
    /* Miss ratio if none, half or all of the unknown accesses missed. NaN if nothing was sampled. */
    double low, centre, high;
    /*
     * Wood's estimate of the share of unknown accesses that miss. A generation is the time from a known miss
     * to the known miss that replaces its line; the line is dead after its last use. dead_share: dead part of
     * all completely observed generations, NaN if there are none. mu: that times the share of the cache's
     * lines that a sample touches. miss_ratio: the ratio with mu. With fewer than one generation per line and
     * sample the estimate is unreliable.
     */
    double dead_share, touched_share, mu, miss_ratio;
    double generations; /* per line and sample */
    /* Of `centre`, from the differences between samples; NaN for fewer than two. */
    double standard_error;
};

struct timesample;
/* 0, -EINVAL or -ENOMEM. */
int timesample_new(const struct timesample_config *config, struct timesample **sample, struct error *err);
void timesample_free(struct timesample *sample); /* NULL is allowed */
/* The next n accesses of the trace, packed (cache.h), without SIM_STRADDLE. 0 or -ENOMEM. */
int timesample_run(struct timesample *sample, const uint64_t *accesses, size_t n, struct error *err);
/* With length and period 0: begins a new sample; accesses before it were skipped. */
void timesample_cut(struct timesample *sample);
struct timesample_result timesample_result(const struct timesample *sample);

/* --- set samples --- */

/*
 * A hierarchy sees only the lines of some sets, drawn at random, whose state is therefore always known. Lines
 * that share a set at any level must all be in the sample or all not, so the draw is among the remainders of
 * the line divided by the greatest common divisor of the levels' set counts.
 */
struct setsample_result {
    uint64_t accesses, misses; /* simulated ones */
    double miss_ratio;         /* NaN for no accesses */
    double standard_error;     /* from the differences between sets; NaN for fewer than two groups */
};

struct setsample;
/*
 * share: of the sets, above 0, at most 1; at least two groups are drawn. 0, -EINVAL (too few sets), -ENOMEM.
 */
int setsample_new(const struct sim_config *config, double share, struct setsample **sample,
                  struct error *err);
void setsample_free(struct setsample *sample); /* NULL is allowed */
int setsample_run(struct setsample *sample, uint32_t core, const uint64_t *accesses, size_t n,
                  struct error *err);
/* Result of a level, all cores together. */
struct setsample_result setsample_result(const struct setsample *sample, uint32_t level);
double setsample_share(const struct setsample *sample);          /* as drawn */
const struct sim *setsample_sim(const struct setsample *sample); /* counts of the simulated part */

#endif
