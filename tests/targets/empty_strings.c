/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every load misses in 32 KB, and every eighth is followed by a string instruction of no elements, which
 * counts as a step but makes no reference.
 *
 * usage: empty_strings LOADS
 */
#include <stdio.h>
#include <stdlib.h>

#define BYTES (4u << 20)

static volatile char memory[BYTES];

int main(int argc, char **argv)
{
    unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, sum = 0;
    for (unsigned long i = 0; i < n; i++) {
        sum += (unsigned char)memory[i * 64 % BYTES];
        if (i % 8 == 0) {
            unsigned long count = 0;
            volatile char *to = memory, *from = memory + 4096;
            __asm__ volatile("rep movsb" : "+c"(count), "+D"(to), "+S"(from)::"memory");
        }
    }
    printf("%lu\n", sum);
    return 0;
}
