/* SPDX-License-Identifier: Apache-2.0 */
/* The notes below a curve from bursts (report/curve-notes.c): at which numbers each one is written. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/curve.h"
#include "report/report.h"

/* A curve without peculiarities: the only note is which parts of the run may have been missed. */
static struct analysis_curve usual(size_t bursts)
{
    return (struct analysis_curve){.bursts = bursts,
                                   .unseen = bursts > 3 ? 3 / (double)bursts : 1,
                                   .watches = 100,
                                   .user_seconds = NAN,
                                   .sampled_seconds = NAN,
                                   .clock_error = NAN};
}

static int verbose = 1;

static const char *notes(struct analysis_curve curve)
{
    static char text[1000];
    FILE *out = fmemopen(text, sizeof text, "w");

    assert_non_null(out);
    report_curve_notes(out, &curve, "Note: ", verbose);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* The number of notes, and whether one of them has these words. */
static int says(struct analysis_curve curve, size_t lines, const char *words)
{
    const char *text = notes(curve);
    size_t n = 0;

    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    assert_int_equal(n, lines);
    return strstr(text, words) != NULL;
}

static void test_missed_parts(void **state)
{
    (void)state;
    assert_string_equal(notes(usual(300)),
                        "Note: bursts may have missed parts of the run shorter than about 1% of its time\n");
    assert_string_equal(
        notes(usual(301)),
        "Note: bursts may have missed parts of the run shorter than about 1.0% of its time\n");
    assert_true(says(usual(13), 1, "shorter than about 23%"));  /* 3 / 13 */
    assert_true(says(usual(12), 1, "Note: 12 bursts are few")); /* 25% */
    assert_true(says(usual(1), 1, "Note: 1 burst is few"));
    FILE *none = tmpfile();
    assert_non_null(none);
    struct analysis_curve curve = usual(0);
    report_curve_notes(none, &curve, "Note: ", 1);
    assert_int_equal(ftell(none), 0);
    fclose(none);
}

/* Bursts each 10 ms on average, in processes of a millisecond each. */
static struct analysis_curve short_processes(size_t bursts, double seconds)
{
    struct analysis_curve curve = usual(bursts);

    curve.user_seconds = seconds;
    curve.sampled_seconds = 0.01 * (double)bursts;
    curve.sampled_error = 0.01 * sqrt((double)bursts * seconds / curve.sampled_seconds);
    curve.processes = (size_t)(seconds * 1000);
    return curve;
}

static int too_little(struct analysis_curve curve)
{
    const char *text = notes(curve);
    return strstr(text, "of CPU time: the rest was spent in processes of about a millisecond") != NULL;
}

static void test_little_sampled(void **state)
{
    (void)state;
    /* Of 20 expected bursts, 20 - 2 sqrt(20) = 11.06 may be missing by chance. */
    assert_true(too_little(short_processes(11, 0.2)));
    assert_false(too_little(short_processes(12, 0.2)));
    /* Of 1,000, 936 are too few to be chance; but less than 30% missing is not reported. */
    assert_true(too_little(short_processes(699, 10)));
    assert_false(too_little(short_processes(701, 10)));
    assert_false(too_little(usual(5))); /* CPU time not known */

    struct analysis_curve curve = short_processes(60, 1);
    assert_true(says(curve, 2, "Note: the bursts represent 0.60 of 1.00 s of CPU time: "));
    curve.processes = 3; /* a compiler: 0.4 s are missing, by chance or not, but not in short processes */
    assert_false(too_little(curve));

    /* One gap may be half a second, when the allowance is spent: 0.2 s too little is chance then. */
    curve = short_processes(60, 1);
    curve.sampled_error = 0.5;
    assert_false(too_little(curve));
}

static void test_watched_lines(void **state)
{
    (void)state;
    struct analysis_curve curve = usual(100);
    curve.watches = 0;
    assert_true(says(curve, 2, "Note: no lines were watched"));

    curve = usual(100);
    curve.unwatched = 9;
    curve.censored = 49;
    curve.clock_error = 0.2;
    assert_true(says(curve, 1, "about 3% of its time"));
    curve.unwatched = 10;
    assert_true(says(curve, 2, "Note: 10% of the lines chosen could not be watched"));
    curve.censored = 50;
    assert_true(says(curve, 3, "Note: 50% of the watched lines were censored"));
    curve.clock_error = 0.21;
    assert_true(says(curve, 4, "Note: the reference clock may be wrong by 21%"));
    verbose = 0;
    assert_true(says(curve, 1, "about 3% of its time"));
    curve.watches = 0;
    assert_true(says(curve, 2, "Note: no lines were watched"));
    verbose = 1;
}

/* References of a run of days on many processors are readable, too. */
static void test_large_counts(void **state)
{
    (void)state;
    static const struct {
        double count;
        const char *text;
    } counts[] = {{999999, "999999"}, {12.34e6, "12.3M"}, {1234e6, "1.234G"},    {9999.4e9, "9999G"},
                  {9999.6e9, "10T"},  {86.4e12, "86.4T"}, {9999.6e12, "10000T"}, {1.6e18, "1600000T"}};
    char text[REPORT_COUNT];
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        assert_string_equal(report_count(counts[i].count, text), counts[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missed_parts),
        cmocka_unit_test(test_little_sampled),
        cmocka_unit_test(test_watched_lines),
        cmocka_unit_test(test_large_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
