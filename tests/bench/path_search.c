/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_search ROUNDS: shortest paths on maps of random costs (A*, a binary heap), for
 * scripts/bench-timeline.py. A round makes a map of 2048 x 2048 fields and searches some long paths on it,
 * then one of 192 x 192 and many short ones: the same code on 30 MB and on 0.3 MB.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE 2048
#define SMALL 192
#define LARGE_PATHS 3
#define SMALL_PATHS 400
#define LEAST_COST 2 /* of a step: the estimate of what is left must not be more */
#define WALL 0       /* a field without a way through it */

struct field {
    uint32_t cost_here; /* of the best way found so far, in search `seen` */
    uint16_t seen;
    uint8_t cost, done;
};

struct open {
    uint32_t estimate, field;
};

static struct field *map;
static struct open *heap;
static uint32_t heap_used, side;
static uint64_t state = 88172645463325252;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static __attribute__((noinline)) void make_map(uint32_t new_side)
{
    side = new_side;
    for (uint32_t i = 0; i < side * side; i++)
        map[i] = (struct field){.cost = next() % 5 == 0 ? WALL : (uint8_t)(LEAST_COST + next() % 7)};
}

static __attribute__((noinline)) void push(uint32_t estimate, uint32_t field)
{
    uint32_t at = heap_used++;
    for (; at > 0 && heap[(at - 1) / 2].estimate > estimate; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = (struct open){estimate, field};
}

static __attribute__((noinline)) uint32_t pop(void)
{
    uint32_t field = heap[0].field, at = 0, child;
    struct open last = heap[--heap_used];
    for (; (child = 2 * at + 1) < heap_used; at = child) {
        child += child + 1 < heap_used && heap[child + 1].estimate < heap[child].estimate;
        if (heap[child].estimate >= last.estimate)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return field;
}

static uint32_t distance(uint32_t from, uint32_t to)
{
    int x = (int)(from % side) - (int)(to % side), y = (int)(from / side) - (int)(to / side);
    return (uint32_t)(abs(x) + abs(y));
}

/* Cost of the best path, 0: there is none. */
static __attribute__((noinline)) uint32_t search(uint32_t from, uint32_t to, uint16_t number)
{
    const int32_t steps[] = {1, -1, (int32_t)side, -(int32_t)side};
    map[from] = (struct field){0, number, map[from].cost, 0};
    heap_used = 0;
    push(0, from);
    while (heap_used > 0) {
        uint32_t at = pop();
        if (at == to)
            return map[at].cost_here;
        if (map[at].done)
            continue;
        map[at].done = 1;
        for (int i = 0; i < 4; i++) {
            uint32_t there = at + (uint32_t)steps[i];
            if (there >= side * side || map[there].cost == WALL)
                continue;
            struct field *f = &map[there];
            uint32_t cost = map[at].cost_here + f->cost;
            if (f->seen == number && f->cost_here <= cost)
                continue;
            *f = (struct field){cost, number, f->cost, 0};
            if (heap_used < LARGE * LARGE)
                push(cost + LEAST_COST * distance(there, to), there);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t sum = 0;
    map = malloc(sizeof *map * LARGE * LARGE);
    heap = malloc(sizeof *heap * LARGE * LARGE);
    if (map == NULL || heap == NULL)
        return 1;
    for (long round = argc > 1 ? atol(argv[1]) : 1; round > 0; round--) {
        make_map(LARGE);
        for (uint16_t i = 1; i <= LARGE_PATHS; i++)
            sum += search((uint32_t)(next() % (LARGE * LARGE / 8)),
                          LARGE * LARGE - 1 - (uint32_t)(next() % (LARGE * LARGE / 8)), i);
        make_map(SMALL);
        for (uint16_t i = 1; i <= SMALL_PATHS; i++)
            sum += search((uint32_t)(next() % (SMALL * SMALL)), (uint32_t)(next() % (SMALL * SMALL)), i);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
