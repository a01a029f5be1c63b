/* SPDX-License-Identifier: Apache-2.0 */
/* Sums a matrix by rows and by columns: the second misses in every reference, in one line. */
#include <stdio.h>
#include <stdlib.h>

enum { N = 1024 }; /* 8 MB; a column has 1024 lines, 64 KB, and they are 8 KB apart */

static double (*matrix)[N];

__attribute__((noinline)) static double by_rows(void)
{
    double sum = 0;
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            sum += matrix[row][column];
    return sum;
}

__attribute__((noinline)) static double by_columns(void)
{
    double sum = 0;
    for (int column = 0; column < N; column++)
        for (int row = 0; row < N; row++)
            sum += matrix[row][column]; /* misses */
    return sum;
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1;
    double sum = 0;
    matrix = calloc(N, sizeof *matrix);
    if (matrix == NULL)
        return 1;
    for (int i = 0; i < N; i++)
        matrix[i][i] = i;
    for (int i = 0; i < times; i++) {
        matrix[0][0] = i;
        sum += by_rows() + by_columns();
    }
    printf("%g\n", sum);
    return 0;
}
