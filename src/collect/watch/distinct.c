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
        d->touch[to] = d->touch[i];
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

void distinct_first_touch(struct distinct *d, uint64_t line, uint64_t at, uint32_t touch)
{
    unsigned i = index_of(d, line);
    if (i >= DISTINCT_MOST || d->first[i] != NEVER)
        return;
    d->first[i] = bounded(at);
    d->touch[i] = touch;
}

double distinct_growth(const struct distinct *d, uint64_t age, uint64_t touches)
{
    uint32_t least = bounded(age), end = bounded(touches), count = 0;
    for (unsigned i = 0; i < d->n; i++)
        count += d->first[i] < end && d->age[i] > least;
    return ldexp(count, 64) / ((double)d->threshold + 1);
}

/* --- distances of first touches --- */

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* A threshold for at most DISTINCT_LISTED lines of the sample. */
static uint64_t listed_threshold(const struct distinct *d)
{
    uint64_t threshold = d->threshold;
    for (unsigned n = d->n; n > DISTINCT_LISTED;) {
        threshold /= 2;
        n = 0;
        for (unsigned i = 0; i < d->n; i++)
            n += hash_of(d->line[i]) <= threshold;
    }
    return threshold;
}

/* Sorts lines below that threshold by what[], but those that have none. keys: their numbers afterwards.
 * Returns how many. */
static unsigned sort_by(const struct distinct *d, const uint32_t *what, uint64_t threshold, uint64_t *keys)
{
    unsigned sorted = 0;
    for (unsigned i = 0; i < d->n; i++)
        if (what[i] != NEVER && hash_of(d->line[i]) <= threshold)
            keys[sorted++] = (uint64_t)what[i] << 32 | i;
    qsort(keys, sorted, sizeof(*keys), compare_keys);
    for (unsigned i = 0; i < sorted; i++)
        keys[i] = (uint32_t)keys[i];
    return sorted;
}

/* A tree of sums over ranks (Fenwick), each of which counts 1 at first. */
static void tree_fill(uint16_t *tree, unsigned n)
{
    for (unsigned i = 1; i <= n; i++)
        tree[i] = (uint16_t)(i & -i);
}

static unsigned tree_below(const uint16_t *tree, unsigned rank)
{
    unsigned sum = 0;
    for (unsigned i = rank; i > 0; i -= i & -i)
        sum += tree[i];
    return sum;
}

static void tree_remove(uint16_t *tree, unsigned n, unsigned rank)
{
    for (unsigned i = rank + 1; i <= n; i += i & -i)
        tree[i]--;
}

/* Between the burst's last touch of a line and the tail's first one lie the tail's lines so far, and those of
 * the burst's younger lines that are not among these. */
unsigned distinct_touched(const struct distinct *d, struct distinct_touched *out, uint64_t *represented)
{
    uint64_t keys[DISTINCT_LISTED], threshold = listed_threshold(d);
    uint16_t rank[DISTINCT_MOST], tree[DISTINCT_LISTED + 1];
    unsigned lines = sort_by(d, d->age, threshold, keys), left = lines;
    for (unsigned i = 0; i < lines; i++)
        rank[keys[i]] = (uint16_t)i;
    tree_fill(tree, lines);
    unsigned touched = sort_by(d, d->first, threshold, keys);
    *represented = UINT64_C(1) << __builtin_clzll(threshold);
    for (unsigned t = 0; t < touched; t++) {
        unsigned i = (unsigned)keys[t], others = left;
        int in_burst = d->age[i] != NEVER;
        if (in_burst) {
            others = tree_below(tree, rank[i]);
            tree_remove(tree, lines, rank[i]);
            left--;
        }
        out[t] = (struct distinct_touched){.line = d->line[i],
                                           .entry = t * *represented,
                                           .distance = (t + others) * *represented,
                                           .touch = d->touch[i],
                                           .in_burst = in_burst};
    }
    return touched;
}
