/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Twelve arrays of 8 KB, read side by side: hot_conflicts GAP ROUNDS. They begin 64 KB and GAP bytes apart.
 * With GAP 0, twelve lines of one set are in use, whatever element is read.
 */
#include <stdio.h>
#include <stdlib.h>

enum { ARRAYS = 12, ELEMENTS = 1024, BYTES = 1 << 16 };

_Alignas(4096) static char memory[ARRAYS * (BYTES + 4096)];

static __attribute__((noinline)) long sum_all(long gap)
{
    long sum = 0;
    for (long i = 0; i < ELEMENTS; i++)
        for (long k = 0; k < ARRAYS; k++)
            sum += *(const volatile long *)(memory + k * (BYTES + gap) + i * 8); // conflicts
    return sum;
}

int main(int argc, char **argv)
{
    long gap = argc > 1 ? atol(argv[1]) : 0, rounds = argc > 2 ? atol(argv[2]) : 1, sum = 0;
    if (gap < 0 || gap > 4096 || gap % 8 != 0)
        return 1;
    for (long r = 0; r < rounds; r++)
        sum += sum_all(gap);
    printf("%ld\n", sum);
    return 0;
}
