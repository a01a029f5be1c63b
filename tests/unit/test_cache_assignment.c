/* SPDX-License-Identifier: Apache-2.0 */
/* Placement against all placements, tried one by one. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/cache-assignment.h"

/* Programs press on a cache and suffer by what the others press, less on a large one. */
struct pressures {
    double press[ASSIGNMENT_PROGRAMS], suffer[ASSIGNMENT_PROGRAMS];
    unsigned calls;
    int fail;
};

static int slowdowns(void *context, const uint32_t *programs, uint32_t n,
                     const struct assignment_cache *cache, double *slowdown, struct error *err)
{
    struct pressures *p = context;
    p->calls++;
    if (p->fail)
        return error_set(err, -EIO, "asked for");
    for (uint32_t i = 0; i < n; i++) {
        double others = 0;
        for (uint32_t k = 0; k < n; k++)
            others += k == i ? 0 : p->press[programs[k]];
        slowdown[i] = 1 + p->suffer[programs[i]] * others / (double)cache->size_bytes;
    }
    return 0;
}

static void pressures(struct pressures *p, uint64_t seed)
{
    struct random_state r;
    memset(p, 0, sizeof *p);
    random_seed(&r, seed);
    for (uint32_t i = 0; i < ASSIGNMENT_PROGRAMS; i++) {
        p->press[i] = (double)random_below(&r, 1000) / 1000;
        p->suffer[i] = (double)random_below(&r, 1000) / 1000;
    }
}

/* The least goal of all placements of programs i and up, given where those before are. */
static double least(const struct assignment_problem *p, uint32_t i, uint32_t *cache)
{
    if (i == p->programs) {
        double goal = 0;
        for (uint32_t m = 0; m < p->ncaches; m++) {
            uint32_t members[ASSIGNMENT_PROGRAMS], n = 0;
            double each[ASSIGNMENT_PROGRAMS];
            struct error err;
            for (uint32_t k = 0; k < p->programs; k++)
                if (cache[k] == m)
                    members[n++] = k;
            if (n > p->caches[m].cores)
                return INFINITY;
            slowdowns(p->context, members, n, &p->caches[m], each, &err);
            for (uint32_t k = 0; k < n; k++)
                goal = p->goal == ASSIGNMENT_TOTAL ? goal + each[k] : fmax(goal, each[k]);
        }
        return goal;
    }
    double best = INFINITY;
    for (uint32_t m = 0; m < p->ncaches; m++) {
        cache[i] = m;
        best = fmin(best, least(p, i + 1, cache));
    }
    return best;
}

static void check_consistent(const struct assignment_problem *p, const struct assignment_result *r)
{
    uint32_t used[ASSIGNMENT_CACHES] = {0};
    double total = 0, worst = 0;
    for (uint32_t i = 0; i < p->programs; i++) {
        assert_true(r->cache[i] < p->ncaches);
        used[r->cache[i]]++;
        total += r->slowdown[i];
        worst = fmax(worst, r->slowdown[i]);
    }
    for (uint32_t m = 0; m < p->ncaches; m++)
        assert_true(used[m] <= p->caches[m].cores);
    assert_true(fabs(total - r->total) < 1e-9 && worst == r->worst);
}

static void test_exact(void **state)
{
    (void)state;
    static const struct assignment_cache caches[3] = {{1, 3}, {1, 3}, {2, 2}};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct pressures pressure;
        struct assignment_result result;
        struct error err;
        uint32_t cache[ASSIGNMENT_PROGRAMS];
        pressures(&pressure, seed);
        struct assignment_problem p = {.programs = 4 + (uint32_t)seed % 4,
                                       .caches = caches,
                                       .ncaches = 2 + seed % 2,
                                       .goal = seed % 3 ? ASSIGNMENT_TOTAL : ASSIGNMENT_WORST,
                                       .slowdowns = slowdowns,
                                       .context = &pressure};
        if (p.ncaches == 2 && p.programs > 6)
            p.programs = 6;
        assert_int_equal(assignment_solve(&p, 1, &result, &err), 0);
        check_consistent(&p, &result);
        double goal = p.goal == ASSIGNMENT_TOTAL ? result.total : result.worst, twin = least(&p, 0, cache);
        assert_true(result.exact && result.bound == goal);
        assert_true(fabs(goal - twin) < 1e-9);
        assert_true(result.spread >= goal - 1e-9 && result.random_mean >= goal - 1e-9);
    }
}

/* Beyond the exact size, where another way knows the answer: two kinds of programs that must not mix. */
static void test_search(void **state)
{
    (void)state;
    struct assignment_cache caches[4] = {{1, 4}, {1, 4}, {1, 4}, {1, 4}};
    struct pressures pressure;
    struct assignment_result result;
    struct error err;
    memset(&pressure, 0, sizeof pressure);
    for (uint32_t i = 0; i < 16; i++) {
        pressure.press[i] = i % 4 == 0; /* four press, and do not suffer */
        pressure.suffer[i] = i % 4 != 0;
    }
    struct assignment_problem p = {
        .programs = 16, .caches = caches, .ncaches = 4, .slowdowns = slowdowns, .context = &pressure};
    assert_int_equal(assignment_solve(&p, 1, &result, &err), 0);
    check_consistent(&p, &result);
    assert_int_equal(result.exact, 0);
    assert_true(fabs(result.total - 16) < 1e-9);
    assert_true(result.bound <= result.total + 1e-9 && result.bound >= 16 - 1e-9);
    assert_true(result.random_mean > 20);
    /* And random problems: never below the bound, never worse than dealing. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        pressures(&pressure, seed);
        for (int goal = 0; goal < 2; goal++) {
            p.goal = (enum assignment_goal)goal;
            assert_int_equal(assignment_solve(&p, seed, &result, &err), 0);
            check_consistent(&p, &result);
            double got = goal == ASSIGNMENT_TOTAL ? result.total : result.worst;
            assert_true(got <= result.spread + 1e-9 && got < result.random_mean);
            assert_true(result.bound <= got + 1e-9);
        }
    }
}

/* The search finds what is exact, where both can be asked: 13 programs, one of which neither presses nor
 * suffers. */
static void test_search_against_exact(void **state)
{
    (void)state;
    static const struct assignment_cache caches[2] = {{1, 6}, {1, 6}}, more[2] = {{1, 7}, {1, 7}};
    unsigned same = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct pressures pressure;
        struct assignment_result exact, search;
        struct error err;
        pressures(&pressure, seed);
        pressure.press[12] = pressure.suffer[12] = 0;
        struct assignment_problem p = {
            .programs = 12, .caches = caches, .ncaches = 2, .slowdowns = slowdowns, .context = &pressure};
        assert_int_equal(assignment_solve(&p, 1, &exact, &err), 0);
        p.programs = 13;
        p.caches = more;
        assert_int_equal(assignment_solve(&p, 1, &search, &err), 0);
        assert_true(exact.exact && !search.exact);
        same += search.total - 1 <= exact.total + 1e-9;
        assert_true(search.total - 1 <= 1.01 * exact.total);
    }
    assert_true(same >= 9);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct assignment_cache caches[1] = {{1, 2}};
    struct pressures pressure;
    struct assignment_result result;
    struct error err;
    pressures(&pressure, 1);
    struct assignment_problem p = {
        .programs = 3, .caches = caches, .ncaches = 1, .slowdowns = slowdowns, .context = &pressure};
    assert_int_equal(assignment_solve(&p, 1, &result, &err), -EINVAL);
    p.programs = 2;
    pressure.fail = 1;
    assert_int_equal(assignment_solve(&p, 1, &result, &err), -EIO);
    pressure.fail = 0;
    pressure.calls = 0;
    assert_int_equal(assignment_solve(&p, 1, &result, &err), 0);
    assert_true(pressure.calls <= 4); /* three groups, each once, and the answer's once more */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_search),
                                       cmocka_unit_test(test_search_against_exact),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
