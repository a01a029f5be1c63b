/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void tail_fill(struct tail *tail, uint32_t count)
{
    memset(tail->bits, 0xff, count / 64 * sizeof *tail->bits);
    if (count % 64)
        tail->bits[count / 64] = (UINT64_C(1) << (count % 64)) - 1;
    uint64_t span = 64;
    for (uint32_t level = 0; level < tail->levels; level++, span *= TAIL_FANOUT)
        for (uint64_t node = 0; node * span < count; node++)
            tail->below[level][node] = (uint32_t)(node % TAIL_FANOUT * span);
}

void tail_free(struct tail *tail)
{
    free(tail->bits);
    for (uint32_t level = 0; level < TAIL_MAX_LEVELS; level++)
        free(tail->below[level]);
}

int tail_init(struct tail *tail, uint64_t numbers)
{
    const uint64_t family = 64 * TAIL_FANOUT;

    memset(tail, 0, sizeof *tail);
    numbers = (numbers + family - 1) / family * family;
    uint64_t nodes = numbers / 64;
    tail->limit = (uint32_t)numbers;
    tail->bits = malloc(nodes * sizeof *tail->bits);
    bool ok = tail->bits;
    do {
        size_t whole = (nodes + TAIL_FANOUT - 1) / TAIL_FANOUT * TAIL_FANOUT;
        uint32_t *below = aligned_alloc(64, whole * sizeof *below);
        ok = ok && below;
        tail->below[tail->levels++] = below;
        nodes = whole / TAIL_FANOUT;
    } while (nodes > 1);
    if (ok)
        return 0;
    tail_free(tail);
    return -ENOMEM;
}

size_t tail_bytes(const struct tail *tail)
{
    return tail->limit / 64 * (sizeof *tail->bits + sizeof *tail->below[0]) * TAIL_FANOUT / (TAIL_FANOUT - 1);
}
