/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep LINES ROUNDS: loads one line after the other of a table of LINES, again and again: each is touched
 * again after exactly LINES references. `stream` as LINES: each of ROUNDS lines once. Lines of a page lie far
 * apart in time: the order goes by pages first.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int once = strcmp(argv[1], "stream") == 0;
    uint64_t lines = strtoull(once ? argv[2] : argv[1], NULL, 0),
             rounds = once ? 1 : strtoull(argv[2], NULL, 0);
    uint64_t sum = 1;
    uint8_t *table =
        mmap(NULL, lines * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (table == MAP_FAILED)
        return 1;
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t i = 0; i < lines; i++)
            __asm__ volatile("add (%1), %0\n\t.rept 20\n\timul %0, %0\n\t.endr"
                             : "+r"(sum)
                             : "r"(table + i * 64)
                             : "cc");
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
