/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of reuse epochs, against a list of all lines in the order of their last touches; the table of causes,
 * whose sums stay right when it is full. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "collect/reduce/sampled-table.h"
#include "sim/epochs.h"
#include "symbols/code.h"

#define LINES 20000u

/* Lines, most recently touched last. */
struct twin {
    uint64_t *order;
    size_t n;
};

static void twin_touch(struct twin *t, uint64_t line)
{
    size_t i = 0;
    while (i < t->n && t->order[i] != line)
        i++;
    if (i < t->n)
        memmove(t->order + i, t->order + i + 1, (--t->n - i) * sizeof *t->order);
    t->order[t->n++] = line;
}

static void drawn_lines_are_among_the_last(void **state)
{
    struct error err;
    struct epochs *e = epochs_new(&err);
    struct twin t = {malloc(LINES * sizeof(uint64_t)), 0};
    struct random_state random;
    static const uint64_t distances[] = {32, 500, 4000, 5000, 15000};
    double outside[5] = {0}, mean[5] = {0};
    int drawn[5] = {0};
    (void)state;
    assert_non_null(e);
    random_seed(&random, 3);
    for (uint32_t i = 0; i < LINES; i++) { /* the site of a line is its own number */
        epochs_add(e, i, (struct epochs_touch){i, i});
        twin_touch(&t, i);
    }
    for (int i = 0; i < 20000; i++) {
        uint64_t line = random_below(&random, LINES);
        epochs_add(e, line, (struct epochs_touch){(uint32_t)line, (uint32_t)line});
        twin_touch(&t, line);
        if (i % 20 != 0)
            continue;
        for (int d = 0; d < 5; d++) {
            struct epochs_touch touch;
            if (epochs_draw(e, UINT64_MAX, distances[d], &random, &touch) < 0)
                continue;
            assert_int_equal(touch.site, touch.object);
            size_t rank = t.n;
            while (t.order[rank - 1] != touch.site)
                rank--;
            rank = t.n - rank; /* 0: touched last */
            outside[d] += rank >= distances[d];
            mean[d] += (double)rank / (double)distances[d];
            drawn[d]++;
        }
    }
    for (int d = 0; d < 5; d++) {
        assert_true(drawn[d] > 900);
        assert_true(outside[d] / drawn[d] < 0.4); /* the number of sampled lines in an epoch varies */
        /* The newest sampled line is the 8th on average: of 4 candidates, the mean rank is 0.6. */
        assert_true(fabs(mean[d] / drawn[d] - (d == 0 ? 0.6 : 0.5)) < 0.08);
    }
    assert_true(outside[2] / drawn[2] < 0.05);
    epochs_reset(e);
    struct epochs_touch none;
    assert_true(epochs_draw(e, UINT64_MAX, 100, &random, &none) < 0);
    free(t.order);
    epochs_free(e);
}

static void the_line_itself_is_not_drawn(void **state)
{
    struct error err;
    struct epochs *e = epochs_new(&err);
    struct random_state random;
    struct epochs_touch touch;
    uint32_t found = 0;
    (void)state;
    assert_non_null(e);
    random_seed(&random, 1);
    for (uint32_t line = 0; line < 64; line++)
        epochs_add(e, line, (struct epochs_touch){line, 0});
    for (uint32_t line = 0; line < 64; line++)
        for (int i = 0; i < 50; i++)
            if (epochs_draw(e, line, 64, &random, &touch) == 0) {
                assert_int_not_equal(touch.site, line);
                found++;
            }
    assert_true(found > 2000);
    epochs_free(e);
}

/* An entry's number is its victim_site; those below 8 are frequent. */
static void sums_of_a_full_table(void **state)
{
    struct error err;
    struct sampled_table *c = sampled_table_new(256, SYMBOLS_CAUSE_KEY, &err);
    struct random_state random;
    double frequent[8] = {0}, rare = 0, expected_rare = 0, sums[8] = {0};
    size_t n;
    (void)state;
    assert_non_null(c);
    random_seed(&random, 2);
    for (int i = 0; i < 200000; i++) {
        uint32_t site = (uint32_t)(i % 4 != 0 ? random_below(&random, 8) : 8 + random_below(&random, 5000));
        sampled_table_add(c, &(struct symbols_cause){.process = 1, .victim_site = site, .bin = site % 3}, 32);
        if (site < 8)
            frequent[site] += 32;
        else
            expected_rare += 32;
    }
    const struct symbols_cause *list = sampled_table_all(c, &n);
    assert_true(n <= 256 && n > 64);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].bin, list[i].victim_site % 3);
        if (list[i].victim_site < 8)
            sums[list[i].victim_site] += (double)list[i].reuses;
        else
            rare += (double)list[i].reuses;
    }
    for (int k = 0; k < 8; k++)
        assert_true(fabs(sums[k] / frequent[k] - 1) < 0.01);
    assert_true(fabs(rare / expected_rare - 1) < 0.25);
    sampled_table_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn_lines_are_among_the_last),
                                       cmocka_unit_test(the_line_itself_is_not_drawn),
                                       cmocka_unit_test(sums_of_a_full_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
