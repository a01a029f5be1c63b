/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/watch/distinct.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"

#define SLOTS DISTINCT_SLOTS
#define NEVER UINT32_MAX /* not in the burst; not in the tail */

struct distinct *distinct_new(void)
{
    struct distinct *d = malloc(sizeof(*d));
    if (d != NULL)
        distinct_reset(d);
    return d;
}

void distinct_free(struct distinct *d)
{
    free(d);
}

void distinct_reset(struct distinct *d)
{
    memset(d->slot, 0, sizeof(d->slot));
    d->n = 0;
    d->threshold = UINT64_MAX;
    memset(d->recent, 0xff, sizeof(d->recent));
}

static inline uint64_t hash_of(uint64_t line)
{
    return random_splitmix64(&line);
}

static inline uint32_t bounded(uint64_t touches)
{
    return touches < NEVER ? (uint32_t)touches : NEVER - 1;
}

/* The slot of that line, or the free one that it would take. Hashes of the sample differ in their low bits.
 */
static inline unsigned find(const struct distinct *d, uint64_t line, uint64_t hash)
{
    unsigned at = (unsigned)hash % SLOTS;
    while (d->slot[at] != 0 && d->line[d->slot[at] - 1u] != line)
        at = (at + 1) % SLOTS;
    return at;
}

/* Halves the sample. */
static void thin(struct distinct *d)
{
    unsigned n = d->n;
    d->n = 0;
    d->threshold /= 2;
    memset(d->slot, 0, sizeof(d->slot));
    for (unsigned i = 0; i < n; i++) {
        uint64_t hash = hash_of(d->line[i]);
        if (hash > d->threshold)
            continue;
        unsigned to = d->n++;
        d->line[to] = d->line[i];
        d->age[to] = d->age[i];
        d->first[to] = d->first[i];
        d->slot[find(d, d->line[to], hash)] = (uint16_t)(to + 1);
    }
}

/* The index of the line, which is added if it is new. DISTINCT_MOST: it is not in the sample. */
static inline unsigned index_of(struct distinct *d, uint64_t line)
{
    uint64_t hash = hash_of(line);
    if (hash > d->threshold)
        return DISTINCT_MOST;
    unsigned at = find(d, line, hash);
    if (d->slot[at] != 0)
        return d->slot[at] - 1u;
    while (d->n == DISTINCT_MOST)
        thin(d);
    if (hash > d->threshold)
        return DISTINCT_MOST;
    unsigned i = d->n++;
    d->slot[find(d, line, hash)] = (uint16_t)(i + 1);
    d->line[i] = line;
    d->age[i] = d->first[i] = NEVER;
    return i;
}

void distinct_survivor(struct distinct *d, uint64_t line, uint64_t age)
{
    unsigned i = index_of(d, line);
    if (i < DISTINCT_MOST)
        d->age[i] = bounded(age);
}

void distinct_first_touch(struct distinct *d, uint64_t line, uint64_t at)
{
    unsigned i = index_of(d, line);
    if (i < DISTINCT_MOST && d->first[i] == NEVER)
        d->first[i] = bounded(at);
}

double distinct_growth(const struct distinct *d, uint64_t age, uint64_t touches)
{
    uint32_t least = bounded(age), end = bounded(touches), count = 0;
    for (unsigned i = 0; i < d->n; i++)
        count += d->first[i] < end && d->age[i] > least;
    return ldexp(count, 64) / ((double)d->threshold + 1);
}
