/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A known share of the lines that come into a cache of 32 KB is used: line_use WHAT ROUNDS [FIRST]. WHAT:
 * start: `numbers` are read completely in the FIRST rounds, and one number of each line in the others;
 * mixed: in each round, a piece of `records` is read, one field of each line, and then a piece of `numbers`,
 *        completely, by the same function and with many more references for each line;
 * short: one field of a few records.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 65536, SOME = 2048, PIECE = 4096, AGAIN = 4 };

struct record {
    long first, hot, others[6];
};

_Alignas(64) long numbers[8 * LINES];
_Alignas(64) struct record records[LINES];
static volatile long sink;

static __attribute__((noinline)) void read_numbers(int step)
{
    long sum = 0;
    for (int i = 0; i < 8 * LINES; i += step)
        sum += numbers[i]; // start
    sink += sum;
}

static __attribute__((noinline)) void read_both(int round)
{
    long sum = 0;
    int from = round * PIECE % LINES;
    for (int i = from; i < from + PIECE; i++)
        sum += records[i].hot;
    for (int i = from / 4 * 8; i < (from + PIECE) / 4 * 8; i += 8)
        for (int again = 0; again < AGAIN; again++)
            for (int k = 0; k < 8; k++)
                sum += *(volatile long *)&numbers[i + k];
    sink += sum;
}

static __attribute__((noinline)) void read_some(void)
{
    long sum = 0;
    for (int i = 0; i < SOME; i++)
        sum += records[i].first + records[i].hot; // short
    sink += sum;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 1, first = argc > 3 ? atoi(argv[3]) : 0;
    for (int r = 0; argc > 1 && r < rounds; r++)
        if (strcmp(argv[1], "start") == 0)
            read_numbers(r < first ? 1 : 8);
        else if (strcmp(argv[1], "mixed") == 0)
            read_both(r);
        else
            read_some();
    printf("%ld\n", sink);
    return 0;
}
