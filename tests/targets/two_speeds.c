/* SPDX-License-Identifier: Apache-2.0 */
/*
 * two_speeds N [FAST SLOW]: N rounds of a fast part, which loads the same few lines FAST times 3, and a slow
 * one, which makes SLOW loads, from 4096 lines in turn, with a chain of multiplications between. Without FAST
 * and SLOW both last some milliseconds, the slow one longer, and it makes 1.6% of the references. Prints how
 * many references each made; the few of the loops around are not reported.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LINES 4096
#define FAST 20000000
#define SLOW 983040

static uint64_t few[8];
static uint64_t many[LINES][8] __attribute__((aligned(64)));

static void fast(long n)
{
    for (long i = 0; i < n; i++)
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

static void slow(long n)
{
    static unsigned line;
    uint64_t x = 1;
    for (long i = 0; i < n; i++) {
        line = (line + 1) % LINES;
        __asm__ volatile("add %1, %0" : "+r"(x) : "m"(many[line][0]) : "cc");
        x = multiply(x);
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1, nfast = argc > 3 ? atol(argv[2]) : FAST,
         nslow = argc > 3 ? atol(argv[3]) : SLOW;
    for (long i = 0; i < rounds; i++) {
        fast(nfast);
        slow(nslow);
    }
    printf("fast %ld slow %ld\n", rounds * nfast * 3, rounds * nslow);
    return 0;
}
