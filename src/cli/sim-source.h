/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim-source.h - the references of one or several traces as what caches see: stretches of accesses, each of
 * one core.
 *
 * One trace: its threads are on cores, thread t on core t modulo the number of cores; processes have
 * memory of their own. Several traces: trace i is on core i modulo cores, with memory of its own, and they
 * take turns, a reference each; who ends is left out.
 */
#ifndef CACHEGRAM_SIM_SOURCE_H
#define CACHEGRAM_SIM_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct sim_source_options {
    const char *const *paths;
    size_t npaths;
    const char *from; /* format of all traces, NULL: by their first bytes */
    uint32_t cores, line_bytes;
    int straddle_once; /* sim_pack's `once` */
    int merge_rmw;     /* a store right after a load of the same bytes by the same instruction is left out */
};

struct sim_source;

struct sim_stretch {
    uint32_t core;
    const uint64_t *accesses; /* packed (sim/cache.h), valid until the next call */
    size_t n;                 /* 0: all references were left out */
    uint64_t references;      /* read for them */
    int burst;                /* begins one: something was left out before it */
};

int sim_source_open(const struct sim_source_options *options, struct sim_source **source, struct error *err);
/* 1; 0 when all traces have ended; negative with err filled. */
int sim_source_next(struct sim_source *source, struct sim_stretch *stretch, struct error *err);
double sim_source_progress(const struct sim_source *source); /* 0..1, or NaN */
int sim_source_sampled(const struct sim_source *source);     /* a trace holds bursts only */
/* NULL, or what was damaged in a trace that has ended before its time. */
const struct error *sim_source_damage(const struct sim_source *source);
void sim_source_close(struct sim_source *source); /* NULL is allowed */

#endif
