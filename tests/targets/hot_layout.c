/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts that waste lines, and the better ones: hot_layout WHAT ROUNDS. WHAT: columns, rows (a matrix of 8
 * MB), fields, packed (one hot field of 16384 records of 128 bytes; these fields alone), new (a buffer that
 * is allocated and filled each time, and never freed), turn (transposes the matrix).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1024, RECORDS = 16384, BUFFER = 1 << 20 };

struct record {
    long hot, cold[15];
};

double matrix[N][N];
struct record records[RECORDS];
long hot[RECORDS];
static volatile double sink;

static __attribute__((noinline)) void by_columns(void)
{
    double sum = 0;
    for (int column = 0; column < N; column++)
        for (int row = 0; row < N; row++)
            sum += matrix[row][column]; // columns
    sink += sum;
}

static __attribute__((noinline)) void by_rows(void)
{
    double sum = 0;
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            sum += matrix[row][column];
    sink += sum;
}

static __attribute__((noinline)) void sum_fields(void)
{
    long sum = 0;
    for (uint32_t i = 0, at = 0; i < RECORDS; i++, at = (at * 5 + 12345) % RECORDS)
        sum += records[at].hot; // fields
    sink += (double)sum;
}

static __attribute__((noinline)) void sum_packed(void)
{
    long sum = 0;
    for (uint32_t i = 0, at = 0; i < RECORDS; i++, at = (at * 5 + 12345) % RECORDS)
        sum += hot[at];
    sink += (double)sum;
}

static __attribute__((noinline)) void fill_new(void)
{
    long *buffer = malloc(BUFFER); // allocated
    if (buffer == NULL)
        exit(1);
    for (size_t i = 0; i < BUFFER / sizeof *buffer; i++)
        buffer[i] = (long)i; // new
    sink += (double)buffer[7];
}

static double turned[N][N];

static __attribute__((noinline)) void turn(void)
{
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            turned[column][row] = matrix[row][column]; // turn
    sink += turned[7][5];
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } list[] = {{"columns", by_columns}, {"rows", by_rows}, {"fields", sum_fields},
                {"packed", sum_packed},  {"new", fill_new}, {"turn", turn}};
    int rounds = argc > 2 ? atoi(argv[2]) : 1;
    /* Not by memset: on some machines that is a string instruction, with a reference for each byte. */
    for (int i = 0; i < N * N; i += 4)
        matrix[i / N][i % N] = 1;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        for (int r = 0; argc > 1 && strcmp(argv[1], list[i].name) == 0 && r < rounds; r++)
            list[i].run();
    printf("%g\n", sink);
    return 0;
}
