/* SPDX-License-Identifier: Apache-2.0 */
/* Code that a JIT compiler replaced by other code: what was where, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/leb128.h"
#include "profile/site-counts.h"
#include "profile/sites.h"
#include "symbols/image.h"
#include "symbols/jit-dump.h"
#include "symbols/jit-map.h"
#include "symbols/name.h"

#define NOW UINT64_C(1000000)

static struct jit_entries *entries;

static void add(uint64_t low, uint64_t high, uint64_t from_ns, const char *name)
{
    assert_int_equal(jit_entries_add(entries, (struct jit_entry){low, high, from_ns, name, NULL, 0, 0, 0}),
                     0);
}

/* Names of what was at an address, with a space after each. */
static const char *history(uint64_t address)
{
    static char text[256];
    const uint32_t *list;
    size_t n = jit_entries_at(entries, address, &list);
    *text = '\0';
    for (size_t i = 0; i < n; i++) {
        strncat(text, jit_entries_name(entries, list[i]), 64);
        strcat(text, " ");
    }
    return text;
}

static const char *during(uint64_t address, uint64_t from_ns, uint64_t until_ns)
{
    const uint32_t *list;
    size_t n = jit_entries_at(entries, address, &list);
    return n > 0 ? jit_entries_name(entries, jit_entries_during(entries, list, n, from_ns, until_ns)) : NULL;
}

static void one_after_the_other(void **state)
{
    (void)state;
    entries = jit_entries_new();
    add(0x1000, 0x1100, 300, "c");
    add(0x1000, 0x1100, 100, "a");
    add(0x1080, 0x1180, 200, "b");
    add(0x1080, 0x1180, 250, "b"); /* made again: still b */
    add(0x5000, 0x5010, 0, "x");
    add(0x5000, 0x5010, 0, "y"); /* of one time the last one counts */
    add(0x6000, 0x6000, 0, "empty");
    add(UINT64_MAX, 15, 0, "beyond");
    jit_entries_sort(entries);
    assert_string_equal(history(0xfff), "");
    assert_string_equal(history(0x1000), "a c ");
    assert_string_equal(history(0x1080), "a b c ");
    assert_string_equal(history(0x1100), "b ");
    assert_string_equal(history(0x117f), "b ");
    assert_string_equal(history(0x1180), "");
    assert_string_equal(history(0x5000), "y ");
    assert_string_equal(history(UINT64_MAX), "");
    assert_string_equal(during(0x1080, 1, 50), "a"); /* nothing was there: the first one */
    assert_string_equal(during(0x1080, 1, 101), "a");
    assert_string_equal(during(0x1080, 100, 199), "a");
    assert_string_equal(during(0x1080, 199, 199), "a");
    assert_string_equal(during(0x1080, 200, 200), "b");
    assert_string_equal(during(0x1080, 150, 240), "a"); /* 50 of 90 */
    assert_string_equal(during(0x1080, 150, 260), "b"); /* 60 of 110 */
    assert_string_equal(during(0x1080, 190, 320), "b"); /* 100 of 130 */
    assert_string_equal(during(0x1080, 290, 320), "c");
    assert_string_equal(during(0x1080, 0, UINT64_MAX), "c");
    assert_string_equal(during(0x1080, UINT64_MAX, UINT64_MAX), "c");
    jit_entries_free(entries);
}

/* As a search through all of them finds. */
static void many(void **state)
{
    enum { N = 400 };
    uint64_t low[N], high[N];
    (void)state;
    srand(1);
    entries = jit_entries_new();
    for (size_t i = 0; i < N; i++) {
        low[i] = (uint64_t)rand() % 1000;
        high[i] = low[i] + 1 + (uint64_t)rand() % (i % 10 == 0 ? 500 : 10);
        char *name = jit_entries_keep(entries, 8);
        assert_non_null(name);
        snprintf(name, 8, "%zu", i);
        add(low[i], high[i], i + 1, name);
    }
    jit_entries_sort(entries);
    for (uint64_t address = 0; address < 1600; address++) {
        const uint32_t *list;
        size_t n = jit_entries_at(entries, address, &list), found = 0;
        for (size_t i = 0; i < N; i++)
            if (low[i] <= address && address < high[i]) {
                assert_true(found < n);
                assert_int_equal(atoi(jit_entries_name(entries, list[found])), i);
                assert_true(jit_entries_has(entries, list[found++], address));
            }
        assert_int_equal(found, n);
    }
    jit_entries_free(entries);
}

/* --- jitdumps --- */

static FILE *dump;

static void begin_dump(uint64_t flags)
{
    const uint32_t header[] = {0x4a695444, 1, 40, 62, 0, 123, 0, 0, (uint32_t)flags, 0};
    dump = tmpfile();
    assert_non_null(dump);
    fwrite(header, sizeof header, 1, dump);
}

static void put_head(uint32_t kind, size_t size, uint64_t time)
{
    const uint32_t head[] = {kind, (uint32_t)size + 16, (uint32_t)time, (uint32_t)(time >> 32)};
    fwrite(head, sizeof head, 1, dump);
}

static void put_load(uint64_t time, uint64_t address, uint64_t bytes, const char *name)
{
    const uint64_t words[] = {0, address, address, bytes, 1};
    put_head(0, sizeof words + strlen(name) + 1 + bytes, time);
    fwrite(words, sizeof words, 1, dump);
    fwrite(name, strlen(name) + 1, 1, dump);
    for (uint64_t i = 0; i < bytes; i++)
        putc(0x90, dump);
}

static void put_move(uint64_t time, uint64_t from, uint64_t to, uint64_t bytes)
{
    const uint64_t words[] = {0, to, from, to, bytes, 1};
    put_head(1, sizeof words, time);
    fwrite(words, sizeof words, 1, dump);
}

struct place {
    uint64_t address;
    uint32_t line;
    const char *file;
};

/* claimed: number of lines, as the record has it. */
static void put_lines(uint64_t address, const struct place *places, size_t n, uint64_t claimed)
{
    const uint64_t words[] = {address, claimed};
    size_t size = sizeof words;
    for (size_t i = 0; i < n; i++)
        size += 16 + strlen(places[i].file) + 1;
    put_head(2, size, 1);
    fwrite(words, sizeof words, 1, dump);
    for (size_t i = 0; i < n; i++) {
        const uint32_t line[] = {places[i].line, 0};
        fwrite(&places[i].address, 8, 1, dump);
        fwrite(line, sizeof line, 1, dump);
        fwrite(places[i].file, strlen(places[i].file) + 1, 1, dump);
    }
}

/* Two lines, 10 and 12, at offsets 0 and 2. */
static void put_freed_lines(uint64_t address, const char *name, size_t size)
{
    const uint64_t words[] = {address, 2};
    put_head(2, sizeof words + 2 * (16 + size), 1);
    fwrite(words, sizeof words, 1, dump);
    for (uint32_t i = 0; i < 2; i++, address += 2) {
        const uint32_t line[] = {10 + 2 * i, 0};
        fwrite(&address, 8, 1, dump);
        fwrite(line, sizeof line, 1, dump);
        fwrite(name, size, 1, dump);
    }
}

static int end_dump(void)
{
    fflush(dump);
    entries = jit_entries_new();
    int code = jit_dump_read(entries, fileno(dump), NOW);
    fclose(dump);
    jit_entries_sort(entries);
    return code;
}

/* "FILE:LINE" of the code that was last at an address. */
static const char *line_at(uint64_t address)
{
    static char text[128];
    const uint32_t *list;
    const char *file;
    size_t n = jit_entries_at(entries, address, &list);
    uint32_t line = n > 0 ? jit_entries_line(entries, list[n - 1], address, &file) : 0;
    snprintf(text, sizeof text, "%s:%u", line != 0 ? file : "", line);
    return text;
}

static void times_of_a_dump(void **state)
{
    (void)state;
    begin_dump(0);
    put_load(100, 0x1000, 16, "first");
    put_head(4, 8, 150); /* unwinding information */
    fwrite("12345678", 8, 1, dump);
    put_load(200, 0x1000, 16, "second");
    put_move(300, 0x1000, 0x2000, 16);
    put_load(400, 0x1008, 8, "third");
    put_head(3, 0, 500); /* the end */
    assert_int_equal(end_dump(), 0);
    assert_string_equal(history(0x1000), "first second ");
    assert_string_equal(history(0x1008), "first second third ");
    assert_string_equal(history(0x2000), "second ");
    assert_string_equal(during(0x1008, 210, 250), "second");
    jit_entries_free(entries);
}

/* Times of the processor's counter, and of a clock that is ahead of ours, are none. */
static void other_clocks(void **state)
{
    for (uint64_t flags = 0; flags < 2; flags++) {
        (void)state;
        begin_dump(flags);
        put_load(flags == 1 ? 200 : NOW + 1, 0x1000, 16, "first");
        put_load(100, 0x1000, 16, "second");
        assert_int_equal(end_dump(), 0);
        assert_string_equal(history(0x1000), "second ");
        jit_entries_free(entries);
    }
}

static void lines_of_a_dump(void **state)
{
    const struct place first[] = {{0x1000, 10, "a.js"}, {0x1008, 12, "b.js"}, {0x1004, 11, "\xff"}};
    const struct place third[] = {{0x3000, 20, "\x1b;"}, {0x3002, 21, "a.js"}};
    /* As V8 does: with the first 16 bytes of each name overwritten, which may end it. */
    static const char freed[] = "\x1b\x01\0\0\0\0\0\0garbage!/long/enough.js";
    const struct place fourth[] = {{0x4000, 30, "file:///a.js"}, {0x4004, 0, "\xff"}};
    (void)state;
    begin_dump(0);
    put_lines(0x1000, first, 3, 3);
    put_load(100, 0x1000, 16, "first");
    put_load(100, 0x2000, 16, "second"); /* no lines */
    put_lines(0x3000, third, 2, 2);      /* of no file */
    put_load(100, 0x3000, 16, "third");
    put_lines(0x4000, fourth, 2, UINT64_MAX);
    put_load(100, 0x4000, 16, "fourth");
    put_lines(0x5000, first, 3, 3); /* of other code */
    put_load(100, 0x5001, 16, "fifth");
    put_freed_lines(0x7000, freed, sizeof freed);
    put_load(100, 0x7000, 16, "JS:*f /a/path/that/is_/long/enough.js:12:3");
    put_freed_lines(0x8000, freed, sizeof freed);
    put_load(100, 0x8000, 16, "JS:*f /a/path/that/is/long/enough.js:12:3"); /* of another length */
    put_freed_lines(0x9000, freed, sizeof freed);
    put_load(100, 0x9000, 16, "f::");
    put_move(200, 0x1000, 0x6000, 16);
    assert_int_equal(end_dump(), 0);
    assert_string_equal(line_at(0x1000), "a.js:10");
    assert_string_equal(line_at(0x1003), "a.js:10");
    assert_string_equal(line_at(0x1004), "b.js:11");
    assert_string_equal(line_at(0x100f), "b.js:12");
    assert_string_equal(line_at(0x2000), ":0");
    assert_string_equal(line_at(0x3002), ":0");
    assert_string_equal(line_at(0x4003), "file:///a.js:30");
    assert_string_equal(line_at(0x4004), ":0");
    assert_string_equal(line_at(0x5001), ":0");
    assert_string_equal(line_at(0x600f), "b.js:12");
    assert_string_equal(line_at(0x7002), "/a/path/that/is_/long/enough.js:12");
    assert_string_equal(line_at(0x8002), ":0");
    assert_string_equal(line_at(0x9002), ":0");
    jit_entries_free(entries);
}

/* Addresses after the header of an ELF file that perf makes. */
static void lines_behind_a_header(void **state)
{
    const struct place places[] = {{0x1040, 10, "a.js"}, {0x1048, 12, "a.js"}};
    (void)state;
    begin_dump(0);
    put_lines(0x1000, places, 2, 2);
    put_load(100, 0x1000, 16, "first");
    assert_int_equal(end_dump(), 0);
    assert_string_equal(line_at(0x1000), "a.js:10");
    assert_string_equal(line_at(0x1008), "a.js:12");
    jit_entries_free(entries);
}

/* Whatever the record's size and the text in it, nothing beyond it is read. */
static void damaged_dumps(void **state)
{
    (void)state;
    for (uint32_t size = 0; size < 80; size++)
        for (uint32_t kind = 0; kind < 5; kind++) {
            begin_dump(0);
            put_load(100, 0x1000, 16, "first");
            const uint32_t head[] = {kind, size, 200, 0};
            fwrite(head, sizeof head, 1, dump);
            for (int i = 0; i < 48; i++)
                putc(0xff, dump);
            assert_int_equal(end_dump(), 0);
            assert_string_equal(history(0x1000), "first ");
            jit_entries_free(entries);
        }
}

/* All of very many entries have all addresses: the time is bounded, and what is not looked for is not known.
 */
static void too_many(void **state)
{
    const uint32_t *list;
    (void)state;
    entries = jit_entries_new();
    for (uint64_t i = 0; i < 3000000; i++)
        add(i, UINT64_MAX, i, "all");
    assert_int_equal(jit_entries_count(entries), 1 << 21);
    jit_entries_sort(entries);
    size_t found = 1;
    for (int i = 0; i < 1000 && found > 0; i++)
        found = jit_entries_at(entries, UINT64_MAX - 1 - (uint64_t)i, &list);
    assert_int_equal(found, 0);
    assert_null(jit_entries_keep(entries, (size_t)1 << 40));
    jit_entries_free(entries);
}

/* --- a profile --- */

/* No process has that number. */
#define PID 4294967294u
#define MAP "/tmp/perf-4294967294.map"

static void grown_map(void **state)
{
    const struct symbols_growth growth[] = {{PID, 100, 0}, {1, 150, 5}, {PID, 200, 14}, {PID, 300, 33}};
    (void)state;
    unlink(MAP);
    FILE *f = fopen(MAP, "w");
    assert_non_null(f);
    fputs("1000 100 first\n1000 100 second\n1000 100 3rd\n2000 10 other\n", f); /* ends at 14, 30, 43, 57 */
    fclose(f);
    entries = symbols_jit_map_open(MAP, growth, 4);
    assert_non_null(entries);
    assert_string_equal(history(0x1000), "first second 3rd ");
    assert_string_equal(during(0x1000, 0, 199), "first"); /* made at 100 */
    assert_string_equal(during(0x1000, 200, 299), "second");
    assert_string_equal(during(0x1000, 300, 300), "3rd");
    jit_entries_free(entries);
    entries = symbols_jit_map_open(MAP, NULL, 0);
    assert_non_null(entries);
    assert_string_equal(history(0x1000), "3rd ");
    jit_entries_free(entries);
    /* Emptied and written again: no entry is younger than the file was long. */
    const struct symbols_growth emptied[] = {{PID, 100, 14}, {PID, 200, 57}, {PID, 300, 0}};
    entries = symbols_jit_map_open(MAP, emptied, 3);
    assert_non_null(entries);
    assert_string_equal(history(0x1000), "3rd ");
    jit_entries_free(entries);
    unlink(MAP);
}

/* Counts of block 0, n executions of its one reference, and one first touch of each. */
static size_t put_block(uint8_t *bytes, uint64_t n)
{
    const uint64_t numbers[] = {0, n, 1, 0, SITE_COUNT_FIRST, 0, n};
    size_t used = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        used += leb128_put(bytes + used, numbers[i]);
    return used;
}

/* References of the functions of that name. */
static uint64_t references(struct profile *p, const char *function)
{
    struct profile_site *sites;
    struct profile_frame *frames;
    struct error err;
    uint64_t sum = 0;
    size_t n, nframes;
    assert_int_equal(profile_sites(p, &sites, &n, &err), 0);
    assert_int_equal(profile_frames(p, &frames, &nframes, &err), 0);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nframes; k++)
            if (sites[i].frame == frames[k].id && strcmp(frames[k].function, function) == 0)
                sum += sites[i].references;
    free(sites);
    profile_frames_free(frames, nframes);
    return sum;
}

static int count_block(void *ctx, uint32_t block, uint64_t executions)
{
    size_t *n = ctx;
    (void)block;
    (void)executions;
    ++*n;
    return 0;
}

static int ignore_entry(void *ctx, uint32_t block, uint32_t reference, uint32_t what, uint32_t object,
                        uint64_t count)
{
    (void)ctx, (void)block, (void)reference, (void)what, (void)object, (void)count;
    return 0;
}

static int count_blocks(void *ctx, uint64_t burst, uint64_t process, const uint8_t *bytes, size_t size,
                        struct error *err)
{
    const struct site_counts_reader reader = {count_block, ignore_entry, ctx};
    (void)burst, (void)process, (void)err;
    return site_counts_read(bytes, size, &reader);
}

static void by_the_time_of_bursts(void **state)
{
    static const uint8_t blocks[] = {0, 1, 0};
    static const struct symbols_site found[] = {{.offset = 0x1002}};
    static const char *const images[] = {MAP};
    static const struct symbols_growth growth[] = {{PID, 1100, 0}, {PID, 1500, 14}};
    static const struct symbols_slice slices[] = {
        {1, 1, 1000, 1200}, {2, 1, 1000, 2000}, {1, 2, 1200, 1800}, {2, 2, 1800, 2000}, {1, 3, 1800, 2000}};
    static const struct symbols_cause cause = {.process = 1, .reuses = 7};
    const struct symbols_code code = {.images = images,
                                      .nimages = 1,
                                      .sites = found,
                                      .nsites = 1,
                                      .start_ns = 1000,
                                      .growth = growth,
                                      .ngrowth = 2,
                                      .slices = slices,
                                      .nslices = 5,
                                      .causes = &cause,
                                      .ncauses = 1};
    struct profile_burst burst = {.process = 1, .references = 1000, .weight = 1, .gap_ns = 1e3};
    struct profile_cause *causes;
    struct profile_site *sites;
    struct profile *p;
    struct error err;
    uint64_t process;
    uint8_t bytes[256];
    size_t n, blocks_found = 0;
    (void)state;
    FILE *f = fopen(MAP, "w");
    assert_non_null(f);
    fputs("1000 100 first\n1000 100 second\n", f);
    fclose(f);
    assert_int_equal(profile_create("times.db", &p, &err), 0);
    assert_int_equal(profile_add_process(p, PID, 7, "/bin/x", 5, &process, &err), 0);
    assert_int_equal(process, 1);
    assert_int_equal(profile_put_blocks(p, 1, blocks, sizeof blocks, &err), 0);
    for (uint64_t i = 0; i < 3; i++) { /* at 1200, 1450 (for 40 of 70 ns the first one's), 1700 */
        burst.start_ns = (uint64_t[]){200, 460, 700}[i];
        burst.end_ns = burst.start_ns + 70;
        assert_int_equal(profile_add_burst(p, &burst, &err), 0);
        n = put_block(bytes, (uint64_t[]){1, 10, 100}[i]);
        assert_int_equal(profile_put_sites_counts(p, burst.id, 1, bytes, n, &err), 0);
    }
    n = put_block(bytes, 1000);
    n += put_block(bytes + n, 20000);
    n += put_block(bytes + n, 300000);
    assert_int_equal(profile_put_sites_counts(p, 0, 1, bytes, n, &err), 0);
    assert_int_equal(symbols_name(p, &code, &err), 0);
    assert_int_equal(profile_each_site_counts(p, count_blocks, &blocks_found, &err), 0);
    assert_int_equal(blocks_found, 3 + 2); /* bursts; slices together */
    assert_int_equal(references(p, "first"), 1011);
    assert_int_equal(references(p, "second"), 320100);
    assert_int_equal(profile_sites(p, &sites, &n, &err), 0);
    assert_int_equal(n, 2);
    /* What has no time belongs to the one with most references, which has the first row. */
    assert_int_equal(profile_causes(p, &causes, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(causes[0].victim_site, sites[0].id);
    assert_int_equal(sites[0].references, 320100);
    free(sites);
    free(causes);
    profile_close(p, 1, &err);
    unlink(MAP);
}

static int setup(void **state)
{
    char folder[] = "/tmp/jit.XXXXXX";
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int teardown(void **state)
{
    char folder[64];
    (void)state;
    unlink("times.db");
    unlink("times.db-journal");
    return getcwd(folder, sizeof folder) == NULL || rmdir(folder) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other), cmocka_unit_test(many),
        cmocka_unit_test(times_of_a_dump),     cmocka_unit_test(other_clocks),
        cmocka_unit_test(lines_of_a_dump),     cmocka_unit_test(lines_behind_a_header),
        cmocka_unit_test(damaged_dumps),       cmocka_unit_test(too_many),
        cmocka_unit_test(grown_map),           cmocka_unit_test(by_the_time_of_bursts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
