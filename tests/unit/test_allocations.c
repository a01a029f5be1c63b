/* SPDX-License-Identifier: Apache-2.0 */
/* Reported allocations: spans of memory against a list, reports in the order of a program's calls, the
 * callers of functions of this program; and the sums of counts by site and object. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/random.h"
#include "collect/objects/blocks.h"
#include "collect/objects/heap.h"
#include "symbols/data.h"
#include "symbols/tally.h"
#include "symbols/unwind.h"

#define PLACES 400u
#define SELF "/proc/self/exe"

static void spans_as_in_a_list(void **state)
{
    struct block_span list[PLACES] = {{0}}; /* [i] begins at 100 * i + 50; high 0: none */
    struct blocks *b = blocks_new();
    struct random_state random;
    (void)state;
    assert_non_null(b);
    random_seed(&random, 7);
    for (int i = 0; i < 100000; i++) {
        size_t at = random_below(&random, PLACES);
        uint64_t low = 100 * at + 50;
        if (list[at].high != 0 && random_below(&random, 2) == 0) {
            blocks_remove(b, low);
            list[at].high = 0;
        } else if (list[at].high == 0) {
            list[at] = (struct block_span){low, low + 1 + random_below(&random, 100), (uint32_t)i, 1, 0};
            assert_int_equal(blocks_put(b, &list[at]), 0);
        } else {
            blocks_remove(b, low + 1); /* nothing begins there */
        }
        uint64_t address = random_below(&random, 100 * PLACES + 200);
        size_t below = 0, next;
        for (below = address < 50 ? 0 : (address - 50) / 100 + 1; below > 0; below--)
            if (below <= PLACES && list[below - 1].high != 0)
                break;
        for (next = address < 50 ? 0 : (address - 50) / 100 + 1; next < PLACES; next++)
            if (list[next].high != 0)
                break;
        const struct block_span *above, *found = blocks_at(b, address, &above);
        assert_int_equal(found != NULL, below > 0);
        assert_int_equal(above != NULL, next < PLACES);
        if (found != NULL)
            assert_memory_equal(found, &list[below - 1], sizeof *found);
        if (above != NULL)
            assert_memory_equal(above, &list[next], sizeof *above);
    }
    blocks_free(b);
}

/* --- the callers of functions --- */

/* Of a function, in the middle of it; and its stack from there on. */
struct place {
    uint64_t pc, sp, rbp, return_address;
    uint64_t stack[256];
};

/* Where the caller of this macro is, in the middle of its function. */
#define HERE(p)                                                                   \
    do {                                                                          \
        __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"     \
                         : "=&r"((p)->pc), "=&r"((p)->sp), "=&r"((p)->rbp));      \
        (p)->return_address = (uint64_t)(uintptr_t)__builtin_return_address(0);   \
        for (size_t i_ = 0; i_ < sizeof(p)->stack / sizeof(p)->stack[0]; i_++)    \
            (p)->stack[i_] = ((const volatile uint64_t *)(uintptr_t)(p)->sp)[i_]; \
    } while (0)

static __attribute__((noinline, no_sanitize("address"))) void plain_frame(struct place *p)
{
    volatile char room[300];
    room[0] = 1;
    HERE(p);
    room[1] = room[0];
}

static __attribute__((noinline, no_sanitize("address"), optimize("no-omit-frame-pointer"))) void
frame_by_rbp(struct place *p)
{
    volatile char *room = __builtin_alloca(p->pc % 64 + 16);
    room[0] = 1;
    HERE(p);
    room[1] = room[0];
}

/* gcc keeps in memory where the caller's frame is. */
static __attribute__((noinline, no_sanitize("address"))) void realigned_frame(struct place *p)
{
    volatile char aligned[64] __attribute__((aligned(64)));
    volatile char *room = __builtin_alloca(p->pc % 64 + 16);
    aligned[0] = 1;
    room[0] = aligned[0];
    HERE(p);
    room[1] = aligned[0];
}

/* The mapping of this program that has the address. */
static void find_module(uint64_t address, struct wire_module *m)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    *m = (struct wire_module){0};
    while (m->end == 0 && fgets(line, sizeof line, maps) != NULL) {
        uint64_t start, end, offset;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) == 3 &&
            address >= start && address < end)
            *m = (struct wire_module){.start = start, .end = end, .file_offset = offset};
    }
    fclose(maps);
    assert_true(m->end != 0);
    snprintf(m->path, sizeof m->path, "%s", SELF);
}

static void rules_lead_to_the_caller(void **state)
{
    void (*const functions[])(struct place *) = {plain_frame, frame_by_rbp, realigned_frame};
    int next = dup(STDIN_FILENO); /* the lowest free descriptor */
    assert_int_equal(close(next), 0);
    struct symbols_unwind *u = symbols_unwind_open(SELF);
    assert_int_equal(dup(STDIN_FILENO), next); /* a recorder has one of these for each file of code */
    assert_int_equal(close(next), 0);
    struct error err;
    struct object_table *table = object_table_new(&err);
    (void)state;
    assert_non_null(u);
    assert_non_null(table);
    struct symbols_data *data = object_table_data(table, SELF);
    assert_non_null(data);
    for (int i = 0; i < 3; i++) {
        struct place p = {0};
        struct wire_module m;
        struct symbols_rule rule;
        uint64_t address;
        functions[i](&p);
        find_module(p.pc, &m);
        assert_int_equal(symbols_data_address(data, p.pc - m.start + m.file_offset, &address), 0);
        assert_int_equal(symbols_unwind_find(u, address, &rule), 0);
        assert_true(rule.by_rbp || i == 0);
        uint64_t cfa = (rule.by_rbp ? p.rbp : p.sp) + (uint64_t)rule.offset;
#ifdef __OPTIMIZE__ /* clang, and gcc without optimization, do it otherwise */
        assert_true(rule.in_memory == (i == 2) && rule.rbp_by_rbp == (i == 2));
#endif
        if (rule.in_memory) {
            assert_true(cfa > p.sp && (cfa - p.sp) / 8 < sizeof p.stack / sizeof p.stack[0]);
            cfa = p.stack[(cfa - p.sp) / 8];
        }
        uint64_t at = (cfa - 8 - p.sp) / 8;
        assert_true(at < sizeof p.stack / sizeof p.stack[0]);
        assert_int_equal(p.stack[at], p.return_address);
        assert_true(!rule.by_rbp || rule.rbp_saved);
        assert_int_equal(symbols_unwind_find(u, 1, &rule), -1);
    }
    assert_null(symbols_unwind_open("/dev/null"));
    symbols_unwind_close(u);
    object_table_free(table);
}

/* --- reports --- */

struct world {
    struct object_table *table;
    struct wire_proc *proc;
    struct heap *heap;
    uint64_t sites[2]; /* of allocations */
};

static int make_world(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct error err;
    struct place p = {0};
    w->table = object_table_new(&err);
    w->proc = calloc(1, sizeof *w->proc);
    w->heap = heap_new(w->table, w->proc, &err);
    plain_frame(&p);
    w->sites[0] = p.pc;
    frame_by_rbp(&p);
    w->sites[1] = p.pc;
    find_module(p.pc, &w->proc->module[0]);
    w->proc->nmodules = 1;
    *state = w;
    return w->heap == NULL;
}

static int clear_world(void **state)
{
    struct world *w = *state;
    heap_free(w->heap);
    object_table_free(w->table);
    free(w->proc);
    free(w);
    return 0;
}

/* As the agent: `first` of the report last. Returns the position after it. */
static uint64_t put(struct world *w, enum wire_heap_kind kind, uint64_t address, uint64_t bytes, int site)
{
    struct wire_heap *h = &w->proc->heap;
    uint64_t words[WIRE_HEAP_BLOCK_WORDS] = {0, address, bytes, 1, 0x7000, 0, w->sites[site]};
    uint64_t n = kind == WIRE_HEAP_FREE || kind == WIRE_HEAP_UNMAP ? 3 : WIRE_HEAP_BLOCK_WORDS;
    words[0] = kind | n << WIRE_HEAP_KIND_BITS;
    for (uint64_t i = 0; i < n; i++)
        h->ring[(h->head + i) % WIRE_HEAP_WORDS] = words[i];
    h->head += n;
    return h->head;
}

static uint32_t object_at(struct world *w, uint64_t address, uint64_t since)
{
    struct heap_place place;
    heap_find(w->heap, address, since, &place);
    assert_true(place.low <= address && address < place.high);
    return place.object;
}

static void blocks_by_their_sites(void **state)
{
    struct world *w = *state;
    put(w, WIRE_HEAP_BLOCK, 0x10000, 100, 0);
    put(w, WIRE_HEAP_BLOCK, 0x20000, 100, 1);
    uint64_t allocated = put(w, WIRE_HEAP_BLOCK, 0x30000, 100, 0);
    uint64_t freed = put(w, WIRE_HEAP_FREE, 0x10000, 0, 0);
    heap_take(w->heap, allocated, 1);
    uint32_t first = object_at(w, 0x10000, 0), second = object_at(w, 0x20000, 0);
    assert_true(first != 0 && second != 0 && first != second);
    assert_int_equal(object_at(w, 0x10063, 0), first);
    assert_int_equal(object_at(w, 0x10064, 0), 0);
    assert_int_equal(object_at(w, 0x30000, 0), first);
    heap_take(w->heap, freed, 2); /* for records from before, it stays known */
    assert_int_equal(object_at(w, 0x10000, allocated - 1), first);
    assert_int_equal(object_at(w, 0x10000, freed), 0);
    put(w, WIRE_HEAP_BLOCK, 0x10020, 16, 1); /* its memory is reused */
    heap_take(w->heap, UINT64_MAX, 3);
    assert_int_equal(object_at(w, 0x10000, allocated - 1), 0);
    assert_int_equal(object_at(w, 0x10020, w->proc->heap.head), second);
    assert_int_equal(w->proc->heap.tail, w->proc->heap.head);
}

static void mappings_in_parts(void **state)
{
    struct world *w = *state;
    uint64_t mapped = put(w, WIRE_HEAP_MAP, 0x100000, 0x10000, 0);
    uint64_t unmapped = put(w, WIRE_HEAP_UNMAP, 0x104000, 0x1000, 0);
    heap_take(w->heap, UINT64_MAX, 1);
    uint32_t map = object_at(w, 0x100000, 0);
    assert_int_not_equal(map, 0);
    assert_int_equal(object_at(w, 0x103fff, unmapped), map);
    assert_int_equal(object_at(w, 0x104000, mapped), map); /* for records from before, it stays known */
    assert_int_equal(object_at(w, 0x104000, unmapped), 0);
    assert_int_equal(object_at(w, 0x105000, unmapped), map);
    assert_int_equal(object_at(w, 0x110000, 0), 0);
    put(w, WIRE_HEAP_MAP, 0x102000, 0x1000, 1); /* over a part of it */
    heap_take(w->heap, UINT64_MAX, 2);
    assert_int_equal(object_at(w, 0x101fff, 0), map);
    assert_int_not_equal(object_at(w, 0x102000, 0), map);
    assert_int_equal(object_at(w, 0x103000, 0), map);
}

static void mappings_of_files(void **state)
{
    struct world *w = *state;
    uint64_t *words = w->proc->heap.ring + w->proc->heap.head;
    uint64_t mapped = put(w, WIRE_HEAP_FILE, 0x100000, 0x10000, 0);
    memcpy(words + WIRE_HEAP_HEAD_WORDS, "/data/table.bin", 15);
    uint64_t unmapped = put(w, WIRE_HEAP_UNMAP, 0xff000, 0x20000, 0);
    heap_take(w->heap, UINT64_MAX, 1);
    uint32_t file = object_at(w, 0x108000, mapped);
    size_t n;
    const struct profile_object *all = object_table_all(w->table, &n);
    assert_true(file >= 1 && file <= n);
    assert_int_equal(all[file - 1].kind, PROFILE_OBJECT_FILE);
    assert_string_equal(all[file - 1].name, "/data/table.bin");
    assert_int_equal(object_at(w, 0x108000, unmapped), 0);
    words = w->proc->heap.ring + w->proc->heap.head; /* a name without an end */
    put(w, WIRE_HEAP_FILE, 0x100000, 0x10000, 0);
    memset(words + WIRE_HEAP_HEAD_WORDS, 'a', WIRE_HEAP_STACK_WORDS * sizeof *words);
    heap_take(w->heap, UINT64_MAX, 2);
    file = object_at(w, 0x108000, mapped);
    all = object_table_all(w->table, &n);
    assert_int_equal(strlen(all[file - 1].name), WIRE_HEAP_STACK_WORDS * sizeof *words);
}

/* The target can write anything into the ring. */
static void reports_that_make_no_sense(void **state)
{
    struct world *w = *state;
    put(w, WIRE_HEAP_BLOCK, UINT64_MAX - 10, 100, 0); /* ends below its start */
    put(w, WIRE_HEAP_FREE, 0x5000, 0, 0);             /* was never reported */
    put(w, WIRE_HEAP_BLOCK, 0x6000, 0, 0);
    heap_take(w->heap, UINT64_MAX, 1);
    assert_int_not_equal(object_at(w, 0x6000, 0), 0); /* malloc(0) has an address */
    uint64_t position = w->proc->heap.tail;
    w->proc->heap.ring[position % WIRE_HEAP_WORDS] = UINT64_MAX; /* of impossible length */
    w->proc->heap.head += 5;
    heap_take(w->heap, UINT64_MAX, 2);
    assert_int_equal(w->proc->heap.tail, position);
}

/* Many reports at once make the agent report fewer. */
static void interval_follows_the_reports(void **state)
{
    struct world *w = *state;
    uint64_t now = UINT64_C(1000000000);
    for (int round = 0; round < 20; round++, now += 1000000) {
        for (int i = 0; i < 1000; i++)
            put(w, WIRE_HEAP_BLOCK, 0x10000 + 64 * (uint64_t)i, 64, i % 2);
        heap_take(w->heap, UINT64_MAX, now);
    }
    uint64_t interval = w->proc->heap.interval;
    assert_true(interval > WIRE_HEAP_FIRST_INTERVAL);
    for (int round = 0; round < 40; round++) {
        now += UINT64_C(1000000000);
        heap_take(w->heap, UINT64_MAX, now);
    }
    assert_int_equal(w->proc->heap.interval, WIRE_HEAP_FIRST_INTERVAL);
}

/* --- sums --- */

static void sums_by_site_object_and_kind(void **state)
{
    enum { ROWS = 50, OBJECTS = 20, KINDS = 5 };
    static uint64_t twin[ROWS][OBJECTS][KINDS];
    struct tally t = {0};
    struct random_state random;
    size_t n = 0, different = 0;
    (void)state;
    random_seed(&random, 5);
    for (int i = 0; i < 20000; i++) {
        uint32_t row = (uint32_t)random_below(&random, ROWS),
                 object = (uint32_t)random_below(&random, OBJECTS),
                 what = (uint32_t)random_below(&random, KINDS);
        uint64_t count = random_below(&random, 3);
        if (row == 7)
            continue;
        assert_int_equal(tally_add(&t, row, object, what, count), 0);
        different += twin[row][object][what] == 0 && count != 0;
        twin[row][object][what] += count;
    }
    assert_int_equal(t.n, different);
    tally_sort(&t);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t object = 0; object < OBJECTS; object++)
            for (uint32_t what = 0; what < KINDS; what++) {
                if (twin[row][object][what] == 0)
                    continue;
                const struct tally_entry *e = &t.entries[n++];
                assert_true(e->row == row && e->object == object && e->what == what);
                assert_int_equal(e->count, twin[row][object][what]);
            }
    assert_int_equal(n, t.n);
    tally_clear(&t);
    assert_null(t.entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_as_in_a_list),
        cmocka_unit_test(rules_lead_to_the_caller),
        cmocka_unit_test_setup_teardown(blocks_by_their_sites, make_world, clear_world),
        cmocka_unit_test_setup_teardown(mappings_in_parts, make_world, clear_world),
        cmocka_unit_test_setup_teardown(mappings_of_files, make_world, clear_world),
        cmocka_unit_test_setup_teardown(reports_that_make_no_sense, make_world, clear_world),
        cmocka_unit_test_setup_teardown(interval_follows_the_reports, make_world, clear_world),
        cmocka_unit_test(sums_by_site_object_and_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
