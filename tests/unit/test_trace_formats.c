/* SPDX-License-Identifier: Apache-2.0 */
/* Other tools' formats: hand-made files read, what is written read back, and damage. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "trace_help.h"

static struct error err;

/* What the bytes hold; the sentence of the damage goes to *damage ("" if there is none). */
static struct references_list read_bytes(const void *data, size_t n, const char *format, char damage[1024])
{
    const char *path = test_path("input");
    struct references_list list = {0};
    save(path, data, n);
    struct trace_reader *r = trace_open(path, NULL, &err);
    if (r == NULL)
        fail_msg("%s", err.text);
    assert_string_equal(trace_info(r)->format, format);
    assert_int_equal(read_list(r, &list, &err), 0);
    snprintf(damage, 1024, "%s", trace_damage(r) != NULL ? trace_damage(r)->text : "");
    trace_close(r);
    return list;
}

static void check(struct references_list *list, const struct reference *wanted, size_t n)
{
    assert_int_equal(list->n, n);
    for (size_t i = 0; i < n; i++)
        assert_memory_equal(&list->r[i], &wanted[i], sizeof(wanted[i]));
    free_list(list);
}
#define CHECK(list, ...)                                         \
    do {                                                         \
        const struct reference wanted[] = {__VA_ARGS__};         \
        check(list, wanted, sizeof(wanted) / sizeof(wanted[0])); \
    } while (0)
#define LOAD(a, p, s)                                            \
    {                                                            \
        .address = (a), .pc = (p), .size = (s), .rw = TRACE_LOAD \
    }
#define STORE(a, p, s)                                            \
    {                                                             \
        .address = (a), .pc = (p), .size = (s), .rw = TRACE_STORE \
    }

static void lackey(void **state)
{
    (void)state;
    static const char text[] =
        "==12== Lackey, an example Valgrind tool\n--12-- warning\n\n"
        "I  0023C790,2\n S BE80199C,4\nhello, world\nI  0025747B,3\n L BE801950,8\r\n M 0025747C,1\n";
    char damage[1024];
    struct references_list list = read_bytes(text, sizeof(text) - 1, "lackey", damage);
    assert_string_equal(damage, "");
    CHECK(&list, STORE(0xBE80199C, 0x23C790, 4), LOAD(0xBE801950, 0x25747B, 8), LOAD(0x25747C, 0x25747B, 1),
          STORE(0x25747C, 0x25747B, 1));
    /* Cut off inside a number: what came before is used. */
    list = read_bytes(text, sizeof(text) - 4, "lackey", damage);
    assert_non_null(strstr(damage, "line 9 cannot be read: ' M 0025747C'"));
    assert_int_equal(list.n, 2);
    free_list(&list);
}

static void din(void **state)
{
    (void)state;
    static const char text[] =
        "2 0 This is an instruction fetch\n0 1000 data read\n1 70f60888\n3 1\n4 0\n0 A\n";
    char damage[1024];
    struct references_list list = read_bytes(text, sizeof(text) - 1, "din", damage);
    assert_string_equal(damage, "");
    CHECK(&list, LOAD(0x1000, 0, 4), STORE(0x70f60888, 0, 4), LOAD(0xA, 0, 4));
    list = read_bytes("0 10\n0 20\n7 30\n0 40\n", 20, "din", damage);
    assert_non_null(strstr(damage, "line 3"));
    assert_int_equal(list.n, 2);
    free_list(&list);
}

static void csv(void **state)
{
    (void)state;
    static const char text[] =
        "tid, Address ,what,rw,size,pc,pid,burst\n7,0x10,x,store,4,0x400,3,1\n7,\"32\",,R,,,,\n";
    char damage[1024];
    struct references_list list = read_bytes(text, sizeof(text) - 1, "csv", damage);
    assert_string_equal(damage, "");
    CHECK(&list, {.address = 16, .pc = 0x400, .pid = 3, .tid = 7, .size = 4, .rw = TRACE_STORE, .burst = 1},
          {.address = 32, .tid = 7, .size = 1, .rw = TRACE_LOAD});
    static const char *const broken[] = {"address\n1\n-2\n",       "address,size\n1,1\n2,0\n",
                                         "address,rw\n1,r\n2,x\n", "address,tid\n1,1\n2,99999999999\n",
                                         "size,address\n1,1\n1\n", "address\n1\n18446744073709551616\n"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        list = read_bytes(broken[i], strlen(broken[i]), "csv", damage);
        assert_non_null(strstr(damage, "line 3"));
        assert_int_equal(list.n, 1);
        free_list(&list);
    }
}

static void put_record(uint8_t **at, unsigned type, unsigned size, uint64_t value)
{
    memcpy(*at, &(uint16_t){(uint16_t)type}, 2);
    memcpy(*at + 2, &(uint16_t){(uint16_t)size}, 2);
    memcpy(*at + 4, &value, 8);
    *at += 12;
}

static void drmemtrace(void **state)
{
    (void)state;
    uint8_t data[512], *at = data;
    char damage[1024];
    put_record(&at, 25, 0, 5);        /* header, version 5 */
    put_record(&at, 28, 12, 5);       /* marker: version */
    put_record(&at, 22, 4, 71);       /* thread */
    put_record(&at, 24, 4, 70);       /* process */
    put_record(&at, 28, 14, 0);       /* window 0 */
    put_record(&at, 47, 3, 0xc3);     /* encoding */
    put_record(&at, 10, 3, 0x400000); /* instruction */
    put_record(&at, 0, 8, 0x1000);    /* read */
    put_record(&at, 1, 8, 0x1000);    /* write */
    put_record(&at, 3, 1, 0x9000);    /* prefetch */
    put_record(&at, 22, 4, 72);
    put_record(&at, 28, 14, 1);       /* window 1 */
    put_record(&at, 48, 2, 0x400010); /* taken jump */
    put_record(&at, 0, 4, 0x2000);
    put_record(&at, 26, 0, 0); /* footer */
    size_t n = (size_t)(at - data);
    struct references_list list = read_bytes(data, n, "drmemtrace", damage);
    assert_string_equal(damage, "");
    CHECK(&list, {.address = 0x1000, .pc = 0x400000, .pid = 70, .tid = 71, .size = 8, .rw = TRACE_LOAD},
          {.address = 0x1000, .pc = 0x400000, .pid = 70, .tid = 71, .size = 8, .rw = TRACE_STORE},
          {.address = 0x2000, .pc = 0x400010, .pid = 70, .tid = 72, .size = 4, .rw = TRACE_LOAD, .burst = 1});
    list = read_bytes(data, n - 20, "drmemtrace", damage);
    assert_non_null(strstr(damage, "truncated at byte 156"));
    assert_int_equal(list.n, 2);
    free_list(&list);
    data[8 * 12] = 0xff;
    list = read_bytes(data, n, "drmemtrace", damage);
    assert_non_null(strstr(damage, "damaged at byte 96"));
    assert_int_equal(list.n, 1);
    free_list(&list);
}

/* The header of a USF file with those flags and one argument, "ls". */
static size_t usf_header(uint8_t *at, uint32_t flags, uint16_t compression)
{
    static const uint8_t start[] = {'U', 'S', 'F', '1', 0, 35, 0, 0, 0, 2, 0};
    memset(at, 0, 44);
    memcpy(at, start, sizeof(start));
    memcpy(at + 11, &compression, 2);
    memcpy(at + 13, &flags, 4);
    at[37] = 1;
    memcpy(at + 41, "ls", 3);
    return 44;
}

static size_t usf_access(uint8_t *at, uint64_t pc, uint64_t address, uint16_t tid, uint16_t length,
                         uint8_t type)
{
    memcpy(at, &pc, 8);
    memcpy(at + 8, &address, 8);
    memset(at + 16, 9, 8);
    memcpy(at + 24, &tid, 2);
    memcpy(at + 26, &length, 2);
    at[28] = type;
    return 29;
}

static void usf(void **state)
{
    (void)state;
    uint8_t data[512];
    char damage[1024];
    size_t n = usf_header(data, 0x81, 0);
    n += usf_access(data + n, 0x400, 0x1000, 0, 8, 0);
    n += usf_access(data + n, 0x404, 0x1008, 1, 0xffff, 2); /* read and write, size not known */
    n += usf_access(data + n, 0x408, 0x1010, 1, 4, 5);      /* prefetch */
    struct references_list list = read_bytes(data, n, "usf", damage);
    assert_string_equal(damage, "");
    CHECK(&list, LOAD(0x1000, 0x400, 8),
          {.address = 0x1008, .pc = 0x404, .tid = 1, .size = 1, .rw = TRACE_LOAD},
          {.address = 0x1008, .pc = 0x404, .tid = 1, .size = 1, .rw = TRACE_STORE});
    list = read_bytes(data, n - 30, "usf", damage);
    assert_non_null(strstr(damage, "truncated at byte 73"));
    assert_int_equal(list.n, 1);
    free_list(&list);

    /* Delta coding: pc + 4, address as a whole, time + 1; thread and length as before, a write. */
    n = usf_header(data, 0x85, 0);
    data[n++] = 0;
    n += usf_access(data + n, 0x400, 0x1000, 0, 8, 0);
    static const uint8_t delta[] = {0x35, 4, 0, 0, 0xfe, 0xca, 0, 0, 0, 0, 1, 1};
    memcpy(data + n, delta, sizeof(delta));
    list = read_bytes(data, n + sizeof(delta), "usf", damage);
    assert_string_equal(damage, "");
    CHECK(&list, LOAD(0x1000, 0x400, 8), STORE(0xcafe0000, 0x404, 8));

    /* Events: a burst, an access in it, and a sample, which is not a reference. */
    n = usf_header(data, 0x82, 0);
    data[n] = 2;
    memset(data + n + 1, 0, 8);
    data[n + 9] = 3;
    n += 10;
    n += usf_access(data + n, 0x400, 0x1000, 0, 8, 0);
    data[n++] = 0;
    list = read_bytes(data, n, "usf", damage);
    assert_non_null(strstr(damage, "samples from byte 83"));
    CHECK(&list, {.address = 0x1000, .pc = 0x400, .size = 8, .rw = TRACE_LOAD, .burst = 1});

    const char *path = test_path("usf");
    usf_header(data, 0x81, 1);
    save(path, data, 44);
    assert_null(trace_open(path, NULL, &err));
    assert_non_null(strstr(err.text, "contains compressed data"));
    usf_header(data, 0x80000001, 0);
    save(path, data, 44);
    assert_null(trace_open(path, NULL, &err));
    assert_non_null(strstr(err.text, "byte order"));
}

/* Written and read back, each format keeps what it has room for. */
static void round_trips(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int thread, size, pc, burst;
    } keeps[] = {{"lackey", 0, 1, 1, 0}, {"din", 0, 0, 0, 0}, {"csv", 1, 1, 1, 1}, {"usf", 0, 1, 1, 1}};
    for (size_t f = 0; f < sizeof(keeps) / sizeof(keeps[0]); f++)
        for (int sampled = 0; sampled < 2; sampled++) {
            const char *path = test_path("round");
            struct references_list list = {0}, found = {0};
            make_up(&list, 20000, 6 + f, sampled);
            for (size_t i = 0; i < list.n; i++)
                list.r[i].size = list.r[i].size == 65535 ? 4000 : list.r[i].size; /* in USF: not known */
            struct trace_create_options options = {
                .format = keeps[f].name, .sampled = sampled, .source = "ls -l"};
            struct trace_writer *w = trace_create(path, &options, &err);
            assert_non_null(w);
            assert_int_equal(write_list(w, &list, 0, list.n, &err), 0);
            assert_int_equal(trace_finish(w, NULL, &err), 0);
            struct trace_reader *r = trace_open(path, NULL, &err);
            assert_non_null(r);
            assert_string_equal(trace_info(r)->format, keeps[f].name);
            assert_int_equal(read_list(r, &found, &err), 0);
            assert_null(trace_damage(r));
            assert_int_equal(found.n, list.n);
            for (size_t i = 0; i < list.n; i++) {
                struct reference want = list.r[i], *have = &found.r[i];
                want.pid = keeps[f].thread ? want.pid : 0;
                want.tid = keeps[f].thread ? want.tid : have->tid;
                want.size = keeps[f].size ? want.size : 4;
                want.pc = keeps[f].pc ? want.pc : 0;
                want.burst = keeps[f].burst && want.burst;
                assert_memory_equal(have, &want, sizeof(want));
            }
            trace_close(r);
            free_list(&list);
            free_list(&found);
        }
}

/* The next request of the same line, found the slow way. */
static void oracle_general(void **state)
{
    (void)state;
    static uint64_t line[30000];
    struct references_list list = {0};
    const char *path = test_path("oracle");
    size_t lines = 0, n;
    make_up(&list, 4000, 8, 0);
    struct trace_create_options options = {.format = "oracleGeneral", .line_bytes = 128};
    struct trace_writer *w = trace_create(path, &options, &err);
    assert_non_null(w);
    for (size_t i = 0; i < list.n; i++) {
        list.r[i].size = list.r[i].size == 65535 ? 300 : list.r[i].size;
        list.r[i].address >>= 8; /* none at the very end of memory */
        for (uint64_t l = list.r[i].address / 128; l <= (list.r[i].address + list.r[i].size - 1) / 128; l++) {
            assert_true(lines < 30000);
            line[lines++] = l;
        }
    }
    for (size_t i = 0; i < list.n;
         i += 1000) { /* flushed in between, so that records are patched in the file */
        assert_int_equal(write_list(w, &list, i, i + 1000, &err), 0);
        assert_int_equal(trace_flush(w, &err), 0);
    }
    assert_int_equal(trace_finish(w, NULL, &err), 0);
    uint8_t *data = load(path, &n);
    assert_int_equal(n, lines * 24);
    for (size_t i = 0; i < lines; i++) {
        uint64_t object;
        uint32_t size;
        int64_t next, wanted = -1;
        memcpy(&object, data + i * 24 + 4, 8);
        memcpy(&size, data + i * 24 + 12, 4);
        memcpy(&next, data + i * 24 + 16, 8);
        for (size_t k = i + 1; k < lines && wanted < 0; k++)
            wanted = line[k] == line[i] ? (int64_t)k : -1;
        assert_int_equal(object, line[i]);
        assert_int_equal(size, 128);
        assert_int_equal(next, wanted);
    }
    free(data);
    free_list(&list);
    assert_null(trace_create("/dev/null", &options, &err));
    assert_non_null(strstr(err.text, "must go into a file"));
}

static void libcachesim_csv(void **state)
{
    (void)state;
    const char *path = test_path("lcs");
    struct references_list list = {0};
    size_t n;
    add_reference(&list, (struct reference)LOAD(64, 0, 4));
    add_reference(&list, (struct reference)STORE(126, 0, 4));
    struct trace_create_options options = {.format = "libcachesim-csv"};
    struct trace_writer *w = trace_create(path, &options, &err);
    assert_non_null(w);
    assert_int_equal(write_list(w, &list, 0, 2, &err), 0);
    assert_int_equal(trace_finish(w, NULL, &err), 0);
    uint8_t *data = load(path, &n);
    assert_string_equal((char *)data, "time,obj_id,obj_size\n0,1,64\n1,1,64\n2,2,64\n");
    free(data);
    free_list(&list);
}

static void names(void **state)
{
    (void)state;
    unsigned reads = 0, writes = 0;
    for (const struct trace_format_name *f = trace_formats(); f->name != NULL; f++) {
        assert_true(strlen(f->help) > 0);
        reads += f->reads != 0;
        writes += f->writes != 0;
    }
    assert_int_equal(reads, 6);
    assert_int_equal(writes, 7);
    struct trace_create_options options = {.format = "drmemtrace"};
    assert_null(trace_create(test_path("none"), &options, &err));
    assert_non_null(strstr(err.text, "not a format that can be written"));
    assert_null(trace_open("/dev/null", "oracleGeneral", &err));
    assert_non_null(strstr(err.text, "not a format that can be read"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lackey),
        cmocka_unit_test(din),
        cmocka_unit_test(csv),
        cmocka_unit_test(drmemtrace),
        cmocka_unit_test(usf),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(oracle_general),
        cmocka_unit_test(libcachesim_csv),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, remove_test_folder);
}
