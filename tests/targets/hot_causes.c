/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who evicts whom: hot_causes WHAT ROUNDS. WHAT: two (a table of 4096 lines and a log of 12288 lines are
 * walked in turn), stream (new memory each time, touched once).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE 64
#define TABLE_LINES 4096u
#define LOG_LINES 12288u
#define STREAM_LINES 16384u

static __attribute__((aligned(4096))) unsigned char table[TABLE_LINES * LINE];
static __attribute__((aligned(4096))) unsigned char log_of_all[LOG_LINES * LINE];
static volatile uint64_t sink;

static __attribute__((noinline)) void look_up(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0, at = 0; i < TABLE_LINES; i++, at = (at + 1021) % TABLE_LINES)
        sum += table[at * LINE];
    sink += sum;
}

static __attribute__((noinline)) void write_log(void)
{
    for (uint32_t i = 0; i < LOG_LINES; i++)
        log_of_all[i * LINE]++;
}

static __attribute__((noinline)) void stream(void)
{
    unsigned char *bytes =
        mmap(NULL, STREAM_LINES * LINE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        exit(1);
    for (uint32_t i = 0; i < STREAM_LINES; i++)
        bytes[i * LINE] = (unsigned char)i;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 1;
    memset(table, 1, sizeof table);
    memset(log_of_all, 1, sizeof log_of_all);
    for (int i = 0; i < rounds; i++) {
        if (argc > 1 && strcmp(argv[1], "stream") == 0) {
            stream();
        } else {
            look_up();
            write_log();
        }
    }
    printf("%u\n", (unsigned)(sink != 0));
    return 0;
}
