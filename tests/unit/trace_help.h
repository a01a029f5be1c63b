/* SPDX-License-Identifier: Apache-2.0 */
/* trace_help.h - traces in memory, for the tests of src/trace: made up, written, read back, compared. */
#ifndef CACHEGRAM_TRACE_HELP_H
#define CACHEGRAM_TRACE_HELP_H

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/random.h"
#include "trace/trace.h"

struct reference {
    uint64_t address, pc;
    uint32_t pid, tid;
    uint16_t size;
    uint8_t rw, burst;
    uint32_t unused; /* no gap: references are compared as bytes */
};

struct references_list {
    struct reference *r;
    size_t n, capacity;
};

static inline void add_reference(struct references_list *l, struct reference r)
{
    if (l->n == l->capacity) {
        l->capacity = 2 * l->capacity + 1024;
        l->r = realloc(l->r, l->capacity * sizeof(*l->r));
        assert_non_null(l->r);
    }
    l->r[l->n++] = r;
}

static inline void free_list(struct references_list *l)
{
    free(l->r);
    *l = (struct references_list){0};
}

/* Somewhat like a program: loops over instructions that walk, stay, or jump about; two threads; bursts. */
static inline void make_up(struct references_list *l, size_t n, uint64_t seed, int bursts)
{
    struct random_state random;
    uint32_t tid = 7;
    random_seed(&random, seed);
    while (l->n < n) {
        uint64_t pc = 0x400000 + random_below(&random, 50) * 64, rounds = 1 + random_below(&random, 200);
        uint64_t base = random_below(&random, 1u << 20) * 8, length = 1 + random_below(&random, 12);
        int burst = bursts && random_below(&random, 10) == 0;
        if (random_below(&random, 8) == 0)
            tid = 7 + (uint32_t)random_below(&random, 3);
        for (uint64_t round = 0; round < rounds; round++)
            for (uint64_t i = 0; i < length && l->n < n; i++, burst = 0) {
                struct reference r = {.pc = pc + 3 * i, .pid = 5, .tid = tid, .burst = burst != 0};
                r.address = i % 3 == 0   ? base + round * 8
                            : i % 3 == 1 ? 0x7ffffff000 - i * 8
                                         : random_next(&random) >> random_below(&random, 64);
                r.rw = i % 2 == 0 ? TRACE_LOAD : TRACE_STORE;
                r.size = (uint16_t)(i == 5 ? 65535 : 1 + i);
                add_reference(l, r);
            }
    }
}

/* Appends references begin .. end-1, in batches of random length. */
static inline int write_list(struct trace_writer *w, const struct references_list *l, size_t begin,
                             size_t end, struct error *err)
{
    static uint64_t address[TRACE_BATCH], pc[TRACE_BATCH];
    static uint16_t size[TRACE_BATCH];
    static uint8_t rw[TRACE_BATCH];
    static struct trace_segment segment[TRACE_BATCH];
    struct random_state random;
    random_seed(&random, end);
    while (begin < end) {
        size_t n = 1 + random_below(&random, TRACE_BATCH), segments = 0;
        n = n < end - begin ? n : end - begin;
        for (size_t i = 0; i < n; i++) {
            const struct reference *r = &l->r[begin + i];
            int64_t thread = trace_writer_thread(w, (struct trace_thread){r->pid, r->tid}, err);
            assert_true(thread >= 0);
            address[i] = r->address;
            pc[i] = r->pc;
            size[i] = r->size;
            rw[i] = r->rw;
            if (segments == 0 || r->burst || segment[segments - 1].thread != thread)
                segment[segments++] = (struct trace_segment){(uint32_t)i, 0, (uint32_t)thread, r->burst};
            segment[segments - 1].end = (uint32_t)i + 1;
        }
        const struct trace_batch batch = {n, address, pc, size, rw, segments, segment};
        int status = trace_write(w, &batch, err);
        if (status < 0)
            return status;
        begin += n;
    }
    return 0;
}

/* All that is left of the trace; what trace_next returned last. */
static inline int read_list(struct trace_reader *r, struct references_list *l, struct error *err)
{
    struct trace_batch batch;
    int status;
    while ((status = trace_next(r, &batch, err)) > 0) {
        size_t expected = 0;
        assert_in_range(batch.n, 1, TRACE_BATCH);
        for (size_t s = 0; s < batch.nsegments; s++) {
            const struct trace_segment *segment = &batch.segment[s];
            assert_int_equal(segment->begin, expected);
            assert_true(segment->end > segment->begin);
            expected = segment->end;
            struct trace_thread thread = trace_thread(r, segment->thread);
            for (size_t i = segment->begin; i < segment->end; i++)
                add_reference(l, (struct reference){batch.address[i], batch.pc[i], thread.pid, thread.tid,
                                                    batch.size[i], batch.rw[i],
                                                    i == segment->begin && segment->burst, 0});
        }
        assert_int_equal(expected, batch.n);
    }
    return status;
}

/* That l is what begins at reference `begin` of `of`. */
static inline void check_part(const struct references_list *l, const struct references_list *of, size_t begin)
{
    assert_true(begin + l->n <= of->n);
    for (size_t i = 0; i < l->n; i++)
        if (memcmp(&l->r[i], &of->r[begin + i], sizeof(l->r[i])) != 0)
            fail_msg("reference %zu differs: address %llx, not %llx", begin + i,
                     (unsigned long long)l->r[i].address, (unsigned long long)of->r[begin + i].address);
}

/* A name for a file, in a folder that is deleted at the end. */
static inline const char *test_path(const char *name)
{
    static char folder[64], path[4][128];
    static unsigned next;
    if (folder[0] == '\0') {
        snprintf(folder, sizeof(folder), "/tmp/cachegram-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    next = (next + 1) % 4;
    snprintf(path[next], sizeof(path[next]), "%s/%s", folder, name);
    return path[next];
}

static inline int remove_test_folder(void **state)
{
    (void)state;
    char command[160];
    snprintf(command, sizeof(command), "rm -rf '%s'", test_path(""));
    return system(command);
}

static inline void save(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline uint8_t *load(const char *path, size_t *n)
{
    struct stat st;
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    *n = (size_t)st.st_size;
    uint8_t *data = malloc(*n + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *n, f), *n);
    data[*n] = '\0';
    fclose(f);
    return data;
}

#endif
