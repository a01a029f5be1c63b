/* SPDX-License-Identifier: Apache-2.0 */
/* Goes over the lines of some pages, always in the same order, which leads from page to page: a line is
 * touched again after BETWEEN references for each of them, its page all the time. */
#include <stdio.h>
#include <stdlib.h>

#define PAGES 40u
#define LINES (PAGES * 64u)
#define BETWEEN 16u

static struct line {
    volatile unsigned long word[8];
} lines[LINES] __attribute__((aligned(4096)));

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    static volatile unsigned long hot[8];
    unsigned long sum = 0;
    for (long r = 0; r < rounds; r++)
        for (unsigned i = 0, at = 0; i < LINES; i++) {
            at = (at + 64 * 7 + 39) % LINES; /* no common divisor: comes by each line */
            sum += lines[at].word[i % 8];
            for (unsigned k = 1; k < BETWEEN; k++)
                sum += hot[k % 8];
        }
    printf("%lu references from touch to touch, sum %lu\n", (unsigned long)LINES * BETWEEN, sum);
    return 0;
}
