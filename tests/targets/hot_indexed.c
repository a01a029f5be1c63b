// SPDX-License-Identifier: Apache-2.0
/*
 * Blocks that are not assigned to a variable, so that only the code that works on them says what they are: by
 * a pointer in a register, with an index. Scenes: array, inner; member, global: by a pointer that is in a
 * structure, or a variable outside of functions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 16384, ROUNDS = 30 };

struct item {
    long key, value;
    char cold[48];
};
struct grid {
    long first, numbers[COUNT];
    struct {
        long x, y;
    } points[COUNT];
};

__attribute__((noinline)) static long sum_values(const struct item *items)
{
    long sum = 0;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = (at * 5 + 12345) % COUNT)
        sum += items[at].value;
    return sum;
}

struct holder {
    long number;
    struct item *item;
};
static struct holder holders[COUNT];
static struct item *global;

__attribute__((noipa)) static long sum_members(struct holder *list, unsigned n)
{
    long sum = 0;
    for (unsigned i = 0, at = 0; i < n; i++, at = (at * 5 + 12345) % COUNT)
        sum += list[at].item->value;
    return sum;
}

__attribute__((noinline)) static long sum_global(unsigned n)
{
    long sum = 0;
    for (unsigned i = 0, at = 0; i < n; i++, at = (at * 5 + 12345) % COUNT)
        sum += global[at].value;
    return sum;
}

__attribute__((noinline)) static long sum_points(const struct grid *grid)
{
    long sum = grid->first;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = (at * 5 + 12345) % COUNT)
        sum += grid->points[at].y;
    return sum;
}

int main(int argc, char **argv)
{
    int inner = argc > 1 && strcmp(argv[1], "inner") == 0;
    void *memory;
    long sum = 0;
    if (posix_memalign(&memory, 64, inner ? sizeof(struct grid) : COUNT * sizeof(struct item)) != 0)
        return 1;
    memset(memory, 0, inner ? sizeof(struct grid) : COUNT * sizeof(struct item));
    /* As bytes, so that no instruction is seen to store a struct item's address. */
    memcpy(&global, &memory, sizeof global);
    for (unsigned i = 0; i < COUNT && !inner; i++) {
        char *item = (char *)memory + i * sizeof(struct item);
        memcpy(&holders[i].item, &item, sizeof item);
    }
    for (int r = 0; r < ROUNDS; r++)
        sum += inner                                        ? sum_points(memory)
               : argc > 1 && strcmp(argv[1], "member") == 0 ? sum_members(holders, COUNT)
               : argc > 1 && strcmp(argv[1], "global") == 0 ? sum_global(COUNT)
                                                            : sum_values(memory);
    printf("%ld\n", sum);
    free(memory);
}
