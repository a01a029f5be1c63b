/* SPDX-License-Identifier: Apache-2.0 */
/* The own trace format: round trips, blocks, the index, and every kind of damage. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/resource.h>
#include "trace/cgtrace-layout.h"
#include "trace_help.h"

static struct error err;

static struct trace_writer *create(const char *path, int background)
{
    const struct trace_create_options options = {.source = "made up", .sampled = 1, .background = background};
    struct trace_writer *w = trace_create(path, &options, &err);
    if (w == NULL)
        fail_msg("%s", err.text);
    return w;
}

static struct trace_reader *open_trace(const char *path)
{
    struct trace_reader *r = trace_open(path, NULL, &err);
    if (r == NULL)
        fail_msg("%s", err.text);
    return r;
}

static void check_whole(const char *path, const struct references_list *list)
{
    struct references_list read = {0};
    struct trace_reader *r = open_trace(path);
    assert_string_equal(trace_info(r)->source, "made up");
    assert_string_equal(trace_info(r)->format, "cachegram");
    assert_true(trace_info(r)->sampled);
    assert_int_equal(trace_info(r)->references, list->n);
    assert_int_equal(read_list(r, &read, &err), 0);
    assert_null(trace_damage(r));
    assert_int_equal(read.n, list->n);
    check_part(&read, list, 0);
    assert_true(trace_progress(r) == 1);
    trace_close(r);
    free_list(&read);
}

static void round_trip(void **state)
{
    (void)state;
    for (int background = 0; background < 2; background++)
        for (uint64_t seed = 0; seed < 30; seed++) {
            const char *path = test_path("round");
            struct references_list list = {0};
            /* Seed 0: more than two blocks. */
            make_up(&list, seed == 0 ? 2300000 : 1 + seed * seed * 37, seed, 1);
            struct trace_writer *w = create(path, background);
            assert_int_equal(write_list(w, &list, 0, list.n, &err), 0);
            assert_int_equal(trace_written_references(w), list.n);
            trace_writer_instructions(w, 12345);
            uint64_t bytes;
            struct stat st;
            assert_int_equal(trace_finish(w, &bytes, &err), 0);
            assert_int_equal(stat(path, &st), 0);
            assert_int_equal(bytes, st.st_size);
            check_whole(path, &list);
            free_list(&list);
        }
}

/* Every width of difference, sizes and addresses at their ends; more sites than a block takes. */
static void extremes(void **state)
{
    (void)state;
    struct references_list list = {0};
    const char *path = test_path("extremes");
    for (unsigned shift = 0; shift < 64; shift++)
        for (uint64_t step = 0; step < 3; step++)
            for (unsigned rw = TRACE_LOAD; rw <= TRACE_STORE; rw++)
                add_reference(
                    &list, (struct reference){.address = (UINT64_C(1) << shift) * (step % 2 ? 1 : -1u) - step,
                                              .pc = UINT64_MAX << shift,
                                              .size = (uint16_t)(step == 0 ? 1 : 65535),
                                              .rw = (uint8_t)rw});
    for (uint64_t i = 0; i < 150000; i++)
        add_reference(&list, (struct reference){.address = i * 24, .pc = i * 5, .size = 8, .rw = TRACE_LOAD});
    struct trace_writer *w = create(path, 0);
    assert_int_equal(write_list(w, &list, 0, list.n, &err), 0);
    assert_int_equal(trace_finish(w, NULL, &err), 0);
    check_whole(path, &list);
    free_list(&list);
}

/* The index says where each block is, and how many references there are; without it, that is known at the
 * end. */
static void index_of_blocks(void **state)
{
    (void)state;
    struct references_list list = {0};
    const char *path = test_path("index"), *cut = test_path("index-cut");
    struct cgtrace_end end;
    struct cgtrace_index index;
    uint64_t next = 0;
    make_up(&list, 2200000, 3, 0);
    struct trace_writer *w = create(path, 0);
    assert_int_equal(write_list(w, &list, 0, list.n, &err), 0);
    assert_int_equal(trace_finish(w, NULL, &err), 0);
    size_t n;
    uint8_t *data = load(path, &n);
    memcpy(&end, data + n - sizeof(end), sizeof(end));
    memcpy(&index, data + end.index_offset, sizeof(index));
    assert_int_equal(index.references, list.n);
    assert_int_equal(index.blocks, 3);
    for (uint64_t i = 0; i < index.blocks; i++) {
        struct cgtrace_entry entry;
        struct cgtrace_block block;
        memcpy(&entry, data + end.index_offset + sizeof(index) + i * sizeof(entry), sizeof(entry));
        memcpy(&block, data + entry.offset, sizeof(block));
        assert_int_equal(block.magic, CGTRACE_BLOCK);
        assert_int_equal(entry.first, next);
        assert_int_equal(block.first, next);
        next += block.references;
    }
    assert_int_equal(next, list.n);
    save(cut, data, end.index_offset);
    free(data);
    for (int i = 0; i < 2; i++) {
        struct references_list read = {0};
        struct trace_reader *r = open_trace(i == 0 ? path : cut);
        assert_true(trace_info(r)->references == (i == 0 ? list.n : TRACE_UNKNOWN));
        assert_int_equal(read_list(r, &read, &err), 0);
        assert_int_equal(read.n, list.n);
        check_part(&read, &list, 0);
        assert_true((trace_damage(r) != NULL) == (i == 1));
        free_list(&read);
        trace_close(r);
    }
    free_list(&list);
}

/* A small trace of three blocks; *list is what it holds. */
static uint8_t *small_trace(struct references_list *list, size_t *n, size_t ends[3])
{
    const char *path = test_path("small");
    struct stat st;
    make_up(list, 600, 9, 1);
    struct trace_writer *w = create(path, 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(write_list(w, list, i * 200, (i + 1) * 200, &err), 0);
        assert_int_equal(trace_flush(w, &err), 0);
        assert_int_equal(stat(path, &st), 0);
        ends[i] = (size_t)st.st_size; /* a recorder that is killed now leaves that */
    }
    assert_int_equal(trace_finish(w, NULL, &err), 0);
    return load(path, n);
}

/* Reads it; the references are a beginning of the list, in whole blocks; how many. SIZE_MAX: not opened. */
static size_t read_beginning(const char *path, const struct references_list *list, int *damaged)
{
    struct references_list read = {0};
    struct trace_reader *r = trace_open(path, NULL, &err);
    *damaged = 1;
    if (r == NULL) {
        assert_true(strlen(err.text) > 0 && strchr(err.text, '\n') == NULL);
        return SIZE_MAX;
    }
    assert_int_equal(read_list(r, &read, &err), 0);
    *damaged = trace_damage(r) != NULL;
    if (*damaged)
        assert_non_null(strstr(trace_damage(r)->text, path));
    check_part(&read, list, 0);
    assert_int_equal(read.n % 200, 0);
    size_t n = read.n;
    free_list(&read);
    trace_close(r);
    return n;
}

static void truncation(void **state)
{
    (void)state;
    struct references_list list = {0};
    const char *path = test_path("cut");
    size_t n, ends[3];
    uint8_t *data = small_trace(&list, &n, ends);
    for (size_t length = 0; length < n; length++) {
        int damaged;
        save(path, data, length);
        size_t read = read_beginning(path, &list, &damaged);
        size_t whole = length >= ends[2] ? 3 : length >= ends[1] ? 2 : length >= ends[0];
        if (read != SIZE_MAX)
            assert_int_equal(read, 200 * whole);
        else
            assert_int_equal(whole, 0);
        /* Behind the last block only the index is missing, which reading does not need. */
        assert_true(damaged || length >= ends[2] + 4);
    }
    free(data);
    free_list(&list);
}

static void flipped_bits(void **state)
{
    (void)state;
    struct references_list list = {0};
    const char *path = test_path("flip");
    size_t n, ends[3], unharmed = 0;
    uint8_t *data = small_trace(&list, &n, ends);
    for (size_t i = 0; i < n; i++) {
        int damaged;
        data[i] ^= (uint8_t)(1u << i % 8);
        save(path, data, n);
        size_t read = read_beginning(path, &list, &damaged);
        data[i] ^= (uint8_t)(1u << i % 8);
        if (read == SIZE_MAX)
            assert_true(i < ends[0]);
        else if (i < ends[0])
            assert_true(read == 0 || !damaged);
        else if (i < ends[2])
            assert_true(read == (i < ends[1] ? 200 : 400) || !damaged);
        unharmed += !damaged;
    }
    /* Only in the index, and in the bit of each zstd frame's header that decoders must ignore. */
    assert_true(unharmed <= n - ends[2] + 3 * 9);
    free(data);
    free_list(&list);
}

/* Blocks after which others were lost: never silently joined. */
static void lost_block(void **state)
{
    (void)state;
    struct references_list list = {0};
    const char *path = test_path("lost");
    size_t n, ends[3];
    int damaged;
    uint8_t *data = small_trace(&list, &n, ends);
    memmove(data + ends[0], data + ends[1], n - ends[1]);
    save(path, data, n - (ends[1] - ends[0]));
    assert_int_equal(read_beginning(path, &list, &damaged), 200);
    assert_true(damaged);
    free(data);
    free_list(&list);
}

/* As from a pipe: nothing but the order of bytes. */
static void from_a_pipe(void **state)
{
    (void)state;
    struct references_list list = {0}, read = {0};
    const char *path = test_path("fifo");
    size_t n, ends[3];
    uint8_t *data = small_trace(&list, &n, ends);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        for (size_t i = 0; i < n; i += 777)
            if (write(fd, data + i, n - i < 777 ? n - i : 777) < 0)
                _exit(1);
        _exit(0);
    }
    struct trace_reader *r = open_trace(path);
    assert_int_equal(trace_info(r)->references, TRACE_UNKNOWN);
    assert_true(isnan(trace_progress(r)));
    assert_int_equal(read_list(r, &read, &err), 0);
    assert_null(trace_damage(r));
    assert_int_equal(trace_info(r)->references, list.n);
    assert_int_equal(read.n, list.n);
    check_part(&read, &list, 0);
    trace_close(r);
    free(data);
    free_list(&list);
    free_list(&read);
}

static void bad_input(void **state)
{
    (void)state;
    const char *path = test_path("bad");
    assert_null(trace_open(test_path("missing"), NULL, &err));
    assert_non_null(strstr(err.text, "No such file"));
    assert_null(trace_open("/tmp", NULL, &err));
    assert_non_null(strstr(err.text, "folder"));
    save(path, "", 0);
    assert_null(trace_open(path, NULL, &err));
    assert_non_null(strstr(err.text, "empty"));
    save(path, "SQLite format 3", 16);
    assert_null(trace_open(path, NULL, &err));
    assert_non_null(strstr(err.text, "not a trace"));
    assert_null(trace_open(path, "nonsense", &err));
    assert_non_null(strstr(err.text, "nonsense"));
    save(path, "CGTRACE\n\002\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    assert_null(trace_open(path, NULL, &err));
    assert_non_null(strstr(err.text, "version 2"));

    /* References that are none. */
    static const struct reference wrong[] = {
        {.size = 0, .rw = TRACE_LOAD}, {.size = 4, .rw = 0}, {.size = 4, .rw = 3}};
    for (size_t i = 0; i < 3; i++) {
        struct references_list list = {0};
        struct trace_writer *w = create(path, 0);
        make_up(&list, 10, 1, 0);
        add_reference(&list, wrong[i]);
        assert_int_equal(write_list(w, &list, 0, list.n, &err), -EINVAL);
        trace_abandon(w);
        assert_int_equal(access(path, F_OK), -1);
        free_list(&list);
    }
}

/* More than one block of what is made up, less than two. */
#define LIMIT (UINT32_C(3) << 20)

static void full_disk(void **state)
{
    (void)state;
    struct trace_create_options options = {.source = ""};
    assert_null(trace_create("/dev/full", &options, &err));
    assert_non_null(strstr(err.text, "No space left"));
    assert_null(trace_create("/nonexistent/file", &options, &err));

    /* A limit on the size of files, as a disk that gets full on the way. */
    struct references_list list = {0}, found = {0};
    const char *path = test_path("limited");
    make_up(&list, 3000000, 5, 0);
    int channel[2];
    assert_int_equal(pipe(channel), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = LIMIT, .rlim_max = LIMIT});
        struct trace_writer *w = create(path, 1);
        int failed = write_list(w, &list, 0, list.n, &err) < 0;
        failed = trace_flush(w, &err) < 0 && failed >= 0;
        int again = trace_write(w, &(struct trace_batch){.n = 1, .nsegments = 1}, NULL) < 0;
        int status = trace_finish(w, NULL, &err);
        char good = failed && again && status < 0 && strstr(err.text, "File too large") != NULL;
        _exit(write(channel[1], &good, 1) == 1 ? 0 : 1);
    }
    char good = 0;
    close(channel[1]);
    assert_int_equal(read(channel[0], &good, 1), 1);
    assert_true(good);
    close(channel[0]);
    /* What was complete is there. */
    struct trace_reader *r = open_trace(path);
    assert_int_equal(read_list(r, &found, &err), 0);
    assert_non_null(trace_damage(r));
    assert_int_equal(found.n, 1u << 20);
    check_part(&found, &list, 0);
    trace_close(r);
    free_list(&list);
    free_list(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),  cmocka_unit_test(extremes),     cmocka_unit_test(index_of_blocks),
        cmocka_unit_test(truncation),  cmocka_unit_test(flipped_bits), cmocka_unit_test(lost_block),
        cmocka_unit_test(from_a_pipe), cmocka_unit_test(bad_input),    cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, remove_test_folder);
}
