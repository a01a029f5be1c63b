/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/reduce/burst.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct burst {
    struct stackdist *stack;
    struct setdist *sets; /* NULL until the first burst with sets */
    int with_sets;
    struct stackdist_survivor *survivors; /* since burst_end */
    size_t capacity;
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
    if ((b->stack = stackdist_new(err)) == NULL) {
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

/* Distances and ages are smaller than the number of touches: higher bins, which are most, are 0 already. */
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
    b->with_sets = sets;
    if (sets && b->sets == NULL && (b->sets = setdist_new(err)) == NULL)
        return -ENOMEM;
    if (sets)
        setdist_reset(b->sets);
    return 0;
}

int burst_touch(struct burst *b, const uint64_t *lines, size_t n)
{
    return burst_touch_far(b, lines, n, NULL);
}

int burst_touch_far(struct burst *b, const uint64_t *lines, size_t n, struct stackdist_far *far)
{
    if (b->with_sets && setdist_touch_many(b->sets, lines, n) < 0)
        return -ENOMEM;
    return stackdist_touch_many(b->stack, lines, n, &b->hist[PROFILE_HIST_STACK],
                                &b->hist[PROFILE_HIST_REUSE], NULL, NULL, far);
}

size_t burst_memory_bytes(const struct burst *b)
{
    return stackdist_memory_bytes(b->stack);
}

int burst_end(struct burst *b, struct burst_summary *summary)
{
    size_t lines = (size_t)stackdist_lines(b->stack);
    if (lines >= b->capacity) {
        struct stackdist_survivor *larger = realloc(b->survivors, 2 * (lines + 1) * sizeof(*larger));
        if (larger == NULL)
            return -ENOMEM;
        b->survivors = larger;
        b->capacity = 2 * (lines + 1);
    }
    stackdist_survivors(b->stack, b->survivors);
    /* Before the first touches of the lines, 0, 1, 2, ... other lines had been seen. */
    hist_add_up_to(&b->hist[PROFILE_HIST_FIRST], lines);
    for (size_t i = 0; i < lines; i++)
        hist_add(&b->hist[PROFILE_HIST_AGE], b->survivors[i].age, 1);
    *summary = (struct burst_summary){.touches = stackdist_references(b->stack),
                                      .hist = b->hist,
                                      .sets = b->with_sets ? b->sets : NULL,
                                      .scratch = &b->scratch,
                                      .survivors = b->survivors,
                                      .lines = lines};
    return 0;
}

/* Reuses that are counted at no distance are too far apart: all of them go into the highest bin. */
static int store_sets(const struct burst_summary *s, struct profile *p, uint64_t id, struct error *err)
{
    uint64_t reuses = s->hist[PROFILE_HIST_STACK].total;
    struct hist *scratch = s->scratch;
    int status = 0;
    for (unsigned level = 1; level <= SETDIST_LEVELS && status == 0; level++) {
        clear_hist(scratch, SETDIST_WAYS);
        for (unsigned distance = 0; distance < SETDIST_WAYS; distance++)
            hist_add(scratch, distance, setdist_count(s->sets, level, distance));
        hist_add(scratch, SETDIST_WAYS, reuses - scratch->total);
        status = profile_put_sets(p, id, 1u << level, scratch, err);
    }
    return status;
}

int burst_store(const struct burst_summary *summary, struct profile *p, struct profile_burst *row,
                struct error *err)
{
    row->lines = summary->lines;
    int status = profile_add_burst(p, row, err);
    for (int kind = 0; kind < PROFILE_HIST_KINDS && status == 0 && summary->hist != NULL; kind++)
        if (kind != PROFILE_HIST_EXPECTED) /* full mode only */
            status = profile_put_hist(p, row->id, (enum profile_hist)kind, &summary->hist[kind], err);
    if (status == 0 && summary->sets != NULL)
        status = store_sets(summary, p, row->id, err);
    return status;
}
