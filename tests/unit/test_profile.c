/* SPDX-License-Identifier: Apache-2.0 */
/* The profile file: what goes in comes out, and whatever is not a whole profile is reported in one sentence.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "profile/profile.h"
#include "profile/sites.h"
#include "profile/windows.h"

static char folder[64];
static char path[128]; /* folder/p.db */

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/cachegram-test-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/p.db", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* Opening must fail with this code and one clean line that names the file. */
static void expect_refused(int expected, const char *word)
{
    struct profile *p = NULL;
    struct error err = {""};
    assert_int_equal(profile_open(path, &p, &err), expected);
    assert_null(p);
    assert_non_null(strstr(err.text, path));
    assert_null(strchr(err.text, '\n'));
    if (!strstr(err.text, word))
        fail_msg("'%s' does not say '%s'", err.text, word);
}

static void fill(struct hist *h, unsigned seed, unsigned values)
{
    memset(h, 0, sizeof *h);
    for (unsigned i = 0; i < values; i++) {
        seed = seed * 1103515245u + 12345u;
        hist_add(h, (uint64_t)seed << (seed % 20), 1 + seed % 1000);
    }
}

static void make(unsigned bursts)
{
    struct profile *p;
    struct error err;
    struct hist *h = malloc(sizeof *h);
    assert_int_equal(profile_create(path, &p, &err), 0);
    assert_int_equal(profile_set(p, "command", "ls -l", &err), 0);
    assert_int_equal(profile_set_number(p, "references", 12345678901.0, &err), 0);
    assert_int_equal(profile_set_number(p, "overhead_percent", 0.1, &err), 0);
    for (unsigned i = 0; i < bursts; i++) {
        struct profile_burst b = {.process = 1, .tid = i, .references = i + 1, .end = 2, .weight = 0.25 * i};
        assert_int_equal(profile_add_burst(p, &b, &err), 0);
        assert_int_equal(b.id, i + 1);
        fill(h, i, 300);
        assert_int_equal(profile_put_hist(p, b.id, PROFILE_HIST_STACK, h, &err), 0);
    }
    assert_int_equal(profile_close(p, 1, &err), 0);
    free(h);
}

static void ignore_counter(void *ctx, const char *name, uint64_t value)
{
    (void)ctx, (void)name, (void)value;
}

/* Of two processes that have overwritten their counters, and the times of their samples. */
static void test_overwritten_counters(void **state)
{
    (void)state;
    struct profile *p = NULL;
    struct error err;
    assert_int_equal(profile_create(path, &p, &err), 0);
    for (uint64_t process = 1; process <= 2; process++)
        assert_int_equal(profile_set_counter(p, process, "triggers", UINT64_C(0x7f7f7f7f7f7f7f7f), &err), 0);
    assert_int_equal(profile_counters(p, ignore_counter, NULL, &err), 0);
    for (uint64_t id = 1; id <= 2; id++) {
        const struct profile_time_window window = {
            .id = id, .process = id, .tid = 1, .cpu_ns = UINT64_C(0x7f7f7f7f7f7f7f7f), .phase = 1};
        assert_int_equal(profile_add_time_window(p, &window, NULL, NULL, &err), 0);
    }
    assert_int_equal(profile_put_phases(p, &err), 0);
    assert_int_equal(profile_close(p, 1, &err), 0);
}

struct seen {
    unsigned calls;
    uint64_t sum;
};

static void count_counter(void *ctx, const char *name, uint64_t value)
{
    struct seen *seen = ctx;
    assert_string_equal(name, "triggers");
    seen->calls++;
    seen->sum += value;
}

static void count_process(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe)
{
    struct seen *seen = ctx;
    assert_int_equal(ppid, 7);
    assert_string_equal(exe, "/bin/x");
    seen->calls++;
    seen->sum += id * 100 + pid;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct profile *p;
    struct error err;
    uint64_t first, second;
    struct hist *in = calloc(1, sizeof *in), *out = malloc(sizeof *out);
    assert_int_equal(profile_create(path, &p, &err), 0);
    assert_int_equal(profile_add_process(p, 11, 7, "/bin/x", 5, &first, &err), 0);
    assert_int_equal(profile_add_process(p, 12, 7, "/bin/x", 6, &second, &err), 0);
    assert_int_equal(profile_set_counter(p, first, "triggers", 99, &err), 0);
    assert_int_equal(profile_set_counter(p, first, "triggers", 3, &err), 0);
    assert_int_equal(profile_set_counter(p, second, "triggers", 4, &err), 0);
    assert_int_equal(
        profile_add_module(p, first, UINT64_C(0xffffffffff600000), UINT64_MAX, 0, "[vsyscall]", &err), 0);
    struct profile_burst b = {0,  second, 3,          4, 5,  6,   7,   8,   9,   10, 11,   12, 13,
                              14, 15,     UINT64_MAX, 8, 16, 0.1, 1e9, 1.5, NAN, 17, 0.25, 2e7};
    assert_int_equal(profile_add_burst(p, &b, &err), 0);
    /* Both ends of the bins, neighbours, a gap, a count of 64 bits. */
    in->count[0] = 1;
    in->count[1] = 127;
    in->count[2] = 128;
    in->count[HIST_BINS - 1] = UINT64_C(1) << 62;
    in->total = 256 + (UINT64_C(1) << 62);
    assert_int_equal(profile_put_hist(p, b.id, PROFILE_HIST_AGE, in, &err), 0);
    memset(out, 0, sizeof *out);
    assert_int_equal(profile_put_hist(p, b.id, PROFILE_HIST_FIRST, out, &err), 0);
    assert_int_equal(profile_set(p, "command", "a", &err), 0);
    assert_int_equal(profile_set(p, "command", "it's \"b\"\n", &err), 0);
    assert_int_equal(profile_set_number(p, "x", 0.1, &err), 0);
    assert_int_equal(profile_close(p, 1, &err), 0);

    assert_int_equal(profile_open(path, &p, &err), 0);
    char text[32];
    double number;
    assert_int_equal(profile_get(p, "command", text, sizeof text, &err), 0);
    assert_string_equal(text, "it's \"b\"\n");
    assert_int_equal(profile_get(p, "complete", text, sizeof text, &err), 0);
    assert_string_equal(text, "yes");
    assert_int_equal(profile_get_number(p, "x", &number, &err), 0);
    assert_true(number == 0.1);
    assert_int_equal(profile_find_damage(p, &err), 0);
    assert_int_equal(profile_get_number(p, "command", &number, NULL), -EBADMSG);
    assert_int_equal(profile_find_damage(p, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "'command' is not a number"));
    assert_int_equal(profile_get(p, "absent", text, sizeof text, &err), -ENOENT);
    struct profile_burst *bursts;
    size_t n;
    assert_int_equal(profile_bursts(p, &bursts, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(bursts[0].id, b.id);
    assert_int_equal(bursts[0].tid, b.tid);
    /* From here on the struct has no holes. */
    size_t from = offsetof(struct profile_burst, start_ns);
    assert_memory_equal((char *)&bursts[0] + from, (char *)&b + from, sizeof b - from);
    free(bursts);
    assert_int_equal(profile_get_hist(p, b.id, PROFILE_HIST_AGE, out, &err), 0);
    assert_memory_equal(in, out, sizeof *in);
    assert_int_equal(profile_get_hist(p, b.id, PROFILE_HIST_FIRST, out, &err), 0);
    assert_int_equal(out->total, 0);
    assert_int_equal(profile_get_hist(p, b.id, PROFILE_HIST_STACK, out, &err), -ENOENT);
    struct seen seen = {0, 0};
    assert_int_equal(profile_counters(p, count_counter, &seen, &err), 0);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.sum, 7);
    seen = (struct seen){0, 0};
    assert_int_equal(profile_processes(p, count_process, &seen, &err), 0);
    assert_int_equal(seen.calls, 2);
    assert_int_equal(seen.sum, 323);
    assert_int_equal(profile_close(p, 0, &err), 0);
    free(in);
    free(out);
}

static void test_watches(void **state)
{
    (void)state;
    struct profile *p;
    struct error err;
    struct hist *in = calloc(1, sizeof *in), *out = malloc(sizeof *out);
    struct profile_burst b = {
        .references = 1, .start_refs = NAN, .refs_per_ns = NAN, .string_hits = NAN, .gap_ns = 2e7};
    struct profile_watch w[3] = {
        {.burst = 2,
         .object = 9,
         .address = UINT64_MAX - 63,
         .position = 5,
         .age = 6,
         .refs = NAN,
         .clock_error = NAN},
        {.burst = 1, .address = 64, .position = 0, .age = 0, .refs = NAN, .clock_error = NAN},
        {.burst = 2, .address = 128, .outcome = PROFILE_REFUSED, .refs = 0, .clock_error = 0},
    };
    assert_int_equal(profile_create(path, &p, &err), 0);
    assert_int_equal(profile_add_burst(p, &b, &err), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(profile_add_watch(p, &w[i], &err), 0);
    struct profile_watch reported = {.id = w[0].id,
                                     .outcome = PROFILE_REUSED,
                                     .refs = 12.5,
                                     .cpu_ns = 1e6,
                                     .translated_refs = 300,
                                     .clock_error = 0.25,
                                     .pc = UINT64_MAX - 5};
    assert_int_equal(profile_set_outcome(p, &reported, &err), 0);
    struct profile_hit *hits;
    size_t nhits;
    assert_int_equal(profile_hits(p, NULL, &hits, &nhits, &err), 0); /* of burst 2, which is not stored */
    assert_int_equal(nhits, 0);
    free(hits);
    b.process = 7;
    assert_int_equal(profile_add_burst(p, &b, &err), 0);
    assert_int_equal(b.id, 2);
    const struct profile_watched of7 = {7, 1, 3}, others[] = {{6, 1, 3}, {7, 0, 0}, {7, 2, 3}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(profile_hits(p, &others[i], &hits, &nhits, &err), 0);
        assert_int_equal(nhits, 0);
        free(hits);
    }
    for (uint64_t site = PROFILE_SITE_NONE; site != 3; site = site == PROFILE_SITE_NONE ? 0 : 3) {
        assert_int_equal(profile_set_hit_site(p, reported.id, site, &err), 0);
        assert_int_equal(profile_hits(p, &of7, &hits, &nhits, &err), 0);
        assert_true(nhits == 1 && hits[0].watch == reported.id && hits[0].pc == reported.pc &&
                    hits[0].site == site);
        free(hits);
    }
    assert_int_equal(profile_set_hit_site(p, reported.id, 3, &err), 0);
    reported.id = 99;
    assert_int_equal(profile_set_outcome(p, &reported, &err), -ENOENT);
    in->count[32] = in->total = 7;
    assert_int_equal(profile_put_sets(p, b.id, 64, in, &err), 0);
    assert_int_equal(profile_close(p, 1, &err), 0);

    struct profile_burst *bursts;
    struct profile_watch *watches;
    size_t n;
    assert_int_equal(profile_open(path, &p, &err), 0);
    assert_int_equal(profile_bursts(p, &bursts, &n, &err), 0);
    assert_true(n == 2 && isnan(bursts[0].start_refs) && isnan(bursts[0].refs_per_ns));
    assert_int_equal(profile_watches(p, &watches, &n, &err), 0);
    assert_int_equal(n, 3); /* by burst, then in the order of choice */
    assert_true(watches[0].burst == 1 && watches[0].outcome == PROFILE_OPEN && isnan(watches[0].refs) &&
                isnan(watches[0].clock_error) && watches[0].address == 64);
    assert_true(watches[1].id == w[0].id && watches[1].address == w[0].address && watches[1].position == 5 &&
                watches[1].age == 6 && watches[1].outcome == PROFILE_REUSED && watches[1].refs == 12.5 &&
                watches[1].cpu_ns == 1e6 && watches[1].translated_refs == 300 &&
                watches[1].clock_error == 0.25 && watches[1].pc == UINT64_MAX - 5 && watches[1].site == 3 &&
                watches[1].object == 9);
    assert_true(watches[2].outcome == PROFILE_REFUSED && watches[2].refs == 0 && watches[2].pc == 0 &&
                watches[2].object == 0 && watches[2].site == 0);
    assert_int_equal(profile_get_sets(p, b.id, 64, out, &err), 0);
    assert_memory_equal(in, out, sizeof *in);
    assert_int_equal(profile_get_sets(p, b.id, 128, out, &err), -ENOENT);
    assert_int_equal(profile_close(p, 0, &err), 0);
    free(bursts);
    free(watches);
    free(in);
    free(out);
}

static void test_old_is_kept(void **state)
{
    (void)state;
    char old[160], text[32];
    struct profile *p, *q;
    struct error err;
    make(1);
    assert_int_equal(profile_create(path, &p, &err), 0);
    /* It is being written: no one may take its place, but from the first commit on it can be read. */
    assert_int_equal(profile_create(path, &q, &err), -EBUSY);
    assert_int_equal(profile_commit(p, &err), 0);
    assert_int_equal(profile_create(path, &q, &err), -EBUSY);
    assert_int_equal(profile_open(path, &q, &err), 0);
    assert_int_equal(profile_get(q, "complete", text, sizeof text, &err), 0);
    assert_string_equal(text, "no");
    /* A reader does not stop the writer; what is said meanwhile comes with the next commit. */
    assert_int_equal(profile_set(p, "k", "v", &err), 0);
    assert_int_equal(profile_commit(p, &err), 0);
    assert_int_equal(profile_close(q, 0, &err), 0);
    assert_int_equal(profile_commit(p, &err), 0);
    assert_int_equal(profile_open(path, &q, &err), 0);
    assert_int_equal(profile_get(q, "k", text, sizeof text, &err), 0);
    assert_int_equal(profile_close(q, 0, &err), 0);
    assert_int_equal(profile_close(p, 1, &err), 0);
    snprintf(old, sizeof old, "%s.old", path);
    assert_int_equal(profile_open(old, &q, &err), 0);
    assert_int_equal(profile_get(q, "command", text, sizeof text, &err), 0);
    assert_string_equal(text, "ls -l");
    assert_int_equal(profile_close(q, 0, &err), 0);
}

/* Nothing is lost if a reader does not stop before the writer is done. */
static void test_lasting_reader(void **state)
{
    (void)state;
    char text[32], command[256];
    struct profile *p, *reader, *q;
    struct error err;
    assert_int_equal(profile_create(path, &p, &err), 0);
    assert_int_equal(profile_set(p, "command", "ls", &err), 0);
    assert_int_equal(profile_commit(p, &err), 0);
    assert_int_equal(profile_open(path, &reader, &err), 0);
    for (int i = 0; i < 3; i++) {
        struct profile_burst burst = {.process = 1};
        assert_int_equal(profile_add_burst(p, &burst, &err), 0);
        assert_int_equal(profile_commit(p, &err), 0);
    }
    assert_int_equal(profile_close(p, 1, &err), 0);
    struct profile_burst *bursts;
    size_t n;
    assert_int_equal(profile_bursts(reader, &bursts, &n, &err), 0);
    assert_int_equal(n, 0);
    free(bursts);
    assert_int_equal(profile_get(reader, "complete", text, sizeof text, &err), 0);
    assert_string_equal(text, "no");
    assert_int_equal(profile_open(path, &q, &err), 0);
    assert_int_equal(profile_bursts(q, &bursts, &n, &err), 0);
    assert_int_equal(n, 3);
    free(bursts);
    assert_int_equal(profile_get(q, "complete", text, sizeof text, &err), 0);
    assert_string_equal(text, "yes");
    assert_int_equal(profile_close(q, 0, &err), 0);
    assert_int_equal(profile_close(reader, 0, &err), 0);
    snprintf(command, sizeof command, "test \"$(ls -A '%s')\" = p.db", folder); /* nothing else is left */
    assert_int_equal(system(command), 0);
}

/* A writer that commits all the time, killed at a moment we do not choose. */
static void test_killed_writer(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 25; round++) {
        int ready[2];
        assert_int_equal(pipe(ready), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct profile *p;
            struct hist *h = malloc(sizeof *h);
            if (profile_create(path, &p, NULL) != 0 || profile_commit(p, NULL) != 0)
                _exit(1);
            if (write(ready[1], "x", 1) != 1)
                _exit(1);
            for (unsigned i = 1;; i++) {
                struct profile_burst b = {.tid = i};
                fill(h, i, 2000);
                if (profile_add_burst(p, &b, NULL) != 0 ||
                    profile_put_hist(p, b.id, PROFILE_HIST_REUSE, h, NULL) != 0 ||
                    profile_set_number(p, "bursts", i, NULL) != 0 ||
                    (i % 3 == 0 && profile_commit(p, NULL) != 0))
                    _exit(1);
            }
        }
        char byte;
        assert_int_equal(read(ready[0], &byte, 1), 1);
        usleep(2000 + round * 1700);
        kill(pid, SIGKILL);
        int status;
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        close(ready[0]);
        close(ready[1]);

        struct profile *p;
        struct error err = {""};
        struct profile_burst *bursts;
        size_t n;
        double number = 0;
        if (profile_open(path, &p, &err) != 0)
            fail_msg("%s", err.text);
        assert_int_equal(profile_bursts(p, &bursts, &n, &err), 0);
        /* All of a commit or nothing of it. */
        assert_int_equal(n % 3, 0);
        profile_get_number(p, "bursts", &number, NULL);
        assert_true(number == (double)n);
        struct hist *h = malloc(sizeof *h), *expected = malloc(sizeof *h);
        for (size_t i = 0; i < n; i++) {
            fill(expected, bursts[i].tid, 2000);
            assert_int_equal(profile_get_hist(p, bursts[i].id, PROFILE_HIST_REUSE, h, &err), 0);
            assert_memory_equal(h, expected, sizeof *h);
        }
        free(h);
        free(expected);
        free(bursts);
        profile_close(p, 0, NULL);
    }
}

/* Counts of processes whose references were all recorded, in any number, leave those of bursts their room. */
static void test_thinned(void **state)
{
    (void)state;
    static const uint8_t counts[1000];
    struct profile *p;
    struct error err;
    uint64_t left;
    assert_int_equal(profile_create(path, &p, &err), 0);
    for (uint64_t process = 1; process <= 5; process++)
        assert_int_equal(profile_put_sites_counts(p, 0, process, counts, sizeof counts, &err), 0);
    for (uint64_t burst = 1; burst <= 7; burst++)
        assert_int_equal(profile_put_sites_counts(p, burst, 1, counts, burst, &err), 0);
    assert_int_equal(profile_thin_sites(p, 2, &left, &err), 0);
    assert_int_equal(left, 1 + 3 + 5 + 7);
    assert_int_equal(profile_thin_sites(p, 4, &left, &err), 0);
    assert_int_equal(left, 1 + 5);
    assert_int_equal(profile_close(p, 1, &err), 0);
}

static void test_truncated(void **state)
{
    (void)state;
    make(40);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 20000);
    for (off_t size = (st.st_size - 1) / 512 * 512; size > 0; size -= 512) {
        assert_int_equal(truncate(path, size), 0);
        expect_refused(-EBADMSG, "");
    }
    assert_int_equal(truncate(path, 99), 0);
    expect_refused(-EBADMSG, "truncated");
    assert_int_equal(truncate(path, 0), 0);
    expect_refused(-EINVAL, "empty");
}

static void overwrite(off_t at, const void *bytes, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(fd, bytes, size, at), size);
    close(fd);
}

/*
 * Random bytes anywhere: a refusal, or the histograms that were written (the noise hit unused space), but
 * no crash and no bad read (the sanitizers watch).
 */
static void test_damaged(void **state)
{
    (void)state;
    unsigned refused = 0, seed = 1;
    for (unsigned round = 0; round < 150; round++) {
        unlink(path);
        make(160); /* most of the file is rows, not empty tables */
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        unsigned char noise[64];
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (unsigned char)((seed = seed * 1103515245u + 12345u) >> 16);
        overwrite((off_t)(seed >> 3) % (st.st_size - 64), noise, sizeof noise);
        struct profile *p = NULL;
        struct error err = {""};
        int code = profile_open(path, &p, &err);
        if (code == 0) {
            struct profile_burst *bursts = NULL;
            size_t n = 0;
            struct hist *h = malloc(sizeof *h), *expected = malloc(sizeof *h);
            code = profile_bursts(p, &bursts, &n, &err);
            for (size_t i = 0; code == 0 && i < n; i++) {
                code = profile_get_hist(p, bursts[i].id, PROFILE_HIST_STACK, h, &err);
                fill(expected, (unsigned)(bursts[i].id - 1), 300);
                if (code == 0)
                    assert_memory_equal(h, expected, sizeof *h);
            }
            free(bursts);
            free(h);
            free(expected);
            profile_close(p, 0, NULL);
        }
        if (code != 0) {
            refused++;
            assert_true(err.text[0] != 0);
            assert_null(strchr(err.text, '\n'));
        }
    }
    if (refused < 60) /* most of the rest is in pages of tables that are empty here */
        fail_msg("only %u of 150 found", refused);
}

static void test_foreign(void **state)
{
    (void)state;
    expect_refused(-ENOENT, "no profile");
    assert_int_equal(mkdir(path, 0700), 0);
    expect_refused(-EINVAL, "folder");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(-EINVAL, "regular");
    unlink(path);
    overwrite(0, "#!/bin/sh\n", 10);
    expect_refused(-EINVAL, "not a cachegram profile");
    unlink(path);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_refused(-EINVAL, "not a cachegram profile");
    unlink(path);
    make(1);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=1000", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_refused(-EPROTO, "newer");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=6", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_refused(-EPROTO, "older");
}

/* What the pirate measured: added to a profile that is there, in place of what was there by the same way. */
static void pirates(void **state)
{
    (void)state;
    struct profile *p;
    struct profile_pirate *rows, put[2] = {
                                     {.available_bytes = 1 << 20,
                                      .stolen_bytes = 3 << 20,
                                      .intervals = 7,
                                      .dropped = 2,
                                      .valid = 1,
                                      .cpu_ns = 14,
                                      .units = 7,
                                      .ns_per_unit = 2,
                                      .ns_low = 1.5,
                                      .ns_high = 2.5,
                                      .ns_per_ref = NAN,
                                      .cpi = 0.25,
                                      .gbps = NAN,
                                      .fetch_ratio = NAN,
                                      .miss_ratio = 0.125,
                                      .pirate_fetch_ratio = 0.001,
                                      .lost_share = 0},
                                     {.available_bytes = 4 << 20, .ns_per_unit = NAN},
                                 };
    size_t n;
    struct error err;
    assert_int_equal(profile_append(path, &p, &err), -ENOENT);
    assert_int_equal(profile_create(path, &p, &err), 0);
    assert_int_equal(profile_set(p, "command", "x", &err), 0);
    assert_int_equal(profile_close(p, 1, &err), 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(profile_append(path, &p, &err), 0);
        assert_int_equal(profile_put_pirates(p, "pirate", put, 2, &err), 0);
        assert_int_equal(profile_put_pirates(p, "resctrl", put, 1, &err), 0);
        assert_int_equal(profile_close(p, 0, &err), 0);
    }
    assert_int_equal(profile_open(path, &p, &err), 0);
    assert_int_equal(profile_pirates(p, &rows, &n, &err), 0);
    profile_close(p, 0, NULL);
    assert_int_equal(n, 3);
    assert_int_equal(rows[0].available_bytes, 4 << 20); /* largest first, by `by` */
    assert_true(!rows[0].valid && isnan(rows[0].ns_per_unit));
    assert_string_equal(rows[1].by, "pirate");
    assert_string_equal(rows[2].by, "resctrl");
    assert_true(rows[1].valid && rows[1].stolen_bytes == 3 << 20 && rows[1].intervals == 7 &&
                rows[1].dropped == 2);
    assert_true(rows[1].cpu_ns == 14 && rows[1].units == 7 && rows[1].ns_per_unit == 2 &&
                rows[1].ns_low == 1.5);
    assert_true(rows[1].ns_high == 2.5 && isnan(rows[1].ns_per_ref) && rows[1].cpi == 0.25 &&
                isnan(rows[1].gbps));
    assert_true(isnan(rows[1].fetch_ratio) && rows[1].miss_ratio == 0.125 &&
                rows[1].pirate_fetch_ratio == 0.001);
    free(rows);
    /* One that is being written. */
    assert_int_equal(profile_append(path, &p, &err), 0);
    struct profile *second;
    assert_int_equal(profile_append(path, &second, &err), -EBUSY);
    assert_int_equal(profile_put_pirates(p, "pirate", put, 1, &err), 0);
    assert_int_equal(profile_close(p, 0, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overwritten_counters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lasting_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_killed_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_thinned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign, setup, teardown),
        cmocka_unit_test_setup_teardown(pirates, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
