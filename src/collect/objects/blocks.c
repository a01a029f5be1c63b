/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c - a treap: a search tree by address, and a heap by random priorities, which keeps it balanced. */
#include "collect/objects/blocks.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"
#include "collect/tunables.h"

struct node {
    struct block_span span;
    uint32_t left, right; /* 0: none */
    uint32_t priority;
};

struct blocks {
    struct node *nodes;                /* [0] is not used */
    uint32_t n, capacity, root, spare; /* spare: list of unused ones, by left */
    struct random_state random;
};

struct blocks *blocks_new(void)
{
    struct blocks *b = calloc(1, sizeof(*b));
    if (b != NULL)
        random_seed(&b->random, 1);
    return b;
}

void blocks_free(struct blocks *b)
{
    if (b != NULL)
        free(b->nodes);
    free(b);
}

static uint32_t new_node(struct blocks *b)
{
    uint32_t at = b->spare;
    if (at != 0) {
        b->spare = b->nodes[at].left;
        return at;
    }
    if (b->n + 1 >= b->capacity) {
        uint32_t capacity = b->capacity != 0 ? 2 * b->capacity : 256;
        struct node *nodes = capacity <= COLLECT_BLOCKS ? realloc(b->nodes, capacity * sizeof(*nodes)) : NULL;
        if (nodes == NULL)
            return 0;
        b->nodes = nodes;
        b->capacity = capacity;
    }
    return ++b->n;
}

/* Splits a tree into those that begin below the address, and the rest. */
static void split(struct node *nodes, uint32_t tree, uint64_t address, uint32_t *below, uint32_t *rest)
{
    while (tree != 0) {
        if (nodes[tree].span.low < address) {
            *below = tree;
            below = &nodes[tree].right;
            tree = *below;
        } else {
            *rest = tree;
            rest = &nodes[tree].left;
            tree = *rest;
        }
    }
    *below = *rest = 0;
}

int blocks_put(struct blocks *b, const struct block_span *span)
{
    uint32_t at = new_node(b);
    if (at == 0)
        return b->capacity >= COLLECT_BLOCKS / 2 ? -ENOSPC : -ENOMEM;
    struct node *nodes = b->nodes;
    uint32_t priority = (uint32_t)random_next(&b->random), *link = &b->root;
    while (*link != 0 && nodes[*link].priority >= priority)
        link = span->low < nodes[*link].span.low ? &nodes[*link].left : &nodes[*link].right;
    nodes[at] = (struct node){.span = *span, .priority = priority};
    uint32_t below, rest;
    split(nodes, *link, span->low, &below, &rest);
    nodes[at].left = below;
    nodes[at].right = rest;
    *link = at;
    return 0;
}

int blocks_copy(struct blocks *b, const struct blocks *from)
{
    struct node *nodes = malloc(from->capacity * sizeof(*nodes));
    if (from->capacity == 0 || nodes == NULL) {
        free(nodes);
        return from->capacity == 0 ? 0 : -ENOMEM;
    }
    memcpy(nodes, from->nodes, from->capacity * sizeof(*nodes));
    free(b->nodes);
    *b = *from;
    b->nodes = nodes;
    /* Positions are those of the other process' reports: what was freed is not known here. */
    for (uint32_t i = 1; i <= b->n; i++)
        if (nodes[i].span.ended != 0)
            nodes[i].span.object = 0;
    return 0;
}

struct block_span *blocks_at(struct blocks *b, uint64_t address, const struct block_span **above)
{
    uint32_t best = 0, next = 0;
    for (uint32_t at = b->root; at != 0;) {
        if (b->nodes[at].span.low <= address) {
            best = at;
            at = b->nodes[at].right;
        } else {
            next = at;
            at = b->nodes[at].left;
        }
    }
    if (above != NULL)
        *above = next != 0 ? &b->nodes[next].span : NULL;
    return best != 0 ? &b->nodes[best].span : NULL;
}

/* Of two trees, all of the first below the second. */
static uint32_t merge(struct node *nodes, uint32_t below, uint32_t above)
{
    uint32_t tree = 0, *link = &tree;
    while (below != 0 && above != 0) {
        if (nodes[below].priority >= nodes[above].priority) {
            *link = below;
            link = &nodes[below].right;
            below = *link;
        } else {
            *link = above;
            link = &nodes[above].left;
            above = *link;
        }
    }
    *link = below != 0 ? below : above;
    return tree;
}

void blocks_remove(struct blocks *b, uint64_t low)
{
    struct node *nodes = b->nodes;
    uint32_t *link = &b->root;
    while (*link != 0 && nodes[*link].span.low != low)
        link = low < nodes[*link].span.low ? &nodes[*link].left : &nodes[*link].right;
    uint32_t at = *link;
    if (at == 0)
        return;
    *link = merge(nodes, nodes[at].left, nodes[at].right);
    nodes[at].left = b->spare;
    b->spare = at;
}
