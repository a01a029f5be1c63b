/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/reduce/burst.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/setdist.h"

struct burst {
    struct stackdist *stack;
    struct setdist *sets; /* NULL as long as no burst wanted it */
    int with_sets;
    struct stackdist_survivor *survivors; /* since burst_end */
    size_t nsurvivors, room;
    int ended;
    struct hist hist[PROFILE_HIST_KINDS];
    struct hist scratch;
};

struct burst *burst_new(struct error *err)
{
    struct burst *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        error_set(err, -ENOMEM, "out of memory for a burst");
        return NULL;
    }
    if ((b->stack = stackdist_new(0, err)) == NULL) {
        free(b);
        return NULL;
    }
    return b;
}

void burst_free(struct burst *b)
{
    if (b == NULL)
        return;
    stackdist_free(b->stack);
    setdist_free(b->sets);
    free(b->survivors);
    free(b);
}

/* No distance and no age is as large as the number of touches: the rest of the bins, most of them, is 0. */
static void clear_hist(struct hist *h, uint64_t touches)
{
    memset(h->count, 0, (hist_bin(touches) + 1) * sizeof(h->count[0]));
    h->total = 0;
}

int burst_begin(struct burst *b, int sets, struct error *err)
{
    for (int kind = 0; kind < PROFILE_HIST_KINDS; kind++)
        clear_hist(&b->hist[kind], stackdist_references(b->stack));
    stackdist_reset(b->stack);
    b->ended = 0;
    b->with_sets = sets;
    if (sets && b->sets == NULL && (b->sets = setdist_new(err)) == NULL)
        return -ENOMEM;
    if (sets)
        setdist_reset(b->sets);
    return 0;
}

int burst_touch(struct burst *b, const uint64_t *lines, size_t n)
{
    if (b->with_sets && setdist_touch_many(b->sets, lines, n) < 0)
        return -ENOMEM;
    return stackdist_touch_many(b->stack, lines, n, &b->hist[PROFILE_HIST_STACK],
                                &b->hist[PROFILE_HIST_REUSE], NULL, NULL);
}

uint64_t burst_lines(const struct burst *b)
{
    return stackdist_lines(b->stack);
}

size_t burst_memory_bytes(const struct burst *b)
{
    return stackdist_memory_bytes(b->stack);
}

const struct stackdist_survivor *burst_end(struct burst *b, size_t *n)
{
    size_t lines = (size_t)stackdist_lines(b->stack);
    if (!b->ended && lines >= b->room) {
        struct stackdist_survivor *larger = realloc(b->survivors, 2 * (lines + 1) * sizeof(*larger));
        if (larger == NULL)
            return NULL;
        b->survivors = larger;
        b->room = 2 * (lines + 1);
    }
    if (!b->ended)
        stackdist_survivors(b->stack, b->survivors);
    b->ended = 1;
    *n = b->nsurvivors = lines;
    return b->survivors;
}

/* Before the first touch of each of so many lines 0, 1, 2, ... others had been seen. */
static void count_firsts(struct hist *h, uint64_t lines)
{
    for (uint32_t bin = 0; hist_edge(bin) < lines; bin++) {
        uint64_t end = hist_edge(bin + 1);
        h->count[bin] += (end < lines ? end : lines) - hist_edge(bin);
    }
    h->total += lines;
}

/* Reuses that are not counted at any distance are too far away: all of them go into the bin above. */
static int store_sets(struct burst *b, struct profile *p, uint64_t id, struct error *err)
{
    uint64_t reuses = b->hist[PROFILE_HIST_STACK].total;
    int status = 0;
    for (unsigned level = 1; level <= SETDIST_LEVELS && status == 0; level++) {
        clear_hist(&b->scratch, SETDIST_WAYS);
        for (unsigned distance = 0; distance < SETDIST_WAYS; distance++)
            hist_add(&b->scratch, distance, setdist_count(b->sets, level, distance));
        hist_add(&b->scratch, SETDIST_WAYS, reuses - b->scratch.total);
        status = profile_put_sets(p, id, 1u << level, &b->scratch, err);
    }
    return status;
}

int burst_store(struct burst *b, struct profile *p, struct profile_burst *row, struct watches *watches,
                struct error *err)
{
    size_t n;
    const struct stackdist_survivor *survivors = burst_end(b, &n);
    if (survivors == NULL)
        return error_set(err, -ENOMEM, "out of memory for the survivors of a burst");
    row->lines = n;
    count_firsts(&b->hist[PROFILE_HIST_FIRST], n);
    for (size_t i = 0; i < n; i++)
        hist_add(&b->hist[PROFILE_HIST_AGE], survivors[i].age, 1);
    int status = profile_add_burst(p, row, err);
    for (int kind = 0; kind < PROFILE_HIST_KINDS && status == 0; kind++)
        if (kind != PROFILE_HIST_EXPECTED) /* full mode's */
            status = profile_put_hist(p, row->id, (enum profile_hist)kind, &b->hist[kind], err);
    if (status == 0 && b->with_sets)
        status = store_sets(b, p, row->id, err);
    if (status == 0 && watches != NULL)
        status = watches_choose(watches, row->process, row->tid, row->id, survivors, n,
                                stackdist_references(b->stack), err);
    return status;
}
