/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse.h - the sampler of the StatCache and StatStack papers on a stream of accesses: sparse reuse
 * distances by watchpoints, in windows (docs/methods.md, section 4).
 *
 * Windows of `window` accesses alternate with hibernation of a random duration, exponential with mean
 * `hibernate`. In a window every access is sampled with the same probability, samples / window, so that gaps
 * between samples are geometric. The stream begins at a random point of this alternation, so that all
 * accesses have the same probability. A sample watches its line until the next access to it, also during
 * hibernation; it belongs to the window in which it started.
 */
#ifndef CACHEGRAM_SIM_SPARSE_H
#define CACHEGRAM_SIM_SPARSE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "sim/cache.h"

struct sparse_config {
    uint64_t window;  /* accesses, at least 1 */
    double hibernate; /* mean, accesses, at least 0 */
    double samples;   /* expected in each window, above 0, at most window */
    uint64_t seed;
};
/* S1 and S2 of the StatStack papers: rates of 1e-4 and 2e-5. */
extern const struct sparse_config sparse_s1, sparse_s2;

#define SPARSE_DANGLING UINT64_MAX

struct sparse_sample {
    uint64_t window;   /* index */
    uint64_t start;    /* number of the access, 0 the first of the stream */
    uint64_t distance; /* accesses between it and the next one to its line; SPARSE_DANGLING: none so far */
    uint64_t line;
};

struct sparse_window {
    uint64_t start, length; /* accesses; the ends of the stream may cut the first and the last one */
};

struct sparse;
/* 0, -EINVAL or -ENOMEM. */
int sparse_new(const struct sparse_config *config, struct sparse **sparse, struct error *err);
/*
 * n samplers (at least 1), numbered in order, on one stream: each finds what it would find alone, for little
 * more than the cost of one. As sparse_new.
 */
int sparse_new_set(const struct sparse_config *configs, size_t n, struct sparse **sparse, struct error *err);
void sparse_free(struct sparse *sparse); /* NULL is allowed */
/* The next n accesses, packed (cache.h). 0 or -ENOMEM. */
int sparse_run(struct sparse *sparse, const uint64_t *accesses, size_t n, struct error *err);
/* Results so far, owned by sparse, valid until the next call of sparse_run. Samples in order of start.
 * which: the sampler of the set; 0 without one. */
const struct sparse_sample *sparse_samples(const struct sparse *sparse, size_t which, size_t *n);
const struct sparse_window *sparse_windows(const struct sparse *sparse, size_t which, size_t *n);
uint64_t sparse_seen(const struct sparse *sparse); /* accesses so far */

#endif
