/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/burst.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/setdist.h"
#include "sim/stackdist.h"

struct burst {
    struct stackdist *stack;
    struct setdist *sets; /* NULL as long as no burst wanted it */
    int with_sets;
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
    free(b);
}

int burst_begin(struct burst *b, int sets, struct error *err)
{
    stackdist_reset(b->stack);
    memset(b->hist, 0, sizeof(b->hist));
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
                                &b->hist[PROFILE_HIST_REUSE], &b->hist[PROFILE_HIST_FIRST], NULL);
}

uint64_t burst_lines(const struct burst *b)
{
    return stackdist_lines(b->stack);
}

size_t burst_memory_bytes(const struct burst *b)
{
    return stackdist_memory_bytes(b->stack);
}

/* Reuses that are not counted at any distance are too far away: all of them go into the bin above. */
static int store_sets(struct burst *b, struct profile *p, uint64_t id, struct error *err)
{
    uint64_t reuses = b->hist[PROFILE_HIST_STACK].total;
    int status = 0;
    for (unsigned level = 1; level <= SETDIST_LEVELS && status == 0; level++) {
        memset(&b->scratch, 0, sizeof(b->scratch));
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
    row->lines = stackdist_lines(b->stack);
    stackdist_ages(b->stack, &b->hist[PROFILE_HIST_AGE]);
    int status = profile_add_burst(p, row, err);
    for (int kind = 0; kind < PROFILE_HIST_KINDS && status == 0; kind++)
        if (kind != PROFILE_HIST_EXPECTED) /* full mode's */
            status = profile_put_hist(p, row->id, (enum profile_hist)kind, &b->hist[kind], err);
    if (status == 0 && b->with_sets)
        status = store_sets(b, p, row->id, err);
    if (status == 0 && watches != NULL)
        status = watches_choose(watches, row->process, row->tid, row->id, b->stack, err);
    return status;
}
