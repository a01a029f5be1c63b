/* SPDX-License-Identifier: Apache-2.0 */
/*
 * two_speeds N: N rounds of a fast part, which loads the same few lines again and again, and a slow one,
 * which loads 4096 lines one after the other with a chain of multiplications between. The slow one takes
 * longer, and makes 1.6% of the references. Prints how many references each made; the few of the loops around
 * are not told.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LINES 4096
#define FAST_ROUNDS 20000000 /* of 3 loads */
#define SLOW_ROUNDS 240      /* of LINES loads */

static uint64_t few[8];
static uint64_t many[LINES][8] __attribute__((aligned(64)));

static void fast(void)
{
    for (long i = 0; i < FAST_ROUNDS; i++)
        __asm__ volatile("mov (%0), %%rax\n\tadd 8(%0), %%rax\n\tadd 16(%0), %%rax"
                         :
                         : "r"(few)
                         : "rax", "memory", "cc");
}

/* Some 120 cycles on any processor: each waits for the one before. */
static uint64_t multiply(uint64_t x)
{
    __asm__ volatile(".rept 40\n\timul %0, %0\n\t.endr" : "+r"(x) : : "cc");
    return x;
}

static void slow(void)
{
    uint64_t x = 1;
    for (int i = 0; i < SLOW_ROUNDS; i++)
        for (int line = 0; line < LINES; line++) {
            __asm__ volatile("add %1, %0" : "+r"(x) : "m"(many[line][0]) : "cc");
            x = multiply(x);
        }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    for (long i = 0; i < rounds; i++) {
        fast();
        slow();
    }
    printf("fast %ld slow %ld\n", rounds * FAST_ROUNDS * 3, rounds * SLOW_ROUNDS * LINES);
    return 0;
}
