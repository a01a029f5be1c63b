/* SPDX-License-Identifier: Apache-2.0 */
/* wide.h - for policies on sets of many ways: a list of ways, newest first. */
#ifndef CACHEGRAM_SIM_WIDE_H
#define CACHEGRAM_SIM_WIDE_H

#include "sim/cache-internal.h"

static inline void wide_list_unlink(struct cache *c, uint64_t set, uint32_t way)
{
    struct wide *w = &c->wide;
    uint64_t base = set * c->ways;
    uint32_t prev = w->prev[base + way], next = w->next[base + way];
    if (prev == WIDE_END)
        w->head[set] = next;
    else
        w->next[base + prev] = next;
    if (next == WIDE_END)
        w->tail[set] = prev;
    else
        w->prev[base + next] = prev;
}

static inline void wide_list_push(struct cache *c, uint64_t set, uint32_t way)
{
    struct wide *w = &c->wide;
    uint64_t base = set * c->ways;
    uint32_t head = w->head[set];
    w->prev[base + way] = WIDE_END;
    w->next[base + way] = head;
    if (head == WIDE_END)
        w->tail[set] = way;
    else
        w->prev[base + head] = way;
    w->head[set] = way;
}

static inline uint32_t wide_list_last(struct cache *c, uint64_t set)
{
    return c->wide.tail[set];
}

#endif
