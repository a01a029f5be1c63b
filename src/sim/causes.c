/* SPDX-License-Identifier: Apache-2.0 */
/*
 * causes.c - the cause of a miss: Hill's three Cs, and removal by other caches.
 *
 * Each cache has a twin: a fully associative LRU cache of the same size that sees the same accesses. A miss
 * on a line never seen before is cold; on a line that was removed because of another cache, a coherence or
 * inclusion miss; otherwise a capacity miss if the twin misses too, and a conflict miss if not. The twin is a
 * list in order of use whose nodes are found by a hash table. Nodes are never freed, since they also record
 * which lines were seen: 28 bytes for each line ever accessed, and the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache-internal.h"

#define NONE UINT32_MAX

struct node {
    uint64_t line;
    uint32_t prev, next; /* towards newer and older lines in the twin */
    uint8_t in_twin, seen, removed_by;
};

struct causes {
    uint64_t capacity, held; /* lines in the twin */
    struct node *nodes;
    uint32_t nnodes, nodes_capacity;
    uint32_t *table; /* node + 1; 0 empty */
    uint64_t table_mask;
    uint32_t newest, oldest;
};

#define FIRST_CAPACITY 1024u

struct causes *causes_new(uint64_t lines)
{
    struct causes *causes = calloc(1, sizeof *causes);
    if (!causes)
        return NULL;
    causes->capacity = lines;
    causes->newest = causes->oldest = NONE;
    causes->nodes_capacity = FIRST_CAPACITY;
    causes->nodes = malloc(FIRST_CAPACITY * sizeof *causes->nodes);
    causes->table = calloc((size_t)FIRST_CAPACITY * 2, sizeof *causes->table);
    causes->table_mask = FIRST_CAPACITY * 2 - 1;
    if (!causes->nodes || !causes->table) {
        causes_free(causes);
        return NULL;
    }
    return causes;
}

void causes_free(struct causes *causes)
{
    if (!causes)
        return;
    free(causes->nodes);
    free(causes->table);
    free(causes);
}

/* The table's entry for the line; empty if it was never seen. */
static uint32_t *entry_of(const struct causes *causes, uint64_t line)
{
    uint64_t hash = line * UINT64_C(0x9e3779b97f4a7c15), at = (hash ^ (hash >> 32)) & causes->table_mask;
    while (causes->table[at] && causes->nodes[causes->table[at] - 1].line != line)
        at = (at + 1) & causes->table_mask;
    return &causes->table[at];
}

static int grow(struct causes *causes)
{
    if (causes->nodes_capacity > UINT32_MAX / 4)
        return -ENOMEM;
    uint32_t capacity = causes->nodes_capacity * 2;
    struct node *nodes = realloc(causes->nodes, capacity * sizeof *nodes);
    if (!nodes)
        return -ENOMEM;
    causes->nodes = nodes;
    uint32_t *table = calloc((size_t)capacity * 2, sizeof *table);
    if (!table)
        return -ENOMEM;
    free(causes->table);
    causes->table = table;
    causes->table_mask = (uint64_t)capacity * 2 - 1;
    causes->nodes_capacity = capacity;
    for (uint32_t i = 0; i < causes->nnodes; i++)
        *entry_of(causes, nodes[i].line) = i + 1;
    return 0;
}

/* The line's node, created if necessary; NULL: memory is short. */
static struct node *node_of(struct causes *causes, uint64_t line)
{
    uint32_t *entry = entry_of(causes, line);
    if (!*entry) {
        if (causes->nnodes == causes->nodes_capacity) {
            if (grow(causes) != 0)
                return NULL;
            entry = entry_of(causes, line);
        }
        causes->nodes[causes->nnodes] = (struct node){.line = line};
        *entry = ++causes->nnodes;
    }
    return &causes->nodes[*entry - 1];
}

static void unlink_node(struct causes *causes, struct node *node)
{
    if (node->prev == NONE)
        causes->newest = node->next;
    else
        causes->nodes[node->prev].next = node->next;
    if (node->next == NONE)
        causes->oldest = node->prev;
    else
        causes->nodes[node->next].prev = node->prev;
    node->in_twin = 0;
    causes->held--;
}

int causes_query(struct causes *causes, uint64_t line)
{
    struct node *node = node_of(causes, line);
    if (!node)
        return -ENOMEM;
    if (!node->seen) {
        node->seen = 1;
        return SIM_COLD;
    }
    if (node->removed_by)
        return node->removed_by;
    return node->in_twin ? SIM_CONFLICT : SIM_CAPACITY;
}

int causes_use(struct causes *causes, uint64_t line)
{
    struct node *node = node_of(causes, line);
    if (!node)
        return -ENOMEM;
    if (node->in_twin)
        unlink_node(causes, node);
    else if (causes->held == causes->capacity)
        unlink_node(causes, &causes->nodes[causes->oldest]);
    uint32_t own = (uint32_t)(node - causes->nodes);
    node->prev = NONE;
    node->next = causes->newest;
    if (causes->newest == NONE)
        causes->oldest = own;
    else
        causes->nodes[causes->newest].prev = own;
    causes->newest = own;
    node->in_twin = 1;
    node->removed_by = 0;
    causes->held++;
    return 0;
}

void causes_remove(struct causes *causes, uint64_t line, enum sim_cause why)
{
    uint32_t *entry = entry_of(causes, line);
    if (!*entry) /* not seen: memory was short */
        return;
    struct node *node = &causes->nodes[*entry - 1];
    if (node->in_twin)
        unlink_node(causes, node);
    node->removed_by = why == SIM_CAPACITY ? 0 : (uint8_t)why;
}
