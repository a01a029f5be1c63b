/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a block by one instruction, and reads a table between: copies ROUNDS. Most references of `copy` are
 * to the line of the one before.
 */
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1 << 15, WORDS = 1 << 15 };

static char from[BYTES], to[BYTES];
static volatile long table[WORDS];

static __attribute__((noipa)) void copy(void)
{
    void *target = to, *source = from;
    size_t n = BYTES;
    __asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(n) : : "memory");
}

static __attribute__((noipa)) long look_up(void)
{
    long sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum += table[(i * 7919) % WORDS];
    return sum;
}

int main(int argc, char **argv)
{
    long sum = 0;
    for (long i = argc > 1 ? atol(argv[1]) : 1; i > 0; i--) {
        copy();
        sum += look_up();
    }
    printf("%ld\n", sum);
    return 0;
}
