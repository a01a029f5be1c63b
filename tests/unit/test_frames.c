/* SPDX-License-Identifier: Apache-2.0 */
/* Local variables in real frames, those of frames_functions.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "collect/objects/frames.h"
#include "frames_functions.h"

#define TID 7u
#define NOWHERE ((uint64_t)4096)

static char path[4096];
static struct object_table *table;

/* The offset in the program's file of code at an address. */
static uint64_t offset_of(uint64_t address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long low, high, offset;
    uint64_t found = 0;
    char line[8192];
    assert_non_null(maps);
    while (found == 0 && fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %*s %lx", &low, &high, &offset) == 3 && address >= low && address < high)
            found = address - low + offset;
    fclose(maps);
    assert_true(found != 0);
    return found;
}

static void note(struct frames *f, const struct frames_here *here)
{
    const struct stack_frame frame = {.tid = TID,
                                      .file = object_table_file(table, path),
                                      .offset = offset_of(here->code) - 1,
                                      .low = (uint64_t)here->large - 8,
                                      .cfa = here->cfa};
    frames_note(f, &frame);
}

static void is_at(struct frames *f, const volatile char *address, const char *name, uint64_t offset)
{
    uint64_t begin;
    size_t n;
    uint32_t id = frames_find(f, (uint64_t)address, &begin);
    assert_int_not_equal(id, 0);
    const struct profile_object *object = &object_table_all(table, &n)[id - 1];
    assert_int_equal(object->kind, PROFILE_OBJECT_LOCAL);
    assert_string_equal(object->name, name);
    assert_string_equal(object->module, path);
    assert_int_equal((uint64_t)address - begin, offset);
}

static void is_nothing(struct frames *f, uint64_t address)
{
    uint64_t begin;
    assert_int_equal(frames_find(f, address, &begin), 0);
}

static void variables(void *ctx, const struct frames_here *here)
{
    struct frames *f = ctx;
    is_nothing(f, (uint64_t)here->large);
    note(f, here);
    is_at(f, here->large, "frames_two::large", 0);
    is_at(f, here->large + FRAMES_LARGE - 1, "frames_two::large", FRAMES_LARGE - 1);
    is_at(f, here->medium + 5, "frames_two::medium", 5);
    is_nothing(f, (uint64_t)here->small + 5);
    is_nothing(f, here->cfa);
    is_nothing(f, NOWHERE);
}

static void of_another_thread(void *ctx, const struct frames_here *here)
{
    struct frames *f = ctx;
    note(f, here);
    frames_forget(f, TID + 1);
    is_at(f, here->large, "frames_two::large", 0);
    frames_forget(f, TID);
    is_nothing(f, (uint64_t)here->large);
}

/* Frames below the innermost call's are forgotten if they were not noted in the batch before. */
static void returned(void *ctx, const struct frames_here *here)
{
    struct frames *f = ctx;
    note(f, here);
    frames_batch(f, TID, here->cfa + 100);
    is_at(f, here->large, "frames_two::large", 0);
    note(f, here);
    frames_batch(f, TID, here->cfa + 100);
    is_at(f, here->large, "frames_two::large", 0);
    frames_batch(f, TID, (uint64_t)here->large); /* it has not returned */
    frames_batch(f, TID + 1, here->cfa + 100);
    is_at(f, here->large, "frames_two::large", 0);
    frames_batch(f, TID, here->cfa + 100);
    is_nothing(f, (uint64_t)here->large);
}

/* By a frame without variables. */
static void replaced(void *ctx, const struct frames_here *here)
{
    struct frames *f = ctx;
    struct stack_frame other = {.tid = TID, .file = UINT32_MAX, .low = NOWHERE, .cfa = 2 * NOWHERE};
    note(f, here);
    frames_note(f, &other);
    is_at(f, here->large, "frames_two::large", 0);
    other.low = (uint64_t)here->large + 500;
    other.cfa = other.low + 500;
    frames_note(f, &other);
    is_nothing(f, (uint64_t)here->large);
}

static void first_block(void *ctx, const struct frames_here *here)
{
    note(ctx, here);
    is_at(ctx, here->large + 3, "frames_blocks::first", 3);
}

static void second_block(void *ctx, const struct frames_here *here)
{
    note(ctx, here);
    is_at(ctx, here->large + 3, "frames_blocks::second", 3);
}

/* More than are kept. */
static void deep(void *ctx, const struct frames_here *here)
{
    note(ctx, here);
    is_at(ctx, here->large + 7, "frames_deep::mine", 7);
}

static void in_frames(void **state)
{
    frames_visit *const visits[] = {variables, of_another_thread, returned, replaced};
    (void)state;
    for (size_t i = 0; i < sizeof visits / sizeof visits[0]; i++) {
        struct frames *f = frames_new(table);
        assert_non_null(f);
        frames_two(visits[i], f);
        frames_free(f);
    }
}

static void in_blocks_that_share_memory(void **state)
{
    struct frames *f = frames_new(table);
    (void)state;
    assert_non_null(f);
    for (int i = 0; i < 4; i++)
        frames_blocks(i % 2, i % 2 == 0 ? first_block : second_block, f);
    frames_free(f);
}

static void in_many_frames(void **state)
{
    struct frames *f = frames_new(table);
    (void)state;
    assert_non_null(f);
    frames_deep(600, deep, f);
    frames_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_frames),
        cmocka_unit_test(in_blocks_that_share_memory),
        cmocka_unit_test(in_many_frames),
    };
    struct error err;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0 || (table = object_table_new(&err)) == NULL)
        return 1;
    path[n] = '\0';
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    object_table_free(table);
    return status;
}
