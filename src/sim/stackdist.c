/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact LRU stack distances and reuse distances, one pass.
 *
 * Problem. The stack distance of a reference is the number of distinct lines touched since its line
 * was last touched: the line's depth in a list kept in order of recency. Walking such a list costs
 * time in proportion to the depth; a tree over last-touch times (Bennett & Kruskal 1975) costs a
 * logarithm, but for every reference, also for the 95% that come back to a line used a moment ago.
 *
 * Method. References in a row to one line are one touch: all but the first have distance 0. The list
 * is cut in three.
 *
 *  - The near front: the FRONT_NEAR most recent lines, in slots. Each slot has a stamp, the tick of its
 *    line's last touch; its depth is the number of slots with a larger stamp: a few vector
 *    instructions, and nothing to move (front.h). A small table of hints (hash of the line -> slots),
 *    checked against the slot's line, finds the slot; nothing is searched.
 *
 *  - The far front: the lines after those, up to FRONT_LINES, kept and counted in the same way. A touch
 *    of one of them swaps it with the oldest near line.
 *
 *  - The tail: all other lines. A line that leaves the front gets the next number. Lines leave the
 *    front in order of last touch, so the tail lines more recent than one are those with larger
 *    numbers, and its depth is the lines of the front plus the numbers in use above its own (tail.h). When
 *    the numbers run out, the lines are renumbered without gaps.
 *
 * Where most touches go past the front it only costs: then it is emptied, every touch gives its line the
 * next number of the tail at once, and what touches will need of the table and the tail is prefetched, so
 * that the misses of many overlap. When most touches would find their line in a front, it is used again.
 *
 * A hash table over all lines has the place of each line. It is used only when the hints fail. Entries
 * are never removed. Time (the count of touches) continues through stackdist_reset, so that an entry
 * from before the reset is known by its time, counts as empty, and costs the reset nothing.
 *
 * Example, with a front of two lines; touches a b c a b b:
 *   a  cold, stamp 1                  front a1
 *   b  cold, stamp 2                  front a1 b2
 *   c  cold; a leaves, number 0       front c3 b2    tail a:0
 *   a  tail, no number above 0: 2 + 0 = 2; b leaves, number 1     front c3 a4    tail b:1
 *   b  tail, no number above 1: 2; c leaves, number 2             front b5 a4    tail c:2
 *   b  again: 0
 *
 * Measured, ns a reference, 2.5 M references each of real programs, on an EPYC with AVX-512 (in brackets
 * stackdist_touch_any with AVX2): bzip2 3.5 (4.7), xz 5.7 (7.9), sqlite3 5.3 (7.8), perl 5.6 (8.0), cc1
 * 6.7 (8.9). What it replaced, 64 ranked lines and no runs: 5.5, 7.5, 7.4, 7.9, 9.7. A third to a half of the
 * references are repeats; of the other touches 13-18% go past the nearest 64 lines, 0-6% past 256. Lines
 * drawn at random (build/tests/bench_stackdist), in brackets before there was a way without a front: 4096
 * lines 26 (70), 100,000 33 (80), 1 M 41 (200), 4 M 50 (260).
 */
#include "sim/stackdist-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

#define MIN_ENTRIES 512u

static_assert(FRONT_LINES == UINT8_MAX + 1, "hints are bytes");

int stackdist_has_avx512(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
#else
    return 0;
#endif
}

int stackdist_touch(struct stackdist *sd, uint64_t line, struct stackdist_result *result)
{
    static const struct stackdist_sums none;

    return sd->touch(sd, &line, 1, &none, result);
}

int stackdist_touch_cold(struct stackdist *sd, const uint64_t *lines, size_t n, struct hist *stack_hist,
                         uint64_t *cold_lines, size_t *ncold)
{
    const struct stackdist_sums sums = {.stack = stack_hist, .cold_lines = cold_lines, .ncold = ncold};

    return sd->touch(sd, lines, n, &sums, NULL);
}

int stackdist_touch_many(struct stackdist *sd, const uint64_t *lines, size_t n, struct hist *stack_hist,
                         struct hist *reuse_hist, struct hist *first_hist, uint64_t *cold)
{
    return stackdist_touch_far(sd, lines, n, stack_hist, reuse_hist, first_hist, cold, NULL);
}

int stackdist_touch_far(struct stackdist *sd, const uint64_t *lines, size_t n, struct hist *stack_hist,
                        struct hist *reuse_hist, struct hist *first_hist, uint64_t *cold,
                        struct stackdist_far *far)
{
    const struct stackdist_sums sums = {
        .stack = stack_hist, .reuse = reuse_hist, .first = first_hist, .far = far};
    uint64_t before = sd->lines;
    if (far)
        far->n = 0;
    int code = sd->touch(sd, lines, n, &sums, NULL);

    if (cold)
        *cold += sd->lines - before;
    return code;
}

struct stackdist *stackdist_new(uint64_t expected_lines, struct error *err)
{
    uint64_t capacity = MIN_ENTRIES;
    struct stackdist *sd = NULL;

    if (expected_lines > TAIL_MAX_NUMBERS / 2)
        expected_lines = TAIL_MAX_NUMBERS / 2;
    if (capacity < expected_lines + expected_lines / 2)
        capacity = expected_lines + expected_lines / 2;
    sd = aligned_alloc(_Alignof(struct stackdist), sizeof *sd);
    if (!sd)
        goto fail;
    memset(sd, 0, sizeof *sd);
    stackdist_clear_front(sd);
    sd->capacity = capacity;
    sd->entries = pages_new(capacity * sizeof *sd->entries);
    if (sd->entries && tail_init(&sd->tail, stackdist_wanted_numbers(0, capacity)) == 0) {
        sd->touch = stackdist_has_avx512() ? stackdist_touch_avx512 : stackdist_touch_any;
        return sd;
    }
fail:
    stackdist_free(sd);
    error_set(err, -ENOMEM, "no memory for the stack distances of %llu lines",
              (unsigned long long)expected_lines);
    return NULL;
}

void stackdist_free(struct stackdist *sd)
{
    if (!sd)
        return;
    pages_free(sd->entries, sd->capacity * sizeof *sd->entries);
    tail_free(&sd->tail);
    free(sd);
}

void stackdist_reset(struct stackdist *sd)
{
    stackdist_clear_front(sd);
    tail_clear(&sd->tail);
    sd->start = sd->now;
    sd->lines = 0;
}

uint64_t stackdist_lines(const struct stackdist *sd)
{
    return sd->lines;
}

uint64_t stackdist_references(const struct stackdist *sd)
{
    return sd->now - sd->start;
}

size_t stackdist_memory_bytes(const struct stackdist *sd)
{
    return sizeof *sd + sd->capacity * sizeof *sd->entries + tail_bytes(&sd->tail);
}

void stackdist_ages(const struct stackdist *sd, struct hist *age_hist)
{
    uint64_t left = sd->lines;

    for (uint32_t slot = 0; slot < FRONT_LINES; slot++) {
        if (sd->slot[slot].line == NO_LINE)
            continue;
        hist_add(age_hist, sd->now - sd->slot[slot].last, 1);
        left--;
    }
    for (uint64_t i = 0; left > 0; i++) {
        const struct entry *e = &sd->entries[i];
        if (e->last <= sd->start || e->place == PLACE_FRONT)
            continue;
        hist_add(age_hist, sd->now - e->last, 1);
        left--;
    }
}

void stackdist_survivors(const struct stackdist *sd, struct stackdist_survivor *out)
{
    uint64_t left = sd->lines;

    for (uint32_t slot = 0; slot < FRONT_LINES; slot++) {
        if (sd->slot[slot].line == NO_LINE)
            continue;
        *out++ = (struct stackdist_survivor){sd->slot[slot].line, sd->now - sd->slot[slot].last};
        left--;
    }
    for (uint64_t i = 0; left > 0; i++) {
        const struct entry *e = &sd->entries[i];
        if (e->last <= sd->start || e->place == PLACE_FRONT)
            continue;
        *out++ = (struct stackdist_survivor){e->line, sd->now - e->last};
        left--;
    }
}

void stackdist_oldest_first(const struct stackdist *sd, uint64_t *out)
{
    unsigned front[FRONT_LINES], count = stackdist_slots_oldest_first(sd, front);
    uint64_t left = sd->lines - count;

    for (unsigned i = 0; i < count; i++)
        out[left + i] = sd->slot[front[i]].line;
    for (uint64_t i = 0; left > 0; i++) {
        const struct entry *e = &sd->entries[i];
        if (e->last <= sd->start || e->place == PLACE_FRONT)
            continue;
        out[tail_below(&sd->tail, e->place)] = e->line;
        left--;
    }
}
