/* SPDX-License-Identifier: Apache-2.0 */
/* cycle LINES ROUNDS: reads so many lines one after the other, again and again, and makes hardly any other
 * reference. */
#include <stdio.h>
#include <stdlib.h>

#define LINE 64

int main(int argc, char **argv)
{
    size_t lines = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000,
           rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    volatile const char *memory = calloc(lines, LINE);
    for (size_t i = 0; i < lines; i++)
        ((char *)memory)[i * LINE] = 1;
    unsigned long sum = 0;
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < lines; i++)
            sum += (unsigned char)memory[i * LINE];
    printf("%lu\n", sum);
    free((void *)memory);
    return 0;
}
