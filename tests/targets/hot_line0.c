/* SPDX-License-Identifier: Apache-2.0 */
/* What misses is one instruction, in line 60000: the test makes it an instruction without a line, line 0. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 1 << 15 };

static char memory[LINES][64];

static __attribute__((noinline)) long at_random(void)
{
    long sum = 0, value;
    for (uint32_t i = 0, at = 0; i < LINES; i++, at = (at * 5 + 12345) % LINES) {
        const char *line = memory[at];
#line 60000
        __asm__ volatile("movq (%1), %0" : "=r"(value) : "r"(line) : "memory");
#line 19
        sum += value;
    }
    return sum;
}

int main(int argc, char **argv)
{
    long sum = 0;
    for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
        sum += at_random();
    printf("%ld\n", sum);
    return 0;
}
