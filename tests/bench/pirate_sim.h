/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirate_sim.h - a Pirate in a simulated cache: a second core that sweeps a set of lines, with a given number
 * of accesses per access of the Target, and so occupies part of the cache (thesis, III.3.2). Shows whether
 * the rest behaves as a smaller cache does.
 */
#ifndef CACHEGRAM_BENCH_PIRATE_SIM_H
#define CACHEGRAM_BENCH_PIRATE_SIM_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "sim/cache.h"

struct sim_pirate_config {
    struct sim_level cache; /* the shared one; its `shared` does not matter */
    uint32_t line_bytes;
    uint64_t stolen_bytes; /* the Pirate's set, below the cache's size; 0: no Pirate */
    double rate;           /* the Pirate's accesses for each of the Target's, 0 or more */
    uint64_t seed;
};

struct sim_pirate; /* opaque */

/* 0; -EINVAL for an invalid configuration, -ENOMEM. The Pirate has then swept its set twice, alone. */
int sim_pirate_new(const struct sim_pirate_config *config, struct sim_pirate **pirate, struct error *err);
void sim_pirate_free(struct sim_pirate *p); /* NULL is allowed */
/* The Target's next accesses, packed as for sim_run, lines below 2^53; and the Pirate's among them. 0 or
 * -ENOMEM. */
int sim_pirate_run(struct sim_pirate *p, const uint64_t *accesses, size_t n, struct error *err);
/* Of the Target, and of the Pirate: its misses / accesses are its fetch ratio. */
struct sim_stats sim_pirate_target(const struct sim_pirate *p);
struct sim_stats sim_pirate_itself(const struct sim_pirate *p);
/* Resets counts. */
void sim_pirate_reset_stats(struct sim_pirate *p);

#endif
