/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocated arrays of structures that are read by index, so that no register points to an element:
 * hot_assigned WHAT. WHAT: global, local (the variable that the array is assigned to), header (a structure
 * whose last member is as long as the block: no array of them).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 50000, STEP = 7919, ROUNDS = 10 };

struct item {
    long key, value;
    char rest[48];
};
struct header {
    long length, spare;
    long data[];
};

struct item *items; /* not static, or it would be optimized away */

static __attribute__((noinline)) long sum_of(const void *array)
{
    long sum = 0;
    for (long i = 0, at = 0; i < ROUNDS * N; i++, at = (at + STEP) % N)
        sum += ((const long *)array)[8 * at + 1];
    return sum;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long sum = 0;
    if (strcmp(what, "global") == 0) {
        items = calloc(N, sizeof *items);
        sum = items ? sum_of(items) : 1;
    } else if (strcmp(what, "local") == 0) {
        struct item *own = calloc(N, sizeof *own);
        sum = own ? sum_of(own) : 1;
        free(own);
    } else if (strcmp(what, "header") == 0) {
        struct header *header = calloc(1, sizeof *header + N * sizeof(struct item));
        sum = header ? sum_of(header->data) : 1;
        free(header);
    }
    printf("%ld\n", sum);
    return sum != 0;
}
