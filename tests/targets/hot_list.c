/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a linked list whose order in memory is random: each step misses, in one line. */
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 1 << 17 }; /* 8 MB of lines */

struct node {
    struct node *next;
    long value[7];
};

static struct node *shuffled(void)
{
    struct node *nodes = calloc(NODES, sizeof *nodes);
    int *order = malloc(NODES * sizeof *order);
    if (nodes == NULL || order == NULL)
        exit(1);
    srand(1);
    for (int i = 0; i < NODES; i++) {
        int j = rand() % (i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < NODES; i++) {
        nodes[order[i]].next = &nodes[order[(i + 1) % NODES]];
        nodes[order[i]].value[0] = i;
    }
    free(order);
    return nodes;
}

__attribute__((noinline)) static long follow(const struct node *node, long steps)
{
    long sum = 0;
    for (; steps > 0; steps--)
        node = node->next; /* misses */
    sum += node->value[0];
    return sum;
}

__attribute__((noinline)) static long compute(long steps)
{
    static volatile long local[64];
    for (long i = 0; i < steps; i++)
        local[i % 64] += i;
    return local[5];
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1;
    const struct node *start = shuffled();
    long sum = 0;
    for (int i = 0; i < times; i++)
        sum += follow(start, NODES) + compute(NODES / 8);
    printf("%ld\n", sum);
    return 0;
}
