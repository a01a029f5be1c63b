/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alternating KIND ROUNDS: programs whose phases have their misses in different functions, for
 * scripts/bench-hotspots.py. Phases take 1 ms to 0.3 s; in some of them references are ten times as fast as
 * in others.
 *
 *  0  two arrays, a table, and no misses
 *  1  a list and no misses: nearly all misses are of one function
 *  2  a table, two arrays, a list, and columns of a matrix
 *  3  no misses, and columns
 *  4  a list, two arrays, and no misses, ten times each
 *  5  no misses for eight rounds, a table for two, and a list in the last one
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define DOUBLES (1u << 20)
#define SIDE 1024u
#define ENTRIES (1u << 22)
#define NODES (1u << 17)

struct node {
    struct node *next;
    long values[7];
};

static double *a, *b;
static int *table;
static struct node *list;

static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static __attribute__((noinline)) double sum_arrays(void)
{
    double sum = 0;
    for (size_t i = 0; i < DOUBLES; i++)
        sum += a[i] * b[i];
    return sum;
}

static __attribute__((noinline)) double probe_table(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += table[next_random() & (ENTRIES - 1)];
    return (double)sum;
}

static __attribute__((noinline)) double walk_list(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += list->values[0];
        list = list->next;
    }
    return (double)sum;
}

static __attribute__((noinline)) double stay_in_cache(long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += a[i & 1023] * b[(i * 7) & 1023];
    return sum;
}

static __attribute__((noinline)) double walk_columns(void)
{
    for (size_t column = 0; column < SIDE; column++)
        for (size_t row = 0; row < SIDE; row++)
            a[row * SIDE + column] += 1;
    return a[0];
}

static double times(int n, double (*phase)(void))
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += phase();
    return sum;
}

static double do_round(int kind, int number)
{
    switch (kind) {
    case 0:
        return times(20, sum_arrays) + probe_table(3000000) + stay_in_cache(20000000);
    case 1:
        return walk_list(1500000) + stay_in_cache(60000000);
    case 2:
        return probe_table(2000000) + times(3, sum_arrays) + walk_list(300000) + times(2, walk_columns);
    case 3:
        return stay_in_cache(100000000) + walk_columns();
    case 4: {
        double sum = 0;
        for (int i = 0; i < 10; i++)
            sum += walk_list(20000) + sum_arrays() + stay_in_cache(500000);
        return sum;
    }
    default:
        if (number % 10 < 8)
            return stay_in_cache(50000000);
        return probe_table(6000000) + (number % 10 == 9 ? walk_list(400000) : 0);
    }
}

static struct node *make_list(void)
{
    struct node *nodes = malloc(NODES * sizeof *nodes);
    size_t *order = malloc(NODES * sizeof *order);
    if (nodes == NULL || order == NULL)
        exit(1);
    for (size_t i = 0; i < NODES; i++)
        order[i] = i;
    for (size_t i = NODES - 1; i > 0; i--) {
        size_t k = next_random() % (i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    for (size_t i = 0; i < NODES; i++)
        nodes[order[i]] = (struct node){.next = &nodes[order[(i + 1) % NODES]], .values = {(long)i}};
    free(order);
    return nodes;
}

int main(int argc, char **argv)
{
    int kind = argc == 3 ? atoi(argv[1]) : -1, rounds = argc == 3 ? atoi(argv[2]) : 0;
    double sum = 0;
    if (kind < 0 || kind > 5 || rounds < 1)
        return 2;
    a = calloc(DOUBLES, sizeof *a);
    b = calloc(DOUBLES, sizeof *b);
    table = calloc(ENTRIES, sizeof *table);
    list = make_list();
    if (a == NULL || b == NULL || table == NULL)
        return 1;
    for (int i = 0; i < rounds; i++)
        sum += do_round(kind, i);
    printf("%g\n", sum);
    return 0;
}
