/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are allocated on one line of source, by two calls; and blocks of one call, of which the
 * compiler makes two copies. Of each two, the first is walked three times for each time that the second one
 * is.
 */
#include <stdio.h>
#include <stdlib.h>

enum { N = 64 * 1024, STEP = 8, ROUNDS = 4 };

static inline __attribute__((always_inline)) long *fresh(void)
{
    return calloc(N, sizeof(long)); // copied
}

static __attribute__((noinline)) long walk(const long *block)
{
    long sum = 0;
    for (int i = 0; i < N; i += STEP)
        sum += *(const volatile long *)&block[i];
    return sum;
}

int main(void)
{
    long *often = calloc(N, sizeof *often), *seldom = calloc(N, sizeof *seldom); // two calls
    long *copy = fresh(), *other = fresh();
    if (!often || !seldom || !copy || !other)
        return 1;
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sum += walk(often) + walk(often) + walk(often) + walk(seldom);
        sum += walk(copy) + walk(copy) + walk(copy) + walk(other);
    }
    printf("%ld\n", sum);
    return 0;
}
