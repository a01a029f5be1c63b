/* SPDX-License-Identifier: Apache-2.0 */
/* The Pirate's parts that need no second core: the simulated one, the proof of its hold, rates, partitions,
 * symbols. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "pirate/elf-symbol.h"
#include "pirate/meter.h"
#include "pirate/pirating-internal.h"
#include "pirate/rivals.h"
#include "pirate/hold.h"
#include "pirate/resctrl.h"
#include "pirate/ratio.h"
#include "bench/pirate_sim.h"
#include "not_here.h"

#define SETS 64u
#define WAYS 16u
#define LINES (SETS * WAYS)
#define BLOCK 512u

/* --- the simulated Pirate --- */

struct outcome {
    uint64_t misses;
    double miss_ratio, fetch_ratio; /* of the Target, of the Pirate */
};

/* A Target that reads as many lines as all of the cache has, at random or in turn; counted from pass 5 of 25
 * on. */
static struct outcome run(enum sim_policy policy, uint32_t ways, uint32_t stolen, int sequential, double rate)
{
    const struct sim_pirate_config config = {.cache = {(uint64_t)ways * SETS * 64, ways, policy, 0, 1},
                                             .line_bytes = 64,
                                             .stolen_bytes = (uint64_t)stolen * SETS * 64,
                                             .rate = rate};
    struct sim_pirate *p;
    struct random_state random;
    uint64_t accesses[BLOCK], at = 0;
    random_seed(&random, 7);
    assert_int_equal(sim_pirate_new(&config, &p, NULL), 0);
    for (uint64_t i = 0; i < 25 * LINES; i += BLOCK) {
        if (i == 5 * LINES)
            sim_pirate_reset_stats(p);
        for (size_t k = 0; k < BLOCK; k++)
            accesses[k] = (sequential ? at++ % LINES : random_below(&random, LINES)) << SIM_LINE_SHIFT;
        assert_int_equal(sim_pirate_run(p, accesses, BLOCK, NULL), 0);
    }
    struct sim_stats target = sim_pirate_target(p), pirate = sim_pirate_itself(p);
    struct outcome o = {target.misses, (double)target.misses / (double)target.accesses,
                        pirate.accesses ? (double)pirate.misses / (double)pirate.accesses : 0};
    assert_int_equal(target.accesses, 20 * LINES);
    sim_pirate_free(p);
    return o;
}

/* Figure 4 of the thesis: what is left of an LRU cache is an LRU cache, miss for miss. */
static void lru_rest_is_smaller_lru(void **state)
{
    (void)state;
    for (uint32_t stolen = 1; stolen <= 8; stolen++)
        for (int sequential = 0; sequential < 2; sequential++) {
            struct outcome beside = run(SIM_LRU, WAYS, stolen, sequential, 32);
            struct outcome alone = run(SIM_LRU, WAYS - stolen, 0, sequential, 0);
            assert_true(beside.fetch_ratio == 0);
            assert_int_equal(beside.misses, alone.misses);
        }
}

/* Figure 5(c): so it is with Nehalem's policy, nearly (footnote 2); with a rise where LRU has a cliff. */
static void nehalem_rest_is_smaller_nehalem(void **state)
{
    double sequential[WAYS + 1] = {0};
    (void)state;
    for (uint32_t stolen = 1; stolen <= 12; stolen++)
        for (int pattern = 0; pattern < 2; pattern++) {
            struct outcome beside = run(SIM_NEHALEM, WAYS, stolen, pattern, 8);
            struct outcome alone = run(SIM_NEHALEM, WAYS - stolen, 0, pattern, 0);
            assert_true(beside.fetch_ratio < HOLD_LIMIT);
            assert_true(fabs(beside.miss_ratio - alone.miss_ratio) < 0.005);
            if (pattern)
                sequential[WAYS - stolen] = beside.miss_ratio;
        }
    assert_true(sequential[8] == 1);
    assert_true(sequential[9] < sequential[10] &&
                sequential[10] < sequential[11]); /* more cache, more fetches */
    assert_true(sequential[15] > 0.4 && sequential[15] < 0.6);
    assert_true(run(SIM_LRU, WAYS, 1, 1, 8).miss_ratio == 1);
}

/* A Pirate that is too slow, or wants too much, shows it by its own fetch ratio. */
static void losing_the_set_is_detected(void **state)
{
    (void)state;
    struct outcome slow = run(SIM_LRU, WAYS, 8, 0, 0.25), greedy = run(SIM_LRU, WAYS, 15, 0, 8);
    struct outcome smaller = run(SIM_LRU, WAYS - 8, 0, 0, 0);
    assert_true(slow.fetch_ratio > 10 * HOLD_LIMIT);
    assert_true(greedy.fetch_ratio > 10 * HOLD_LIMIT);
    assert_true(fabs(slow.miss_ratio - smaller.miss_ratio) > 0.01); /* and would be wrong */
}

static void simulated_nonsense(void **state)
{
    struct sim_pirate *p = NULL;
    struct sim_pirate_config config = {
        .cache = {LINES * 64, WAYS, SIM_LRU, 0, 1}, .line_bytes = 64, .rate = 1};
    (void)state;
    config.stolen_bytes = LINES * 64;
    assert_int_equal(sim_pirate_new(&config, &p, NULL), -EINVAL);
    config.stolen_bytes = 64;
    config.rate = NAN;
    assert_int_equal(sim_pirate_new(&config, &p, NULL), -EINVAL);
    assert_null(p);
    sim_pirate_free(NULL);
}

/* --- the proof --- */

#define TIMES 2000u

static void fill(uint32_t *times, uint32_t from, uint32_t step)
{
    for (uint32_t i = 0; i < TIMES; i++)
        times[(i * 7) % TIMES] = from + i * step / TIMES; /* in no order */
}

static void threshold(void **state)
{
    uint32_t hits[TIMES], misses[TIMES];
    struct hold_scale scale;
    struct error err;
    (void)state;
    fill(hits, 90, 60);
    fill(misses, 380, 100);
    assert_int_equal(hold_calibrate(hits, TIMES, misses, TIMES, &scale, &err), 0);
    assert_true(scale.threshold > 150 && scale.threshold < 380);
    assert_true(scale.slow_hits == 0 && scale.fast_misses == 0);
    assert_true(scale.hit_median > 115 && scale.hit_median < 125);
    assert_true(scale.longest > 2000);
    /* Memory hardly slower than the cache: no proof. */
    fill(misses, 150, 100);
    struct hold_scale untouched = scale;
    assert_int_equal(hold_calibrate(hits, TIMES, misses, TIMES, &scale, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "distinguished"));
    assert_memory_equal(&scale, &untouched, sizeof scale);
    assert_int_equal(hold_calibrate(hits, HOLD_CALIBRATION - 1, misses, TIMES, &scale, &err), -EINVAL);
}

/* hold.c's worked example, and what undoes a proof. */
static void verdict(void **state)
{
    const struct hold_scale scale = {.threshold = 239};
    struct hold_count count = {.probes = 1000, .slow = 3, .ticks = 1000000};
    (void)state;
    struct hold_verdict v = hold_judge(&count, &scale, HOLD_LIMIT);
    assert_true(v.proven && fabs(v.fetch_ratio - 0.003) < 1e-12 &&
                fabs(v.fetch_ratio_upper - 0.00879) < 5e-5);
    count.probes = 500;
    v = hold_judge(&count, &scale, HOLD_LIMIT);
    assert_true(!v.proven && fabs(v.fetch_ratio_upper - 0.01748) < 5e-5);
    count = (struct hold_count){.probes = 100000, .ticks = 1000000, .lost_ticks = 10001};
    assert_false(hold_judge(&count, &scale, HOLD_LIMIT).proven); /* it was away too long */
    count.lost_ticks = 9999;
    assert_true(hold_judge(&count, &scale, HOLD_LIMIT).proven);
    count = (struct hold_count){0};
    v = hold_judge(&count, &scale, HOLD_LIMIT);
    assert_true(!v.proven && isnan(v.fetch_ratio));
    /* Half of the misses look like hits: twice as many as are seen. */
    const struct hold_scale blurred = {.fast_misses = 0.5};
    count = (struct hold_count){.probes = 10000, .slow = 60, .ticks = 1};
    assert_true(hold_judge(&count, &scale, HOLD_LIMIT).proven);
    assert_false(hold_judge(&count, &blurred, HOLD_LIMIT).proven);
}

static void counts(void **state)
{
    const struct hold_count a = {1, 2, 3, 4, 5, 6}, b = {11, 13, 17, 19, 23, 29};
    (void)state;
    struct hold_count d = hold_since(&a, &b);
    hold_add(&d, &a);
    assert_memory_equal(&d, &b, sizeof d);
}

/* --- rates --- */

static void rates(void **state)
{
    struct ratio r = {0};
    double value, low, high;
    struct random_state random;
    int inside = 0;
    (void)state;
    ratio_estimate(&r, &value, &low, &high);
    assert_true(isnan(value) && isnan(low));
    ratio_add(&r, 6, 3);
    ratio_estimate(&r, &value, &low, &high);
    assert_true(value == 2 && isnan(low) && isnan(high));
    /* By hand: x = 6, 10, y = 3, 4: R = 16/7; residuals -6/7, 6/7; s = sqrt(2 * 2 * 36/49) / 7 = 12/49. */
    ratio_add(&r, 10, 4);
    ratio_estimate(&r, &value, &low, &high);
    assert_true(fabs(value - 16.0 / 7) < 1e-12);
    assert_true(fabs(high - value - 12.706 * 12 / 49) < 1e-9 && low == 0);
    /* The band holds the truth in some 95 of 100 experiments. */
    random_seed(&random, 3);
    for (int i = 0; i < 400; i++) {
        struct ratio e = {0};
        for (int k = 0; k < 12; k++) {
            double y = 50 + 100 * random_unit(&random);
            ratio_add(&e, 3 * y * (0.8 + 0.4 * random_unit(&random)), y);
        }
        ratio_estimate(&e, &value, &low, &high);
        inside += low <= 3 && 3 <= high;
    }
    assert_in_range(inside, 365, 395);
}

/* --- partitions, on files that look like the kernel's --- */

/* --- how many Pirate threads --- */

/* So many measurements, of about this time a step. */
static struct ratio rate_of(double ns, unsigned n)
{
    struct ratio r = {0};
    for (unsigned i = 0; i < n; i++)
        ratio_add(&r, (ns + (i % 2 ? 0.002 : -0.002)) * 1e6, 1e6);
    return r;
}

static void number_of_threads(void **state)
{
    (void)state;
    struct ratio rates[6] = {rate_of(1, 4),     rate_of(1.1, 4), rate_of(1.1, 4),
                             rate_of(1.105, 4), rate_of(1.4, 4), rate_of(1.1, 4)};
    assert_int_equal(pirating_threads(rates, 1), 1); /* no core for another */
    assert_int_equal(pirating_threads(rates, 2), 2); /* that one Pirate slows the program is no reason */
    assert_int_equal(pirating_threads(rates, 3), 3); /* half a percent does not matter */
    assert_int_equal(pirating_threads(rates, 5),
                     3);        /* four saturate the cache; what five would do does not matter */
    rates[2] = rate_of(1.1, 3); /* one was dropped */
    assert_int_equal(pirating_threads(rates, 5), 1);
    rates[2] = rate_of(1.2, 4);
    assert_int_equal(pirating_threads(rates, 5), 1);
}

/* Both see each other, once; who has left is not seen. Others may measure on this machine, too. */
static void rivals(void **state)
{
    (void)state;
    struct rivals first, second;
    rivals_enter(&first);
    size_t before = rivals_count(&first);
    rivals_enter(&second);
    if (first.n == RIVALS) {
        rivals_leave(&second);
        rivals_leave(&first);
        not_tested_here(__func__, "other Pirates fill the table");
        return;
    }
    assert_true(rivals_count(&second) >= 1);
    assert_true(rivals_count(&first) > before);
    size_t seen = rivals_count(&first), own = 0;
    assert_int_equal(rivals_count(&first), seen);
    for (size_t i = 0; i < seen; i++)
        own += first.pid[i] == getpid();
    assert_int_equal(own, 1);
    rivals_leave(&second);
    rivals_leave(&first);
    rivals_enter(&first);
    for (size_t i = 0; i < rivals_count(&first); i++)
        assert_int_not_equal(first.pid[i], getpid());
    rivals_leave(&first);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void get(const char *folder, const char *name, char *text, size_t size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

static void drop(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(remove(path), 0);
}

static void partitions(void **state)
{
    char folder[] = "/tmp/cachegram-resctrl-XXXXXX", path[512], group[512], text[256], pid[32];
    struct resctrl *r = NULL;
    struct error err;
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(resctrl_new(folder, 16 << 20, &r, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "not mounted"));
    snprintf(path, sizeof path, "%s/info", folder);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/info/L3", folder);
    mkdir(path, 0755);
    put(path, "cbm_mask", "ffff\n");
    put(path, "min_cbm_bits", "2\n");
    put(folder, "schemata", "    MB:0=100;1=100\n    L3:0=ffff;3=ffff\n");
    snprintf(group, sizeof group, "%s/cachegram-999999999", folder); /* no process has that number */
    mkdir(group, 0755);
    assert_int_equal(resctrl_new(folder, 16 << 20, &r, &err), 0);
    assert_int_not_equal(access(group, F_OK), 0); /* what a killed run had left */
    snprintf(group, sizeof group, "%s/cachegram-%d", folder, (int)getpid());
    assert_int_equal(access(group, F_OK), 0);
    assert_int_equal(resctrl_leave(r, 4 << 20, &err), -ENOENT);
    put(group, "schemata", "");
    put(group, "tasks", "");
    assert_int_equal(resctrl_leave(r, 4 << 20, &err), 0);
    get(group, "schemata", text, sizeof text);
    assert_string_equal(text, "L3:0=f;3=f\n");
    assert_int_equal(resctrl_round(r, 4 << 20), 4 << 20);
    assert_int_equal(resctrl_round(r, (5 << 20) - 1000), 5 << 20);
    assert_int_equal(resctrl_round(r, 1), 2 << 20); /* the least that the hardware allows */
    assert_int_equal(resctrl_round(r, 32 << 20), 16 << 20);
    assert_int_equal(resctrl_add(r, getpid(), &err), 0);
    get(group, "tasks", text, sizeof text);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_string_equal(text, pid);
    drop(group, "schemata");
    drop(group, "tasks");
    resctrl_free(r);
    assert_int_not_equal(access(group, F_OK), 0);
    drop(path, "cbm_mask");
    drop(path, "min_cbm_bits");
    drop(folder, "schemata");
    drop(folder, "info/L3");
    drop(folder, "info");
    assert_int_equal(rmdir(folder), 0);
}

/* --- the program's progress --- */

uint64_t test_progress = 41;
uint16_t test_short;

static void meters(void **state)
{
    struct meter m;
    struct elf_symbol symbol;
    struct error err;
    uint64_t address;
    double units, later;
    (void)state;
    assert_int_equal(elf_symbol_find("/proc/self/exe", "test_progress", &symbol, &err), 0);
    assert_int_equal(symbol.size, 8);
    assert_false(symbol.is_function);
    assert_int_equal(elf_symbol_address(getpid(), "test_progress", &address, &err), 0);
    assert_int_equal(address, (uintptr_t)&test_progress);
    assert_int_equal(elf_symbol_find("/proc/self/exe", "test_progres", &symbol, &err), -ENOENT);
    assert_int_equal(elf_symbol_find("/etc/passwd", "x", &symbol, &err), -EINVAL);
    assert_int_equal(meter_init(&m, "main", "/proc/self/exe", &err), -EINVAL);
    assert_int_equal(meter_init(&m, "test_short", "/proc/self/exe", &err), -EINVAL);
    assert_int_equal(meter_init(&m, "test_progress", "/proc/self/exe", &err), 0);
    assert_int_equal(meter_attach(&m, getpid(), &err), 0);
    assert_int_equal(meter_read(&m, getpid(), &units), 0);
    assert_true(units == 41);
    test_progress++;
    assert_int_equal(meter_read(&m, getpid(), &units), 0);
    assert_true(units == 42);
    meter_detach(&m);
    assert_int_equal(meter_init(&m, "io", NULL, &err), 0);
    assert_int_equal(meter_attach(&m, getpid(), &err), 0);
    assert_int_equal(meter_read(&m, getpid(), &units), 0);
    assert_int_equal(elf_symbol_find("/proc/self/exe", "test_short", &symbol, &err),
                     0); /* mapped: no bytes read */
    char text[1000];
    FILE *f = fopen("/proc/self/status", "r");
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    assert_int_equal(meter_read(&m, getpid(), &later), 0);
    assert_true(later >= units + (double)n);
    meter_detach(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lru_rest_is_smaller_lru),
        cmocka_unit_test(nehalem_rest_is_smaller_nehalem),
        cmocka_unit_test(losing_the_set_is_detected),
        cmocka_unit_test(simulated_nonsense),
        cmocka_unit_test(threshold),
        cmocka_unit_test(verdict),
        cmocka_unit_test(counts),
        cmocka_unit_test(rates),
        cmocka_unit_test(number_of_threads),
        cmocka_unit_test(rivals),
        cmocka_unit_test(partitions),
        cmocka_unit_test(meters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
