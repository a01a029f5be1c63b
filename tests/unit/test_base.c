/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of src/base: errors, arrays, names of files, histogram bins, sizes, random numbers. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"
#include "base/base-name.h"
#include "base/error.h"
#include "base/hist.h"
#include "base/packed-hist.h"
#include "base/random.h"
#include "base/sizes.h"

static void error_fills_and_returns_code(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(error_set(&err, -EINVAL, "cannot open '%s' (%d)", "x.db", 7), -EINVAL);
    assert_string_equal(err.text, "cannot open 'x.db' (7)");
    assert_int_equal(error_set(NULL, -ENOMEM, "unheard"), -ENOMEM);
}

static void error_may_quote_itself_and_is_cut_visibly(void **state)
{
    (void)state;
    struct error err;
    error_set(&err, -EIO, "read failed");
    error_set(&err, -EIO, "%s; try again", err.text);
    assert_string_equal(err.text, "read failed; try again");

    char text[2 * sizeof err.text];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    error_set(&err, -EIO, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + sizeof err.text - 5, "a...");
}

struct element {
    uint32_t before;
    uint64_t key;
};

static void arrays_grow_and_keep_what_they_hold(void **state)
{
    (void)state;
    struct element *list = NULL;
    size_t capacity = 0, rooms = 0;
    for (uint32_t n = 0; n < 100000; n++) {
        size_t before = capacity;
        assert_int_equal(ARRAY_GROW(list, n, capacity), 0);
        assert_true(n < capacity);
        rooms += capacity != before;
        list[n] = (struct element){n, 2 * n};
    }
    assert_in_range(rooms, 2, 20); /* doubled */
    assert_int_equal(ARRAY_GROW_BY(list, 100000, 1000000, capacity), 0);
    assert_true(capacity >= 1100000);
    for (uint32_t n = 0; n < 100000; n++)
        assert_int_equal(list[n].before, n);

    const struct element *same = list;
    size_t kept = capacity;
    assert_int_equal(ARRAY_GROW_BY(list, 100000, SIZE_MAX / 4, capacity), -ENOMEM);
    assert_ptr_equal(list, same);
    assert_int_equal(capacity, kept);
    free(list);
}

static void arrays_are_searched(void **state)
{
    (void)state;
    static const struct element list[] = {{9, 2}, {7, 4}, {5, 4}, {3, UINT64_MAX}};
    const struct {
        uint64_t key;
        size_t n;
    } cases[] = {{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 3}, {5, 3}, {UINT64_MAX - 1, 3}, {UINT64_MAX, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(ARRAY_UP_TO(list, 4, key, cases[i].key), cases[i].n);
    assert_int_equal(ARRAY_UP_TO(list, 0, key, 4), 0);
}

static void names_of_files_follow_the_last_slash(void **state)
{
    (void)state;
    assert_string_equal(base_name("/lib/x86_64-linux-gnu/libc.so.6"), "libc.so.6");
    assert_string_equal(base_name("a.out"), "a.out");
    assert_string_equal(base_name("folder/"), "");
    assert_string_equal(base_name(""), "");
}

static void hist_edges_are_powers_and_half_powers(void **state)
{
    (void)state;
    /* An independent computation: long double has 64 bits of mantissa, enough for 48-bit edges. */
    for (uint32_t bin = HIST_EXACT; bin < HIST_BINS; bin++) {
        long double exponent = 10 + (long double)(bin - HIST_EXACT) / HIST_SUB;
        assert_int_equal(hist_edge(bin), (uint64_t)floorl(exp2l(exponent)));
    }
    for (uint32_t bin = 0; bin < HIST_EXACT; bin++)
        assert_int_equal(hist_edge(bin), bin);
    assert_int_equal(hist_edge(HIST_BINS), UINT64_C(1) << 48);
    assert_int_equal(hist_edge(hist_bin(1448)), 1448); /* floor(2^10.5) */
}

static void hist_bin_and_edge_agree(void **state)
{
    (void)state;
    for (uint32_t bin = 0; bin < HIST_BINS; bin++) {
        assert_true(hist_edge(bin) < hist_edge(bin + 1)); /* no bin is empty */
        assert_int_equal(hist_bin(hist_edge(bin)), bin);
        assert_int_equal(hist_bin(hist_edge(bin + 1) - 1), bin);
    }
    assert_int_equal(hist_bin(UINT64_C(1) << 48), HIST_BINS - 1);
    assert_int_equal(hist_bin(UINT64_MAX), HIST_BINS - 1);

    struct random_state random;
    random_seed(&random, 1);
    for (int i = 0; i < 200000; i++) {
        uint64_t value = random_next(&random) >> (16 + random_below(&random, 48));
        uint32_t bin = hist_bin(value);
        assert_true(hist_edge(bin) <= value && value < hist_edge(bin + 1));
    }
}

static void hist_adds_a_range(void **state)
{
    (void)state;
    struct hist *h = calloc(1, sizeof *h), *one = calloc(1, sizeof *one);
    uint64_t next = 0;
    static const uint64_t ends[] = {0, 1, 1024, 1027, 1028, 54321};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        for (; next < ends[i]; next++)
            hist_add(one, next, 1);
        memset(h, 0, sizeof *h);
        hist_add_up_to(h, ends[i]);
        assert_memory_equal(h, one, sizeof *h);
    }
    free(h);
    free(one);
}

static void hist_counts_at_least(void **state)
{
    (void)state;
    struct hist *h = calloc(1, sizeof *h), *other = calloc(1, sizeof *other);
    assert_non_null(h);
    assert_non_null(other);
    hist_add(h, 0, 5);
    hist_add(h, 1023, 2);
    hist_add(h, 4096, 3);
    hist_add(other, 4096, 4);
    hist_add(other, UINT64_MAX, 1);
    hist_merge(h, other);
    assert_int_equal(h->total, 15);

    assert_true(hist_at_least(h, -1) == 15);
    assert_true(hist_at_least(h, 0) == 15);
    assert_true(hist_at_least(h, 1) == 10);
    assert_true(hist_at_least(h, 1023) == 10);
    assert_true(hist_at_least(h, 1024) == 8);
    assert_true(hist_at_least(h, 4096) == 8);
    double width = (double)(hist_edge(hist_bin(4096) + 1) - 4096);
    assert_true(fabs(hist_at_least(h, 4096 + width / 4) - (1 + 7 * 0.75)) < 1e-12);
    assert_true(hist_at_least(h, 4096 + width) == 1);
    assert_true(hist_at_least(h, 0x1p48) == 0);

    const double values[] = {-1, 0, 0, 1, 1023, 1024, 4096, 4096 + width / 4, 4096 + width, 0x1p48, 0x1p60},
                 expected[] = {15, 15, 15, 10, 10, 8, 8, 1 + 7 * 0.75, 1, 0, 0};
    double reached[sizeof values / sizeof *values];
    struct packed_hist packed = {.total = 0};
    assert_int_equal(packed_hist_set(&packed, h), 0);
    packed_hist_at_least_each(&packed, values, sizeof values / sizeof *values, reached);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_true(fabs(reached[i] - expected[i]) < 1e-12);
    assert_true(packed_hist_at_least(&packed, 4096) == 8);
    packed_hist_clear(&packed);
    free(h);
    free(other);
}

static void packed_histograms(void **state)
{
    (void)state;
    struct hist *h = calloc(1, sizeof *h), *out = malloc(sizeof *out);
    struct packed_hist p = {.total = 0}, copy = {.total = 0};
    for (int zeros = 0; zeros < 2; zeros++) {
        memset(h, 0, sizeof *h);
        assert_int_equal(packed_hist_set(&p, h), 0); /* without values */
        assert_true(p.bytes != NULL && p.size == 0 && p.total == 0);
        assert_int_equal(packed_hist_add_zeros(&p, 3), 0);
        packed_hist_unpack(&p, out);
        assert_true(p.total == 3 && out->total == 3 && out->count[0] == 3);
        hist_add(h, 0, zeros ? 7 : 0);
        hist_add(h, 5, 300);
        hist_add(h, UINT64_MAX, UINT64_C(1) << 62);
        assert_int_equal(packed_hist_set(&p, h), 0);
        assert_int_equal(packed_hist_copy(&copy, p.bytes, p.size), 0);
        packed_hist_unpack(&copy, out);
        assert_memory_equal(h, out, sizeof *h);
        assert_int_equal(packed_hist_add_zeros(&copy, 0), 0);
        assert_int_equal(packed_hist_add_zeros(&copy, 1000), 0);
        hist_add(h, 0, 1000);
        packed_hist_unpack(&copy, out);
        assert_memory_equal(h, out, sizeof *h);
        assert_true(copy.total == h->total);
    }
    /* Cut off; no values in a bin; a bin after the last; a sum that does not fit; a number that does not end.
     */
    static const struct {
        uint8_t bytes[24];
        size_t size;
    } bad[] = {{{0}, 1},
               {{0, 0}, 2},
               {{0x80, 0x54, 1}, 3},
               {{0xff, 0x53, 1, 0, 1}, 5},
               {{0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 1}, 13},
               {{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, 12}};
    static_assert(HIST_BINS == 0x2a00, "the first bad bin");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(packed_hist_copy(&copy, bad[i].bytes, bad[i].size), -EINVAL);
    packed_hist_unpack(&copy, out); /* left as it was */
    assert_memory_equal(h, out, sizeof *h);
    packed_hist_clear(&p);
    packed_hist_clear(&copy);
    free(h);
    free(out);
}

static void sizes_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"1", 1},
        {"1048576", 1048576},
        {"32K", 32768},
        {"32k", 32768},
        {"32KB", 32768},
        {"32KiB", 32768},
        {"8MiB", 8388608},
        {"1M", 1048576},
        {"64B", 64},
        {"1.5M", 1572864},
        {".5K", 512},
        {"2G", UINT64_C(2) << 30},
        {"3T", UINT64_C(3) << 40},
        {"1152921504606846976", SIZE_MAX_BYTES},
        {"0.1K", 102},
        {"1048576T", SIZE_MAX_BYTES},
        /* Half powers of two, as they are printed; 1478492 and 741376 would be near them. */
        {"1.41M", 1482910},
        {"1.41MiB", 1482910},
        {"724k", 741455},
        {"11.3K", 11585},
        {"1.4M", 1468006},
        {"724.0K", 741376},
        {"741376", 741376},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct error err = {""};
        uint64_t bytes = 0;
        assert_int_equal(size_parse(good[i].text, &bytes, &err), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
}

static void bad_sizes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
    } bad[] = {
        {"", -EINVAL},
        {"K", -EINVAL},
        {".", -EINVAL},
        {".K", -EINVAL},
        {"-1", -EINVAL},
        {"+1", -EINVAL},
        {" 1", -EINVAL},
        {"1 ", -EINVAL},
        {"1KK", -EINVAL},
        {"1KiBs", -EINVAL},
        {"1Ki", -EINVAL},
        {"1X", -EINVAL},
        {"0x10", -EINVAL},
        {"1e6", -EINVAL},
        {"1.2.3", -EINVAL},
        {"0", -ERANGE},
        {"0M", -ERANGE},
        {"0.9", -ERANGE},
        {"1048577T", -ERANGE},
        {"1048576.1T", -ERANGE},
        {"99999999999999999999999999", -ERANGE},
        {"99999999999999999999999999x", -EINVAL},
        {"18446744073709551617", -ERANGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err = {""};
        uint64_t bytes = 77;
        assert_int_equal(size_parse(bad[i].text, &bytes, &err), bad[i].code);
        assert_int_equal(bytes, 77);
        assert_true(strlen(err.text) > 0);
    }
}

static void check_list(const char *text, const uint64_t *expected, size_t n_expected)
{
    struct error err = {""};
    uint64_t *sizes = NULL;
    size_t n = 0;
    assert_int_equal(size_parse_list(text, &sizes, &n, &err), 0);
    assert_int_equal(n, n_expected);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(sizes[i], expected[i]);
    free(sizes);
}

#define CHECK_LIST(text, ...)                         \
    check_list(text, (const uint64_t[]){__VA_ARGS__}, \
               sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void lists_and_ranges_are_parsed(void **state)
{
    (void)state;
    CHECK_LIST("32K", 32768);
    CHECK_LIST("8M,32K,1M,32768", 32768, 1048576, 8388608);
    CHECK_LIST("1K..4K", 1024, 1448, 2048, 2896, 4096);
    CHECK_LIST("3K..10K", 3072, 4096, 5792, 8192, 10240);
    CHECK_LIST("1..4", 1, 2, 4); /* floor(2^0.5) = 1, floor(2^1.5) = 2 */
    CHECK_LIST("1K..2K,1M", 1024, 1448, 2048, 1048576);
    CHECK_LIST("4K..4K", 4096);

    uint64_t *sizes;
    size_t n;
    assert_int_equal(size_parse_list("1K..64M", &sizes, &n, NULL), 0);
    assert_int_equal(n, 33);               /* 2^10 .. 2^26 in half steps */
    assert_int_equal(sizes[31], 47453132); /* floor(2^25.5) */
    free(sizes);
    assert_int_equal(size_parse_list("1..1048576T", &sizes, &n, NULL), 0);
    assert_int_equal(sizes[n - 1], SIZE_MAX_BYTES);
    free(sizes);
}

static void bad_lists_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",     ",",       "1K,",     ",1K",        "1K,,2K", "..",    "1K..",
                                      "..1K", "64M..1K", "1K...2K", "1K..2K..4K", "32K;1M", "32K 1M"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err = {""};
        uint64_t *sizes = NULL;
        size_t n = 99;
        assert_int_equal(size_parse_list(bad[i], &sizes, &n, &err), -EINVAL);
        assert_null(sizes);
        assert_int_equal(n, 99);
        assert_true(strlen(err.text) > 0);
    }

    /* A hostile list is refused, not built. */
    size_t items = SIZE_LIST_MAX + 1;
    char *text = malloc(2 * items);
    assert_non_null(text);
    for (size_t i = 0; i < items; i++)
        memcpy(text + 2 * i, i + 1 < items ? "1," : "1", 2);
    uint64_t *sizes = NULL;
    size_t n = 99;
    assert_int_equal(size_parse_list(text, &sizes, &n, NULL), -ERANGE);
    free(text);
}

static void sizes_are_formatted(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1, "1"},
        {1023, "1023"},
        {1024, "1K"},
        {1448, "1.41K"},
        {32768, "32K"},
        {46340, "45.3K"},
        {1048575, "1M"},
        {1048576, "1M"},
        {1572864, "1.5M"},
        {102400, "100K"},
        {1047552, "1023K"},
        {UINT64_C(1) << 40, "1T"},
        {UINT64_MAX, "16777216T"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[SIZE_TEXT];
        assert_string_equal(size_format(cases[i].bytes, text), cases[i].text);
    }
}

static void random_is_the_published_generator(void **state)
{
    (void)state;
    /* splitmix64 from 0: its authors' reference values. */
    uint64_t seed = 0;
    assert_int_equal(random_splitmix64(&seed), 0xe220a8397b1dcdafu);
    assert_int_equal(random_splitmix64(&seed), 0x6e789e6aa1b965f4u);
    /* xoshiro256** from {1, 2, 3, 4}: worked by hand for the first two. */
    struct random_state random = {{1, 2, 3, 4}};
    assert_int_equal(random_next(&random), 11520);
    assert_int_equal(random_next(&random), 0);
    assert_int_equal(random_next(&random), 1509978240);
}

static void random_stays_in_bounds_and_is_even(void **state)
{
    (void)state;
    struct random_state random;
    random_seed(&random, 0);
    unsigned seen[6] = {0};
    double sum = 0;
    for (int i = 0; i < 60000; i++) {
        uint64_t below = random_below(&random, 6);
        assert_true(below < 6);
        seen[below]++;
        double unit = random_unit(&random);
        assert_true(unit >= 0 && unit < 1);
        sum += unit;
    }
    for (int i = 0; i < 6; i++) /* 10000 expected, standard deviation 91 */
        assert_in_range(seen[i], 9500, 10500);
    assert_true(fabs(sum / 60000 - 0.5) < 0.01);
    assert_int_equal(random_below(&random, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_fills_and_returns_code),
        cmocka_unit_test(error_may_quote_itself_and_is_cut_visibly),
        cmocka_unit_test(arrays_grow_and_keep_what_they_hold),
        cmocka_unit_test(arrays_are_searched),
        cmocka_unit_test(names_of_files_follow_the_last_slash),
        cmocka_unit_test(hist_edges_are_powers_and_half_powers),
        cmocka_unit_test(hist_bin_and_edge_agree),
        cmocka_unit_test(hist_adds_a_range),
        cmocka_unit_test(hist_counts_at_least),
        cmocka_unit_test(packed_histograms),
        cmocka_unit_test(sizes_are_parsed),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(lists_and_ranges_are_parsed),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(sizes_are_formatted),
        cmocka_unit_test(random_is_the_published_generator),
        cmocka_unit_test(random_stays_in_bounds_and_is_even),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
