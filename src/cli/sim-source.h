/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim-source.h - converts the references of one or several traces to accesses of caches, in stretches of one
 * core each.
 *
 * One trace: thread t runs on core t modulo the number of cores; processes have separate memory. Several
 * traces: trace i runs on core i modulo cores, with its own memory; they take turns, one reference each,
 * until each has ended.
 */
#ifndef CACHEGRAM_SIM_SOURCE_H
#define CACHEGRAM_SIM_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct sim_source_options {
    const char *const *paths;
    size_t npaths;
    const char *from; /* format of all traces; NULL: recognised by their first bytes */
    uint32_t cores, line_bytes;
    int straddle_once; /* sim_pack's `once` */
    int merge_rmw;     /* skip a store right after a load of the same bytes by the same instruction */
};

struct sim_source;

struct sim_stretch {
    uint32_t core;
    const uint64_t *accesses; /* packed (sim/cache.h), valid until the next call */
    size_t n;                 /* 0: all references were skipped */
    uint64_t references;      /* read for them */
    int burst;                /* begins a burst: references before it were not sampled */
};

int sim_source_open(const struct sim_source_options *options, struct sim_source **source, struct error *err);
/* 1; 0 when all traces have ended; negative with err filled. */
int sim_source_next(struct sim_source *source, struct sim_stretch *stretch, struct error *err);
double sim_source_progress(const struct sim_source *source); /* 0..1, or NaN */
int sim_source_sampled(const struct sim_source *source);     /* a trace contains only bursts */
/* NULL, or the damage that ended a trace early. */
const struct error *sim_source_damage(const struct sim_source *source);
void sim_source_close(struct sim_source *source); /* NULL is allowed */

#endif
