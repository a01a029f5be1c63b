/* SPDX-License-Identifier: Apache-2.0 */
/* stackset-compute.c - how a worker processes references. stackset.c explains the method. */
#include "sim/stackset-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* With so many distinct lines in a stretch, one in eight references, a stack of its own does not pay: each
 * line is touched three times. */
#define DENSE_LINES (STRETCH * STACKSET_BATCH / 8)

static int touch_stretch(struct worker *w, size_t n)
{
    if (w->distinct >= DENSE_LINES)
        return -EOVERFLOW;
    if (w->capacity - w->distinct < n) {
        size_t capacity = 2 * w->capacity + LINES_BATCH;
        uint64_t *first = realloc(w->first, capacity * sizeof(*first));
        if (first == NULL)
            return -ENOMEM;
        w->first = first;
        uint64_t *last = realloc(w->last, capacity * sizeof(*last));
        if (last == NULL)
            return -ENOMEM;
        w->last = last;
        w->capacity = capacity;
    }
    w->touches += n;
    return stackdist_touch_cold(w->separate_stack, w->lines, n, &w->hist, w->first, &w->distinct);
}

static int flush(struct worker *w, struct unit *u, size_t n, enum compute how, uint64_t threshold)
{
    if (how == COMPUTE_STRETCH)
        return touch_stretch(w, n);
    u->touches += n;
    if (how == COMPUTE_SAMPLE)
        return linesample_touch(u->sample, u->distances, threshold, 0, w->lines, n);
    u->sampled += n;
    return stackdist_touch_many(u->distances, w->lines, n, &u->hist, NULL, NULL, &u->cold, NULL);
}

int stackset_compute(struct worker *w, struct unit *u, const struct batch *b, enum compute how,
                     uint64_t threshold)
{
    /* User addresses have 47 bits; the higher bits distinguish address spaces. */
    uint64_t mark = (uint64_t)b->space << 48 >> u->shift;
    size_t n = 0;
    int status = 0;
    for (size_t i = 0; i < b->n && status == 0; i++) {
        uint64_t line = b->address[i] >> u->shift;
        /* An access that wraps around the end of memory is cut there. */
        uint64_t last_byte = b->address[i] + (uint64_t)(b->size[i] - 1);
        uint64_t last = last_byte < b->address[i] ? line : last_byte >> u->shift;
        w->lines[n++] = line ^ mark;
        while (line < last || n == LINES_BATCH) {
            if (n == LINES_BATCH) {
                if ((status = flush(w, u, n, how, threshold)) < 0)
                    return status;
                n = 0;
                continue;
            }
            w->lines[n++] = ++line ^ mark;
        }
    }
    return status < 0 ? status : flush(w, u, n, how, threshold);
}

/* --- stretches --- */

int stackset_begin_stretch(struct worker *w)
{
    struct error err;
    if (w->separate_stack == NULL)
        w->separate_stack = stackdist_new(&err);
    else
        stackdist_reset(w->separate_stack);
    memset(&w->hist, 0, sizeof(w->hist));
    w->touches = w->distinct = 0;
    return w->separate_stack != NULL ? 0 : -ENOMEM;
}

void stackset_end_stretch(struct worker *w)
{
    stackdist_oldest_first(w->separate_stack, w->last);
}

int stackset_join(struct worker *w, struct unit *u)
{
    int status =
        stackdist_touch_many(u->distances, w->first, w->distinct, &u->hist, NULL, NULL, &u->cold, NULL);
    if (status == 0)
        status = stackdist_touch_many(u->distances, w->last, w->distinct, NULL, NULL, NULL, NULL, NULL);
    hist_merge(&u->hist, &w->hist);
    u->touches += w->touches;
    u->sampled += w->touches;
    return status;
}

void stackset_free_stretch(struct worker *w)
{
    stackdist_free(w->separate_stack);
    free(w->first);
    free(w->last);
}
