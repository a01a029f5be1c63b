/* SPDX-License-Identifier: Apache-2.0 */
/*
 * corun_sim.h - simulates programs that run side by side on in-order cores and share a cache, interleaved by
 * simulated time: the experiment that StatCC was evaluated with (thesis, II.5.1; docs/methods.md, section 8).
 *
 * Each program has a core with private levels of its own. A reference costs the latency of the level that has
 * the line, an instruction costs cpi_base; each reference comes with 1 / references_per_instruction
 * instructions. The next reference is always one of the core with the least simulated time. So
 *
 *     cpi = cpi_base + references_per_instruction * sum over levels of (share of hits * latency)
 *
 * holds for each program exactly, and who gets how much of the shared cache follows from the speeds.
 */
#ifndef CACHEGRAM_BENCH_CORUN_SIM_H
#define CACHEGRAM_BENCH_CORUN_SIM_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "sim/cache.h"

/* A program's references, as packed accesses (cache.h) without SIM_STRADDLE. Lines are those of a program
 * alone: below 2^CORUN_LINE_BITS; programs' equal lines are different ones in the simulation. */
#define CORUN_LINE_BITS 53u
struct corun_stream {
    /* Up to `room` next accesses; their number, 0 at the end, negative errno with err filled on failure. */
    int64_t (*read)(void *context, uint64_t *accesses, size_t capacity, struct error *err);
    /* Starts over. 0 or negative errno with err filled. */
    int (*restart)(void *context, struct error *err);
    void *context;
    double references_per_instruction; /* above 0 */
};

struct corun_config {
    struct sim_level level[SIM_LEVELS];
    uint32_t levels, line_bytes;
    uint64_t seed;
    double cpi_base;
    double latency_cycles[SIM_LEVELS + 1]; /* of a hit in each level; [levels]: of memory */
    uint64_t warm_up;                      /* references of each program before anything is counted */
    /*
     * Counting ends when any program (or, with until_all, every one) has made so many counted references;
     * 0: when it has come to its end, counted from its first reference on. Others start over at theirs.
     */
    uint64_t references;
    int until_all;
};
/* The memory system of Eklov's experiments: 32 KB 8-way, shared inclusive 2 MB 16-way, 1/10/130 cycles. */
extern const struct corun_config corun_statcc;

struct corun_result {
    uint64_t references, restarts;
    uint64_t hits[SIM_LEVELS + 1]; /* references whose line was found in each level; [levels]: in memory */
    double instructions, cycles, cpi;
    double miss_ratio; /* of the outermost level: hits[levels] / references */
};

/*
 * Runs n (1 .. SIM_CORES) programs, on core i the i-th; results[i] is its. 0; -EINVAL (configuration,
 * an empty stream, a line too high), -ENOMEM, or what a stream's function returned. interrupted, if not
 * NULL, is looked at now and then: nonzero ends the run with -EINTR, results hold what was counted.
 */
int corun_run(const struct corun_config *config, const struct corun_stream *streams, uint32_t n,
              const volatile int *interrupted, struct corun_result *results, struct error *err);

#endif
