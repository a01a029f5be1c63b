/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past_end N: N rounds of code that takes the address of a page after the end of a mapped file, and never
 * looks there: whoever does gets SIGBUS. Prints the sum of what it counted.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define AWAY 0x2000000

static unsigned long words[64];

__attribute__((noinline, aligned(4096))) static unsigned long anchor(unsigned long i)
{
    unsigned long address;
    __asm__ volatile("lea anchor_place+0x2000000(%%rip), %0" : "=r"(address));
    words[i % 64] += address % 4096 + 1;
    return words[(i + 7) % 64];
}
__asm__(".set anchor_place, anchor");

int main(int argc, char **argv)
{
    unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, sum = 0;
    FILE *empty = tmpfile();
    if (!empty || mmap((void *)((uintptr_t)anchor + AWAY), 4096, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE,
                       fileno(empty), 0) == MAP_FAILED)
        return 1;
    for (unsigned long i = 0; i < n; i++)
        sum += anchor(i);
    printf("sum %lu\n", sum);
    return 0;
}
