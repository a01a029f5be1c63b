/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setdist.c - for each set of each number of sets, a list of lines, most recent first.
 *
 * Problem. Simulating thirteen caches at once would take thirteen look-ups per touch.
 *
 * Method. Doubling the number of sets splits each set in two (inclusion; Hill & Smith 1989). Levels are
 * processed from few sets to many. Once the line is the most recent one of its set, it is so on all later
 * levels too: nothing changes there, and the distance is 0. Most touches end at the third or fourth level.
 *
 * Lines are identified by numbers, assigned in the order of first touches and never reused, so that a list is
 * two vectors of 16 numbers. Two comparisons find a line, and two stores move everything in front of it back,
 * without a branch. Since numbers are never reused, a reset need not empty the lists: older entries match no
 * line and come after all lines touched later.
 *
 * Measured, ns per touch, bursts of bzip2, sqlite3, python3 and cc1 on a busy EPYC with AVX-512: 19, 12, 15,
 * 21; lists of whole lines, searched one by one, took 36, 24, 43, 32.
 *
 * Example, lines 0 4 0 at level 1 (two sets) and 3 (eight): both lines are in set 0 of two, so the second
 * touch of 0 has distance 1 there; with eight sets each has its own set, and the distance is 0.
 */
#include "sim/setdist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/setdist-internal.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define MIN_ENTRIES 4096u /* a power of two */

static uint64_t slot_of(const struct setdist *s, uint64_t line)
{
    return line * UINT64_C(0x9e3779b97f4a7c15) >> s->shift;
}

/* The entry of the line, or the empty one for it. Numbers of earlier bursts count as empty. */
static inline struct setdist_entry *find(const struct setdist *s, uint64_t line)
{
    uint64_t at = slot_of(s, line);
    while (s->entries[at].number >= s->first && s->entries[at].line != line)
        at = (at + 1) & (s->capacity - 1);
    return &s->entries[at];
}

static int set_capacity(struct setdist *s, uint64_t capacity)
{
    struct setdist_entry *old = s->entries, *entries = calloc(capacity, sizeof *entries);
    uint64_t n = s->capacity;
    if (entries == NULL)
        return -ENOMEM;
    s->entries = entries;
    s->capacity = capacity;
    s->shift = 64u - (unsigned)__builtin_ctzll(capacity);
    for (uint64_t i = 0; i < n; i++)
        if (old[i].number >= s->first)
            *find(s, old[i].line) = old[i];
    free(old);
    return 0;
}

struct setdist *setdist_new(struct error *err)
{
    struct setdist *s = calloc(1, sizeof *s);
    int ok = s != NULL && set_capacity(s, MIN_ENTRIES) == 0;

    for (unsigned l = 0; ok && l < SETDIST_LEVELS; l++) {
        size_t bytes = ((size_t)2 << l) * sizeof(struct setdist_list);
        ok = (s->level[l] = aligned_alloc(sizeof(struct setdist_list), bytes)) != NULL;
        if (ok)
            memset(s->level[l], 0, bytes);
    }
    if (ok) {
        s->first = s->next = 1; /* 0 is unused */
        s->touch = setdist_has_avx512() ? setdist_touch_avx512 : setdist_touch_any;
        return s;
    }
    setdist_free(s);
    error_set(err, -ENOMEM, "out of memory for the distances within sets");
    return NULL;
}

void setdist_free(struct setdist *s)
{
    if (!s)
        return;
    for (unsigned l = 0; l < SETDIST_LEVELS; l++)
        free(s->level[l]);
    free(s->entries);
    free(s);
}

/* Starts numbering anew: once in 2^31 lines. */
static void start_again(struct setdist *s)
{
    for (unsigned l = 0; l < SETDIST_LEVELS; l++)
        memset(s->level[l], 0, ((size_t)2 << l) * sizeof(struct setdist_list));
    memset(s->entries, 0, s->capacity * sizeof *s->entries);
    s->next = 1;
}

void setdist_reset(struct setdist *s)
{
    if (s->next > INT32_MAX)
        start_again(s);
    s->first = s->next;
    memset(s->count, 0, sizeof s->count);
    memset(s->recent, 0, sizeof s->recent);
}

/* The line's number. 0: memory is short. */
static inline uint32_t number_of(struct setdist *s, uint64_t line)
{
    struct setdist_entry *e = find(s, line);
    if (__builtin_expect(e->number >= s->first, 1))
        return e->number;
    if (2 * (uint64_t)(s->next - s->first + 1) > s->capacity) {
        if (s->next == UINT32_MAX || set_capacity(s, 2 * s->capacity) < 0)
            return 0;
        e = find(s, line);
    }
    *e = (struct setdist_entry){line, s->next++};
    return e->number;
}

int setdist_touch_any(struct setdist *s, const uint64_t *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t number = number_of(s, lines[i]);
        if (number == 0)
            return -ENOMEM;
        for (unsigned l = 0; l < SETDIST_LEVELS; l++) {
            uint32_t *list = s->level[l][lines[i] & (((uint64_t)2 << l) - 1)].number;
            unsigned at = 0;
            while (at < SETDIST_WAYS && list[at] != number)
                at++;
            if (at == 0) {
                s->recent[l]++;
                break;
            }
            s->count[l][at]++;
            memmove(list + 1, list, (at < SETDIST_WAYS ? at : SETDIST_WAYS - 1) * sizeof *list);
            list[0] = number;
        }
    }
    return 0;
}

#ifdef __x86_64__
int setdist_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("bmi");
}

__attribute__((target("avx512f,bmi"))) int setdist_touch_avx512(struct setdist *s, const uint64_t *lines,
                                                                size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t number = number_of(s, lines[i]);
        if (number == 0)
            return -ENOMEM;
        const __m512i here = _mm512_set1_epi32((int)number);
        for (unsigned l = 0; l < SETDIST_LEVELS; l++) {
            uint32_t *list = s->level[l][lines[i] & (((uint64_t)2 << l) - 1)].number;
            __m512i low = _mm512_load_si512(list), high = _mm512_load_si512(list + 16);
            uint32_t found =
                _mm512_cmpeq_epi32_mask(low, here) | (uint32_t)_mm512_cmpeq_epi32_mask(high, here) << 16;
            if (found & 1) {
                s->recent[l]++;
                break;
            }
            unsigned at = __tzcnt_u32(found); /* SETDIST_WAYS if it is not there */
            uint32_t moved = (uint32_t)((UINT64_C(2) << at) - 1);
            s->count[l][at]++;
            __m512i back = _mm512_mask_alignr_epi32(high, (__mmask16)(moved >> 16), high, low, 15);
            /* Whole vectors: the next load would have to wait for a masked store. */
            _mm512_store_si512(list, _mm512_mask_alignr_epi32(low, (__mmask16)moved, low, here, 15));
            _mm512_store_si512(list + 16, back);
        }
    }
    return 0;
}
#endif

int setdist_touch_many(struct setdist *s, const uint64_t *lines, size_t n)
{
    return s->touch(s, lines, n);
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
