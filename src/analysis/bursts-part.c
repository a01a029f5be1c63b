/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bursts-part.c - the run's first part, if it was recorded in full mode, as one more burst of weight one,
 * after those that are samples. Every burst's references are origins of reuses, so this one's first touches
 * are not counted as misses, but what becomes of its survivors, each of which was touched first in it. Lines
 * of processes that ended in it are never touched again. If no lines were watched, none of the others are
 * taken to be either: then it is the misses of this part itself that are counted.
 */
#include "analysis/bursts-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/thread-hist.h"

/* The run's full part: its histograms, first touches, and lines of processes or threads that went on. */
struct full_part {
    struct thread_hist stack;
    struct hist reuse;
};

/* 1, or 0 if it has nothing of the thread, or negative with err. */
static int get_part(struct profile *p, const struct analysis_curve *curve, uint32_t tid,
                    struct full_part *part, struct error *err)
{
    int code = profile_get_hist(p, 0, PROFILE_HIST_STACK, &part->stack.stack, err);
    if (code == 0 || code == -ENOENT)
        code = profile_get_hist(p, 0, PROFILE_HIST_REUSE, &part->reuse, err);
    if (code == -ENOENT)
        code = 0;
    if (code == 0 && curve->separate)
        code = thread_hist_separate(p, curve->profile, tid, &part->stack, err);
    return code == 0 ? 1 : code == -ENODATA && tid != 0 ? 0 : code;
}

/* Packs a histogram, with so many reuses more that miss in every cache. */
static int pack(struct hist *h, uint64_t misses, struct packed_hist *into, struct error *err)
{
    h->count[HIST_BINS - 1] += misses;
    h->total += misses;
    return packed_hist_set(into, h) == 0 ? 0 : error_set(err, -ENOMEM, "out of memory computing the curve");
}

/* The first touches of `left` lines, one after the other. */
static int make_first(uint64_t left, struct packed_hist *first, struct error *err)
{
    struct hist *h = calloc(1, sizeof *h);
    int code = h ? 0 : -ENOMEM;
    if (code == 0) {
        hist_add_up_to(h, left);
        code = packed_hist_set(first, h);
    }
    free(h);
    return code == 0 ? 0 : error_set(err, code, "out of memory computing the curve");
}

static int get_count(struct profile *p, const char *key, uint64_t *n)
{
    double value;
    *n = 0;
    if (profile_get_number(p, key, &value, NULL) != 0 || !(value >= 0 && value < 0x1p63))
        return 0;
    *n = (uint64_t)value;
    return 1;
}

int loaded_full_part(struct profile *p, uint32_t tid, struct loaded *l, struct analysis_curve *curve,
                     struct error *err)
{
    uint64_t references, cold, left;
    struct curve_burst *b = &l->bursts[curve->bursts];
    if (!get_count(p, "full_references", &references) || references == 0 ||
        !get_count(p, "full_cold", &cold) || !get_count(p, "full_left", &left))
        return 0;
    struct full_part *part = calloc(1, sizeof *part);
    if (!part)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    part->stack.cold = cold;
    part->stack.left = left;
    int code = get_part(p, curve, tid, part, err);
    if (code <= 0) {
        free(part);
        return code;
    }
    cold = part->stack.cold;
    left = part->stack.left;
    if (left > cold || curve->watches == 0)
        left = 0;
    if (tid)
        references = part->stack.stack.total + cold;
    code = pack(&part->stack.stack, cold - left, &b->stack, err);
    if (code == 0)
        code = pack(&part->reuse, cold - left, &b->reuse, err);
    free(part);
    if (code == 0 && left > 0)
        code = loaded_hist(p, 0, PROFILE_HIST_AGE, &b->age, err);
    if (code == 0)
        code = make_first(left, &b->first, err);
    if (code != 0)
        return code;
    b->references = b->stack.total + left;
    b->weight = (double)b->references;
    b->certain = 1;
    b->thread = UINT32_MAX;
    b->start_refs = NAN;
    l->parts = 1;
    l->left_share = cold > 0 ? (double)left / (double)cold : 0;
    curve->references += references;
    curve->full_references = references;
    return 0;
}
