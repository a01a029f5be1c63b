/* SPDX-License-Identifier: Apache-2.0 */
/* bursts-strings.c - long string instructions, which bursts rarely contain. */
#include "analysis/bursts-internal.h"

#include <math.h>

/* Taken for the share of misses in touches of which nothing is known. */
#define UNKNOWN_MISSES 0.5

/* Sums over bursts, weighted but for the last. */
struct sums {
    double weight, hits, own, lines, steps, recorded; /* own: hits in the burst itself */
};

static void add_burst(struct sums *s, const struct profile_burst *from, const struct curve_burst *b,
                      uint64_t hits)
{
    uint64_t touches = b->references - hits;
    double each = b->weight / (double)b->references;
    s->weight += b->weight;
    s->hits += each * (double)hits;
    s->steps += each * (double)from->steps;
    s->recorded += (double)from->steps;
    if (from->references > touches)
        s->own += each * (double)(from->references - touches);
    if (from->references > touches && touches > from->steps)
        s->lines += each * (double)(touches - from->steps);
}

/*
 * Hits in the counted part that were not counted before any of its bursts, but after the last one of their
 * thread. Bursts were given the weight of all that was counted, so their own hits weigh too much.
 */
static double find_late_hits(const struct loaded *l, const struct sums *counted, double least)
{
    double known = fmin(l->counted_strings, l->counted_references), all = known * least / (least + 1),
           share = counted->weight > 0 ? counted->hits / counted->weight * (least + 1) / least : 1;
    return share < 1 ? fmax(0, (all - counted->hits) / (1 - share)) : 0;
}

/*
 * A burst is placed by steps, of which an instruction that sets a megabyte is one or two: where it takes a
 * tenth of the time, one in a hundred bursts has it, and 16384 first touches of lines then. Its hits are
 * counted instead (see bursts-load.c). An instruction that has so many hits makes at least one touch of
 * another line for each line_bytes - 1 of them. What bursts have less than that is missing in their
 * distances. With n hits to be expected in all bursts, instructions of less than n / 3 hits would be in some
 * of them, with a probability of 95%.
 */
struct unseen_strings loaded_unseen_strings(const struct loaded *l, uint32_t tid, int of_part,
                                            const struct analysis_curve *curve)
{
    struct sums all = {0}, counted = {0};
    double least = curve->line_bytes - 1.0;
    size_t next = 0;
    for (size_t i = 0; i < l->nlist; i++) {
        const struct profile_burst *from = &l->list[i];
        if ((tid && from->tid != tid) || from->references == 0)
            continue;
        size_t at = next++;
        if (isnan(from->string_hits) || from->steps == 0 || l->bursts[at].references == 0 ||
            !(l->bursts[at].weight > 0))
            continue;
        add_burst(&all, from, &l->bursts[at], l->hits[at]);
        if (l->times[at].counted)
            add_burst(&counted, from, &l->bursts[at], l->hits[at]);
    }
    double sum = loaded_weight(l, curve->bursts + (of_part ? 0 : l->parts));
    if (!(all.steps > 0) || !(least > 0) || !(sum > 0))
        return (struct unseen_strings){0, 0, 0, 0};
    double late = tid || of_part || l->parts == 0 ? 0 : fmin(find_late_hits(l, &counted, least), sum),
           others = 1 - late / sum, hits = late + others * all.hits,
           unseen = fmax(0, hits / least - others * all.lines),
           touches = sum + fmax(0, unseen - late / least); /* what is late is in the sum, lines included */
    return (struct unseen_strings){.hits = late / touches,
                                   .share = unseen / touches,
                                   .unlisted = (late + others * (all.hits - all.own)) / touches,
                                   .lines = hits / all.steps * all.recorded / 3 / least};
}

/*
 * Where a cache holds fewer lines than such an instruction touches, so many lie between two uses of a line by
 * them, and most likely by others.
 */
double unseen_strings_miss(const struct unseen_strings *strings, double lines)
{
    return lines < strings->lines ? 1 : UNKNOWN_MISSES;
}
