/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setdist.c - one list of lines, most recent first, for each set of each number of sets.
 *
 * Problem. Thirteen caches at once cost thirteen look-ups a touch.
 *
 * Method. The sets for twice as many sets are halves of those before (inclusion; Hill & Smith 1989). So the
 * levels are gone through from few sets to many, and as soon as the line is the most recent of its set, it is
 * that on all later levels too: nothing to move there, and the distance is 0. Most touches end at the third
 * or fourth level.
 *
 * Measured: 46 ns a touch of gzip on an EPYC, storing the histograms included; to compare eight lines at once
 * made it slower.
 *
 * Example, lines 0 4 0 at level 1 (two sets) and 3 (eight): both lines are in set 0 of two, so the second
 * touch of 0 has distance 1 there; of eight sets they have one each, and the distance is 0.
 */
#include "sim/setdist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct set {
    uint32_t epoch; /* of setdist: else the set is empty */
    uint32_t used;
    uint64_t line[SETDIST_WAYS]; /* the most recent first */
};

struct setdist {
    uint32_t epoch;
    struct set *level[SETDIST_LEVELS]; /* [l]: 2^(l + 1) sets */
    uint64_t count[SETDIST_LEVELS][SETDIST_WAYS];
    uint64_t recent[SETDIST_LEVELS]; /* touches whose line was the most recent from this level on */
};

struct setdist *setdist_new(struct error *err)
{
    struct setdist *s = calloc(1, sizeof *s);
    int ok = s != NULL;

    for (unsigned l = 0; ok && l < SETDIST_LEVELS; l++)
        ok = (s->level[l] = calloc((size_t)2 << l, sizeof(struct set))) != NULL;
    if (ok) {
        s->epoch = 1;
        return s;
    }
    setdist_free(s);
    error_set(err, -ENOMEM, "no memory for the distances within sets");
    return NULL;
}

void setdist_free(struct setdist *s)
{
    if (!s)
        return;
    for (unsigned l = 0; l < SETDIST_LEVELS; l++)
        free(s->level[l]);
    free(s);
}

void setdist_reset(struct setdist *s)
{
    if (++s->epoch == 0) { /* once in 2^32 resets */
        for (unsigned l = 0; l < SETDIST_LEVELS; l++)
            memset(s->level[l], 0, ((size_t)2 << l) * sizeof(struct set));
        s->epoch = 1;
    }
    memset(s->count, 0, sizeof s->count);
    memset(s->recent, 0, sizeof s->recent);
}

static void touch(struct setdist *s, uint64_t line)
{
    for (unsigned l = 0; l < SETDIST_LEVELS; l++) {
        struct set *set = &s->level[l][line & (((uint64_t)2 << l) - 1)];
        if (set->epoch != s->epoch) {
            set->epoch = s->epoch;
            set->used = 0;
        }
        if (set->used && set->line[0] == line) {
            s->recent[l]++;
            return;
        }
        uint32_t at = 1;
        while (at < set->used && set->line[at] != line)
            at++;
        if (at < set->used) {
            s->count[l][at]++;
        } else {
            set->used += set->used < SETDIST_WAYS;
            at = set->used - 1;
        }
        memmove(set->line + 1, set->line, at * sizeof *set->line);
        set->line[0] = line;
    }
}

void setdist_touch_many(struct setdist *s, const uint64_t *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        touch(s, lines[i]);
}

uint64_t setdist_count(const struct setdist *s, unsigned level, unsigned distance)
{
    uint64_t recent = 0;

    if (distance > 0)
        return s->count[level - 1][distance];
    for (unsigned l = 0; l < level; l++)
        recent += s->recent[l];
    return recent;
}
