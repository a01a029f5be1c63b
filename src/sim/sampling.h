/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampling.h - simulating part of a trace: stretches of it (time sampling), or part of the sets.
 * Source: MemSpy, sections 3, 6.4 and 7.3 (docs/methods.md, section 5).
 */
#ifndef CACHEGRAM_SIM_SAMPLING_H
#define CACHEGRAM_SIM_SAMPLING_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "sim/cache.h"

/* --- stretches of time --- */

/*
 * One LRU cache sees stretches of `length` accesses, one at a random place in every `period`. At the start of
 * a stretch nothing is known of the cache. In a set of W ways a line is known to be cached once it
 * was accessed in the stretch and fewer than W others of the set since; once W lines of the set were
 * accessed, a line that is not known to be cached is known not to be. Accesses that neither rule decides are
 * "unknown".
 */
struct timesample_config {
    uint64_t size_bytes;
    uint32_t ways; /* 0: fully associative */
    uint32_t line_bytes;
    uint64_t length, period; /* accesses, 1 <= length <= period; both 0: timesample_cut gives the places */
    uint64_t seed;           /* of the places */
};

struct timesample_result {
    uint64_t samples;  /* stretches begun */
    uint64_t accesses; /* in them: the sum of the next three */
    uint64_t hits, misses, unknown;
    uint64_t seen; /* all accesses, skipped ones included */
    /* Miss ratio if no, half of the, or all unknown accesses missed. NaN where nothing was sampled. */
    double low, centre, high;
    /*
     * Wood's estimate of the share of unknown accesses that miss. A generation is the time from a known miss
     * to the known miss that replaces its line; the line is dead after its last use. dead_share is the dead
     * part of all generations that were seen whole, NaN if none was; mu that times the share of the cache's
     * lines that a sample touches; miss_ratio the ratio with mu. Few generations a line and sample (below
     * one): do not trust it.
     */
    double dead_share, touched_share, mu, miss_ratio;
    double generations; /* a line and sample */
    /* Of `centre`, from how samples differ; NaN for fewer than two. */
    double standard_error;
};

struct timesample;
/* 0, -EINVAL or -ENOMEM. */
int timesample_new(const struct timesample_config *config, struct timesample **sample, struct error *err);
void timesample_free(struct timesample *sample); /* NULL is allowed */
/* The next n accesses of the trace, packed (cache.h), without SIM_STRADDLE. 0 or -ENOMEM. */
int timesample_run(struct timesample *sample, const uint64_t *accesses, size_t n, struct error *err);
/* With length and period 0: a new stretch begins here, something was left out before it. */
void timesample_cut(struct timesample *sample);
struct timesample_result timesample_result(const struct timesample *sample);

/* --- part of the sets --- */

/*
 * A hierarchy sees only the lines that fall into some sets, drawn at random, and knows their state always.
 * Lines that share a set at one level must all be in the sample or not, at every level, so what is drawn are
 * remainders of the line by the greatest common divisor of the levels' set counts.
 */
struct setsample_result {
    uint64_t accesses, misses; /* simulated ones */
    double miss_ratio;         /* NaN for no accesses */
    double standard_error;     /* from how sets differ; NaN for fewer than two groups */
};

struct setsample;
/* share: of the sets, above 0, at most 1; at least two groups are taken. 0, -EINVAL (too few sets), -ENOMEM.
 */
int setsample_new(const struct sim_config *config, double share, struct setsample **sample,
                  struct error *err);
void setsample_free(struct setsample *sample); /* NULL is allowed */
int setsample_run(struct setsample *sample, uint32_t core, const uint64_t *accesses, size_t n,
                  struct error *err);
/* Of a level, all cores together. */
struct setsample_result setsample_result(const struct setsample *sample, uint32_t level);
double setsample_share(const struct setsample *sample);          /* as drawn */
const struct sim *setsample_sim(const struct setsample *sample); /* counts of what was simulated */

#endif
