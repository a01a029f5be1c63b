/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated half of docs/pirate.md: figure 5 of Eklov's thesis. A Target reads a set of 8 MB, at random
 * or from end to end, in a cache of 8 MB and 16 ways; a Pirate takes some of the ways. Next to it, the Target
 * alone in a cache of what is left. usage: bench_pirate
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "bench/pirate_sim.h"

#define SETS 8192u
#define WAYS 16u
#define LINES (SETS * WAYS)
#define PASSES 24u
#define RATE 8.0
#define BLOCK 4096u

static uint64_t at;
static struct random_state state;

static void next(int sequential, uint64_t *accesses)
{
    for (size_t i = 0; i < BLOCK; i++)
        accesses[i] = (sequential ? at++ % LINES : random_below(&state, LINES)) << SIM_LINE_SHIFT;
}

static void run(enum sim_policy policy, uint32_t ways, uint32_t stolen, int sequential, double *miss,
                double *fetch)
{
    const struct sim_pirate_config config = {.cache = {(uint64_t)ways * SETS * 64, ways, policy, 0, 1},
                                             .line_bytes = 64,
                                             .stolen_bytes = (uint64_t)stolen * SETS * 64,
                                             .rate = RATE};
    struct sim_pirate *p;
    struct error err;
    uint64_t accesses[BLOCK];
    if (sim_pirate_new(&config, &p, &err) != 0) {
        fprintf(stderr, "bench_pirate: %s\n", err.text);
        exit(1);
    }
    at = 0;
    random_seed(&state, 1);
    for (uint64_t i = 0; i < (uint64_t)PASSES * LINES; i += BLOCK) {
        if (i == (uint64_t)PASSES / 4 * LINES) /* warm by now */
            sim_pirate_reset_stats(p);
        next(sequential, accesses);
        if (sim_pirate_run(p, accesses, BLOCK, &err) != 0)
            exit(1);
    }
    struct sim_stats target = sim_pirate_target(p), pirate = sim_pirate_itself(p);
    *miss = (double)target.misses / (double)target.accesses;
    *fetch = pirate.accesses ? (double)pirate.misses / (double)pirate.accesses : 0;
    sim_pirate_free(p);
}

int main(void)
{
    static const enum sim_policy policies[] = {SIM_LRU, SIM_NEHALEM};
    puts("policy,pattern,available_mb,fetch_beside_pirate,fetch_in_smaller_cache,pirate_fetch_ratio");
    for (int p = 0; p < 2; p++)
        for (int sequential = 0; sequential < 2; sequential++)
            for (uint32_t left = 1; left <= WAYS; left++) {
                double beside, alone, fetch, none;
                run(policies[p], WAYS, WAYS - left, sequential, &beside, &fetch);
                run(policies[p], left, 0, sequential, &alone, &none);
                printf("%s,%s,%.1f,%.4f,%.4f,%.5f\n", sim_policy_name(policies[p]),
                       sequential ? "sequential" : "random", left * 0.5, beside, alone, fetch);
            }
    return 0;
}
