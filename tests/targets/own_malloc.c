/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a malloc of its own, which takes its memory from a static array: own_malloc ROUNDS. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char arena[64u << 20] __attribute__((aligned(64)));
static size_t used;

void *malloc(size_t bytes)
{
    size_t at = __atomic_fetch_add(&used, (bytes + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    if (bytes > sizeof arena || at + bytes + 16 > sizeof arena)
        return NULL;
    memcpy(arena + at, &bytes, sizeof bytes);
    return arena + at + 16;
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t n, size_t bytes)
{
    return malloc(n * bytes);
}

void *realloc(void *block, size_t bytes)
{
    size_t old = 0;
    char *new = malloc(bytes);
    if (block != NULL)
        memcpy(&old, (char *)block - 16, sizeof old);
    if (new != NULL && block != NULL)
        memcpy(new, block, old < bytes ? old : bytes);
    return new;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    volatile char *block = malloc(1 << 20);
    long sum = 0;
    for (int i = 0; i < rounds; i++)
        for (size_t k = 0; k < 1 << 20; k += 64)
            sum += block[k];
    printf("%ld\n", sum);
    return 0;
}
