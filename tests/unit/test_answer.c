/* SPDX-License-Identifier: Apache-2.0 */
/* The first sentence of a report (analysis/answer.h), on curves that were made up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "analysis/answer.h"
#include "report/report.h"

#define K 1024.

/* An exact curve with this miss ratio below a size, and another one from there on. */
static double step_at, step_from, step_to;

static struct curve_point at(double size_bytes)
{
    double ratio = size_bytes < step_at ? step_from : step_to;
    return (struct curve_point){size_bytes, ratio, ratio, ratio};
}

static struct analysis_answer answer_of(double first_bytes)
{
    struct curve_point points[13], first = at(first_bytes); /* 1K to 64K, by half powers of two */
    struct analysis_answer answer;
    for (int i = 0; i < 13; i++)
        points[i] = at(i % 2 == 0 ? ldexp(K, i / 2) : ldexp(K, i / 2) * sqrt(2));
    analysis_answer_find(&first, points, 13, &answer);
    return answer;
}

/* No power of two lies between the cache and the step. */
static void step_right_above_the_first_cache(void **state)
{
    (void)state;
    step_at = 56 * K;
    step_from = 0.998;
    step_to = 0.06;
    struct analysis_answer a = answer_of(48 * K);
    assert_true(a.from_bytes == 48 * K && a.to_bytes == 64 * K);
    assert_true(fabs(a.gain - 0.938) < 1e-12 && fabs(a.hit_ratio - 0.002) < 1e-12 && !a.flat);
    a = answer_of(32 * K);
    assert_true(a.from_bytes == 32 * K && a.to_bytes == 64 * K);
}

static void step_below_the_first_cache(void **state)
{
    (void)state;
    step_at = 40 * K;
    step_from = 0.5;
    step_to = 0.25;
    struct analysis_answer a = answer_of(48 * K);
    assert_true(a.gain == 0 && a.flat && a.hit_ratio == 0.75);
}

/* Without an estimate the bounds are printed, unless they are the same number. */
static void bounds_without_an_estimate(void **state)
{
    char text[300];
    struct analysis_answer answer = {
        .first_bytes = 32 * K, .hit_ratio = NAN, .hit_low = 0.25, .hit_high = 0.75, .most_gain = NAN};
    (void)state;
    for (int i = 0; i < 2; i++) {
        FILE *out = fmemopen(text, sizeof text, "w");
        assert_non_null(out);
        report_answer_text(out, &answer, "L1");
        fclose(out);
        const char *expected =
            i == 0
                ? "There are not enough samples to say more than that 25.0 to 75.0% of the references hit in "
                  "a cache of 32K (L1).\n"
                : "99.99% of the references hit in a cache of 32K (L1).\n";
        assert_string_equal(text, expected);
        answer.hit_low = 0.9999;
        answer.hit_high = 0.99995;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_right_above_the_first_cache),
        cmocka_unit_test(step_below_the_first_cache),
        cmocka_unit_test(bounds_without_an_estimate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
