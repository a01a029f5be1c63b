/* SPDX-License-Identifier: Apache-2.0 */
/* bursts-strings.c - long string instructions, which bursts rarely contain. */
#include "analysis/bursts-internal.h"

#include <math.h>

/* Taken for the share of misses in touches of which nothing is known. */
#define UNKNOWN_MISSES 0.5

/*
 * A burst is placed by steps, of which an instruction that sets a megabyte is one or two: where it takes a
 * tenth of the time, one in a hundred bursts has it, and 16384 first touches of lines then. Its hits are
 * counted instead (see bursts-load.c). An instruction that has so many hits makes at least one touch of
 * another line for each line_bytes - 1 of them. What bursts have less than that is missing in their
 * distances. With n hits to be expected in all bursts, instructions of less than n / 3 hits would be in some
 * of them, with a probability of 95%.
 */
struct unseen_strings loaded_unseen_strings(const struct loaded *l, uint32_t tid,
                                            const struct analysis_curve *curve)
{
    double hits = 0, seen = 0, steps = 0, recorded = 0, least = curve->line_bytes - 1.0;
    size_t next = 0;
    for (size_t i = 0; i < l->nlist; i++) {
        const struct profile_burst *from = &l->list[i];
        if ((tid && from->tid != tid) || from->references == 0)
            continue;
        size_t at = next++;
        const struct curve_burst *b = &l->bursts[at];
        if (isnan(from->string_hits) || from->steps == 0 || b->references == 0)
            continue;
        uint64_t touches = b->references - l->hits[at];
        double each = b->weight / (double)b->references;
        hits += each * (double)l->hits[at];
        steps += each * (double)from->steps;
        recorded += (double)from->steps;
        if (from->references > touches && touches > from->steps)
            seen += each * (double)(touches - from->steps);
    }
    double unseen = fmax(0, hits / least - seen), all = loaded_weight(l, curve->bursts + l->parts) + unseen;
    if (!(steps > 0) || !(all > 0))
        return (struct unseen_strings){0, 0};
    return (struct unseen_strings){unseen / all, hits / steps * recorded / 3 / least};
}

/*
 * Where a cache holds fewer lines than such an instruction touches, so many lie between two uses of a line by
 * them, and most likely by others.
 */
double unseen_strings_miss(const struct unseen_strings *strings, double lines)
{
    return lines < strings->lines ? 1 : UNKNOWN_MISSES;
}
