/* SPDX-License-Identifier: Apache-2.0 */
/* burst-weights.h - weights of single bursts in estimates of the whole run. */
#ifndef CACHEGRAM_ANALYSIS_BURST_WEIGHTS_H
#define CACHEGRAM_ANALYSIS_BURST_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/selection.h"
#include "base/error.h"
#include "model/watched.h"
#include "profile/profile.h"

struct analysis_weight {
    uint64_t burst, process; /* ids in the profile */
    uint32_t tid;
    double weight; /* references of the run that one of its references represents */
};

/* A watched line that missed when it was touched again, or that was never touched again. */
struct analysis_missed {
    uint64_t burst, process; /* ids, of the burst in which it was touched last before that */
    uint32_t tid;
    uint64_t site;   /* id of the instruction that touched it again; 0: not known, or it was never touched */
    uint64_t object; /* id; 0: not known */
    int never;       /* it was not touched again by the end, or its memory was unmapped first */
    double weight;
};

/* Touches by long string instructions that were counted, but that no burst has: methods.md, section 7. */
struct unseen_strings {
    double hits;  /* in the line of the element before, as a share of all touches of the run */
    double share; /* their other touches, likewise */
    double
        unlisted; /* likewise: those hits, and those counted for bursts in place of their own; may be < 0 */
    double lines; /* each of these instructions touches at least so many */
};
/* The part of the other touches that misses in a cache of so many lines: 1, or an assumption. */
double unseen_strings_miss(const struct unseen_strings *strings, double lines);

struct analysis_weights {
    double size_bytes;            /* input: of the cache */
    uint32_t phase;               /* input: only bursts of this phase have a weight; 0: all */
    int separate;                 /* input: as for the sample */
    int of_a_part;                /* only bursts of selected threads or processes have a weight */
    struct analysis_weight *list; /* by burst; malloc'ed */
    size_t n;
    struct analysis_missed *missed; /* by burst; malloc'ed */
    size_t nmissed;
    struct curve_far
        far; /* at the given size; of these bursts, or of all if they have too few watched lines */
    size_t phase_bursts;  /* bursts of the phase */
    uint64_t phase_exact; /* references of its part that was recorded completely */
    /* The run begins with a part that was recorded completely: its counts are of burst 0, and weigh 1. The
     * other weights are relative to that. */
    int exact;
    /* Of the reuses in bursts at distances of the size's bin (base/octaves.h), and of the first touches there
     * after so many lines: the part that is at the size's lines or more; NaN: there are none. */
    double reuses_above, firsts_above;
    struct unseen_strings strings;
    double exact_left; /* of that part's first touches, the share that is undecided instead of a miss */
};

/* What weights of any size and phase are found from. */
struct analysis_sample;
/* For a profile of bursts; name: its file, for messages. separate: each thread has a cache of its own.
 * -ENODATA if it has none. *sample is freed by the caller. */
int analysis_sample_load(struct profile *p, const char *name, unsigned line_bytes, int separate,
                         struct analysis_sample **sample, struct error *err);
void analysis_sample_free(struct analysis_sample *sample); /* NULL is allowed */
int analysis_burst_weights(struct profile *p, struct analysis_sample *sample,
                           const struct analysis_selection *selection, struct analysis_weights *weights,
                           struct error *err);
void analysis_weights_free(struct analysis_weights *weights); /* NULL is allowed */

/* A burst by itself. */
struct analysis_burst {
    uint32_t group;     /* set by the caller's function, from 0 on */
    size_t window;      /* likewise */
    double weight;      /* references of the run that it represents */
    double refs_per_ns; /* NaN: not known */
    uint64_t start_ns;
    double start_refs; /* counted in its thread before it, in steps (docs/format.md); NaN: not counted */
    double refs_each;  /* references of each of these steps */
};

/*
 * For a profile of bursts: each burst's miss ratios at the sizes of points[n], in miss_ratio[burst * n +
 * point] (NaN: not known); separate: in caches of their threads' own. What is known from watched lines comes
 * from the bursts of the same group. Both results are malloc'ed. Without bursts *nbursts is 0.
 */
int analysis_each_burst(
    struct profile *p, const char *name, unsigned line_bytes, int separate, const struct curve_point *points,
    size_t n, void (*place)(void *ctx, const struct profile_burst *burst, struct analysis_burst *placed),
    void *ctx, struct analysis_burst **bursts, size_t *nbursts, double **miss_ratio, struct error *err);

#endif
