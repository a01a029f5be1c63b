/* SPDX-License-Identifier: Apache-2.0 */
/* How windows of a phase differ: made values with one kind of structure each, and with none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/random.h"
#include "model/variation.h"

#define INSTANCES 12u
#define LENGTH 6u
#define N (INSTANCES * LENGTH)

static double values[N];
static uint32_t instances[N];

/* About 5%, plus noise of up to 1 point either way. */
static void make_noise(uint64_t seed)
{
    struct random_state random;
    random_seed(&random, seed);
    for (size_t i = 0; i < N; i++) {
        instances[i] = (uint32_t)(i / LENGTH);
        values[i] = 0.04 + 0.02 * (double)random_below(&random, 1000) / 1000;
    }
}

static struct variation find(void)
{
    struct variation v;
    assert_int_equal(variation_find(values, instances, N, &v), 0);
    return v;
}

static void noise_only(void **state)
{
    unsigned found[3] = {0};
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        make_noise(seed);
        struct variation v = find();
        found[0] += v.first != v.others;
        found[1] += v.instance > 0;
        found[2] += v.period > 0;
    }
    for (size_t i = 0; i < 3; i++)
        assert_true(found[i] <= 3); /* about 0.7 are expected */
}

static void first_windows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_noise(seed);
        for (size_t i = 0; i < N; i += LENGTH)
            values[i] += 0.03;
        struct variation v = find();
        assert_true(v.first > 0.07 && v.first < 0.09);
        assert_true(v.others > 0.045 && v.others < 0.055);
        assert_true(v.instance == 0);
    }
}

static void each_instance(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_noise(seed);
        for (size_t i = 0; i < N; i++)
            values[i] += instances[i] % 3 == 0 ? 0.03 : 0;
        struct variation v = find();
        assert_true(v.instance > 0.15 && v.instance < 0.35);
        assert_true(v.first == v.others);
    }
}

static void periodic(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_noise(seed);
        for (size_t i = 0; i < N; i++) { /* one long stay */
            instances[i] = 0;
            values[i] += i % 8 < 4 ? 0.03 : 0;
        }
        struct variation v = find();
        assert_int_equal(v.period, 8);
        assert_true(v.instance == 0 && v.first == v.others);
    }
}

static void a_drift_is_no_period(void **state)
{
    (void)state;
    make_noise(1);
    for (size_t i = 0; i < N; i++) {
        instances[i] = 0;
        values[i] += 0.001 * (double)i;
    }
    assert_int_equal(find().period, 0);
}

static void small_differences(void **state)
{
    (void)state;
    make_noise(1);
    for (size_t i = 0; i < N; i++) /* certain, but below 0.1 points */
        values[i] = 0.0001 + (i % LENGTH == 0 ? 0.0008 : 0);
    struct variation v = find();
    assert_true(v.first == v.others);
}

static void few_windows(void **state)
{
    struct variation v;
    (void)state;
    make_noise(1);
    for (size_t n = 0; n < 12; n++) {
        assert_int_equal(variation_find(values, instances, n, &v), 0);
        assert_true(v.first == v.others && v.period == 0 && v.instance == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_only),           cmocka_unit_test(first_windows),
        cmocka_unit_test(each_instance),        cmocka_unit_test(periodic),
        cmocka_unit_test(a_drift_is_no_period), cmocka_unit_test(small_differences),
        cmocka_unit_test(few_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
