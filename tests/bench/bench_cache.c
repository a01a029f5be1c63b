/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What simulated references cost: millions a second of CPU time, the median of several runs. The references
 * are a mix like a program's: half of them to a few lines of a stack that moves, a third walk
 * through an array in steps of 8 bytes, the others go to a hot table and, one in a hundred, anywhere in 64
 * MB.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "sim/cache.h"
#include "bench/corun_sim.h"

#define REFERENCES (1u << 24)
#define BATCH 8192u
#define RUNS 5

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fill(uint64_t *access, struct random_state *random)
{
    uint64_t scan = 0, frame = 0;
    for (size_t i = 0; i < REFERENCES; i++) {
        uint64_t r = random_next(random), address;
        uint64_t pick = r % 100, other = r >> 32;
        if (pick < 50) {
            if (other % 16 == 0)
                frame = (r >> 40) % 4096;
            address = (UINT64_C(1) << 40) + frame + other % 192;
        } else if (pick < 83) {
            address = (UINT64_C(2) << 40) + scan % (UINT64_C(4) << 20);
            scan += 8;
        } else if (pick < 99) {
            address = (UINT64_C(3) << 40) + other % 16384;
        } else {
            address = (UINT64_C(4) << 40) + other % (UINT64_C(64) << 20);
        }
        access[i] = address / 64 << SIM_LINE_SHIFT | (r >> 7 & 3 ? 0 : SIM_STORE);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(const char *name, const struct sim_config *config, const uint64_t *access)
{
    double million_a_second[RUNS], miss_ratio = 0;
    for (int run = 0; run < RUNS; run++) {
        struct error err;
        struct sim *sim;
        if (sim_new(config, &sim, &err) != 0) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        double start = now_s();
        for (size_t i = 0; i < REFERENCES; i += BATCH)
            if (sim_run(sim, 0, access + i, BATCH, &err) != 0)
                return 1;
        million_a_second[run] = REFERENCES / (now_s() - start) * 1e-6;
        struct sim_stats stats = sim_stats(sim, 0, 0);
        miss_ratio = (double)stats.misses / (double)stats.accesses;
        sim_free(sim);
    }
    qsort(million_a_second, RUNS, sizeof million_a_second[0], compare);
    printf("%-44s %7.1f million references a second (first-level misses %.2f%%)\n", name,
           million_a_second[RUNS / 2], 100 * miss_ratio);
    return 0;
}

struct loop {
    const uint64_t *access;
    size_t at;
};

static int64_t read_loop(void *context, uint64_t *accesses, size_t capacity, struct error *err)
{
    struct loop *loop = context;
    size_t n = REFERENCES - loop->at < capacity ? REFERENCES - loop->at : capacity;
    (void)err;
    memcpy(accesses, loop->access + loop->at, n * sizeof *accesses);
    loop->at += n;
    return (int64_t)n;
}

static int restart_loop(void *context, struct error *err)
{
    (void)err;
    ((struct loop *)context)->at = 0;
    return 0;
}

/* Two programs side by side: references of both a second. */
static int measure_corun(const uint64_t *access)
{
    struct loop loops[2] = {{access, 0}, {access, REFERENCES / 2}};
    struct corun_stream streams[2] = {{read_loop, restart_loop, &loops[0], 0.4},
                                      {read_loop, restart_loop, &loops[1], 0.3}};
    struct corun_config config = corun_statcc;
    struct corun_result results[2];
    struct error err;
    config.references = REFERENCES / 2;
    double start = now_s();
    if (corun_run(&config, streams, 2, NULL, results, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double references = (double)(results[0].references + results[1].references);
    printf("%-44s %7.1f million references a second\n", "two programs, 32K each, 2M shared, by time",
           references / (now_s() - start) * 1e-6);
    return 0;
}

int main(void)
{
    uint64_t *access = malloc(REFERENCES * sizeof *access);
    struct random_state random;
    int failed = 0;
    if (!access)
        return 1;
    random_seed(&random, 1);
    fill(access, &random);
    struct sim_config one = {
        .levels = 1, .cores = 1, .line_bytes = 64, .level[0] = {32 << 10, 8, SIM_LRU, 0, 0}};
    for (int policy = 0; policy < SIM_POLICIES; policy++) {
        char name[64];
        one.level[0].policy = (enum sim_policy)policy;
        snprintf(name, sizeof name, "32K, 8 ways, %s", sim_policy_name(one.level[0].policy));
        failed |= measure(name, &one, access);
    }
    one.level[0] = (struct sim_level){1 << 20, 0, SIM_LRU, 0, 0};
    failed |= measure("1M, fully associative, lru", &one, access);
    one.level[0] = (struct sim_level){32 << 10, 8, SIM_LRU, 0, 0};
    one.causes = 1;
    failed |= measure("32K, 8 ways, lru, causes reported", &one, access);
    struct sim_config three = {.levels = 3,
                               .cores = 1,
                               .line_bytes = 64,
                               .level = {{32 << 10, 8, SIM_LRU, SIM_NON_INCLUSIVE, 0},
                                         {256 << 10, 8, SIM_LRU, SIM_NON_INCLUSIVE, 0},
                                         {8 << 20, 16, SIM_LRU, SIM_INCLUSIVE, 1}}};
    failed |= measure("32K + 256K + 8M inclusive, lru", &three, access);
    three.level[0].policy = three.level[1].policy = SIM_PLRU;
    three.level[2].policy = SIM_NEHALEM;
    failed |= measure("the same, plru, plru, nehalem", &three, access);
    failed |= measure_corun(access);
    free(access);
    return failed;
}
