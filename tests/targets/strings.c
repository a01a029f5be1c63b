/* SPDX-License-Identifier: Apache-2.0 */
/* String instructions with many elements, one after each so many references at random in a table: of rounds
 * of four, one fills, one copies, one searches. Bursts rarely meet one. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES (UINT64_C(1) << 20)
#define RANDOM 300000
static char from[BYTES], to[BYTES];
static unsigned long table[1u << 15];

static void fill(void *at, int c, size_t n)
{
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(c) : "memory");
}

static void copy(void *at, const void *source, size_t n)
{
    __asm__ volatile("rep movsq" : "+D"(at), "+S"(source), "+c"(n)::"memory");
}

static size_t search(const void *at, int c, size_t n)
{
    __asm__ volatile("repne scasb" : "+D"(at), "+c"(n) : "a"(c) : "memory", "cc");
    return n;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    unsigned long x = 1, sum = 0;
    for (long i = 0; i < rounds; i++) {
        if (i % 4 == 0)
            fill(from, (int)i & 63, BYTES);
        if (i % 4 == 1)
            copy(to, from, BYTES / 8);
        to[50000] = 100;
        if (i % 4 == 2)
            sum += search(to, 100, BYTES);
        for (int k = 0; k < RANDOM; k++) {
            x = x * 6364136223846793005ul + 1;
            sum += table[x >> 49]++;
        }
    }
    printf("%lu\n", sum);
    return 0;
}
