/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network_flow ROUNDS: the access pattern of a network simplex (as in mcf), for scripts/bench-timeline.py.
 * Not a solver: it does the steps of one, in the same order, on a random network.
 *
 * A round prices all arcs in order (12 MB, with the potentials of two of 60,000 nodes each), changes the
 * spanning tree at the best arcs, following parents to the root, and sets all potentials anew along the tree,
 * some times; then it sorts the arcs by cost.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NODES 60000
#define ARCS 500000
#define PRICINGS 12 /* of a round */
#define BEST 2000   /* arcs of a pricing that change the tree */

struct arc {
    uint32_t tail, head;
    int32_t cost, flow;
    int64_t reduced;
};

struct node {
    struct node *parent;
    uint32_t depth, next; /* order of a walk from the root */
    int64_t potential;
    int32_t cost; /* of the arc to the parent */
    uint32_t changes;
};

static struct node nodes[NODES];
static struct arc *arcs;
static uint32_t best[BEST];
static uint64_t state = 88172645463325252;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static __attribute__((noinline)) void make_network(void)
{
    for (uint32_t i = 1; i < NODES; i++) {
        struct node *parent = &nodes[next() % i];
        nodes[i] = (struct node){parent, parent->depth + 1, parent->next, 0, (int32_t)(next() % 1000), 0};
        parent->next = i;
    }
    for (uint32_t i = 0; i < ARCS; i++)
        arcs[i] = (struct arc){(uint32_t)(next() % NODES), (uint32_t)(next() % NODES),
                               (int32_t)(next() % 1000), 0, 0};
}

/* Returns how many arcs it found. */
static __attribute__((noinline)) uint32_t price(int64_t limit)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < ARCS; i++) {
        arcs[i].reduced = arcs[i].cost - nodes[arcs[i].tail].potential + nodes[arcs[i].head].potential;
        if (arcs[i].reduced < limit && found < BEST)
            best[found++] = i;
    }
    return found;
}

/* Adds flow along the circle that the arc closes. */
static __attribute__((noinline)) void change_tree(struct arc *arc)
{
    struct node *a = &nodes[arc->tail], *b = &nodes[arc->head];
    while (a != b) {
        struct node **deeper = a->depth > b->depth ? &a : &b;
        (*deeper)->changes++;
        (*deeper)->cost += (*deeper)->changes % 16 == 0;
        *deeper = (*deeper)->parent;
    }
    arc->flow++;
}

static __attribute__((noinline)) void set_potentials(void)
{
    uint32_t i = nodes[0].next;
    for (uint32_t n = 1; n < NODES; n++, i = nodes[i].next)
        nodes[i].potential = nodes[i].parent->potential + nodes[i].cost;
}

static int by_cost(const void *a, const void *b)
{
    const struct arc *x = a, *y = b;
    return (x->reduced > y->reduced) - (x->reduced < y->reduced);
}

int main(int argc, char **argv)
{
    arcs = malloc(ARCS * sizeof *arcs);
    if (arcs == NULL)
        return 1;
    make_network();
    for (long round = argc > 1 ? atol(argv[1]) : 1; round > 0; round--) {
        for (int i = 0; i < PRICINGS; i++) {
            uint32_t found = price(-(int64_t)(next() % 2000));
            for (uint32_t k = 0; k < found; k++)
                change_tree(&arcs[best[k]]);
            set_potentials();
        }
        qsort(arcs, ARCS, sizeof *arcs, by_cost);
    }
    int64_t sum = 0;
    for (uint32_t i = 0; i < NODES; i++)
        sum += nodes[i].potential;
    printf("%lld\n", (long long)sum);
    return 0;
}
