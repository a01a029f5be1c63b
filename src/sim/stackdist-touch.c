/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackdist-touch.c - the loop that every reference goes through. Compiled twice (meson.build), as
 * stackdist_touch_any and as stackdist_touch_avx512: TOUCH is its name. stackdist.c explains the method.
 */
#include <errno.h>
#include <stdbool.h>

#include "sim/stackdist-internal.h"

/* References that are looked at together; fits stackdist_restamp's reserve and a first-level cache. */
#define CHUNK 512u
/* How many runs of touches ahead hash table entries that will be asked for are fetched. */
#define LOOK_AHEAD 12u
/* Entries. 1 MB stays in a second-level cache: looking ahead would only cost. */
#define SMALL_TABLE 50000u
/*
 * Without a front: so many runs ahead a line's entries are fetched, and so many ahead its own is found, and
 * what the tail has of it is fetched. Measured with 4 M random lines: 32 and 12 54 ns a reference, 48 and 16
 * 50, 64 and 32 50.
 */
#define FETCH_AHEAD 48u
#define FIND_AHEAD 16u
/* Fewest runs in a chunk for deciding whether the front pays. */
#define TELLING 128u

/* Sanitizers instrument the resolvers of cloned functions, which run before their runtime is set up. */
#if defined(__AVX512BW__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || \
    !defined(__x86_64__)
#define CLONES
#else
#define CLONES __attribute__((target_clones("avx2", "default")))
#endif
#define INLINE static inline __attribute__((always_inline))
#define NOT_INLINE static CLONES __attribute__((noinline))

/* Touches of one line in a row. Room for a vector beyond: whole vectors are stored. */
struct runs {
    uint64_t line[CHUNK + 8];
    uint16_t bound[CHUNK + 17]; /* [r]: index of the first reference of run r; [r + 1]: after its last */
};

/* Of the first touch of each run. */
struct distances {
    uint64_t stack[CHUNK], reuse[CHUNK];
};

/* Splits n <= CHUNK references into runs, without a branch: a third to a half of them repeat the last. */
INLINE size_t split_runs(const uint64_t *lines, size_t n, struct runs *runs)
{
    size_t count = 0, i = 0;

    runs->bound[0] = 0;
#ifdef __AVX512BW__
    __m128i ends = _mm_setr_epi16(1, 2, 3, 4, 5, 6, 7, 8);
    for (; i + 8 < n; i += 8) {
        __m512i here = _mm512_loadu_si512(lines + i), next = _mm512_loadu_si512(lines + i + 1);
        __mmask8 last = _mm512_cmpneq_epi64_mask(here, next);
        _mm512_storeu_si512(runs->line + count, _mm512_maskz_compress_epi64(last, here));
        __m256i wide = _mm256_maskz_compress_epi32(last, _mm256_cvtepu16_epi32(ends));
        _mm_storeu_si128((__m128i *)(void *)(runs->bound + 1 + count), _mm256_cvtepi32_epi16(wide));
        ends = _mm_add_epi16(ends, _mm_set1_epi16(8));
        count += (unsigned)__builtin_popcount(last);
    }
#endif
    for (; i + 1 < n; i++) {
        runs->line[count] = lines[i];
        runs->bound[count + 1] = (uint16_t)(i + 1);
        count += lines[i] != lines[i + 1];
    }
    runs->line[count] = lines[n - 1];
    runs->bound[count + 1] = (uint16_t)n;
    return count + 1;
}

INLINE void add_hint(struct stackdist *sd, uint64_t hash, unsigned slot)
{
    uint8_t *hint = sd->hint[hint_of(hash)];
    hint[1] = hint[0];
    hint[0] = (uint8_t)slot;
}

/* The line moves from a near slot to a far one, and its hint with it (if it had none it takes the second). */
INLINE void move_away(struct stackdist *sd, unsigned from, unsigned to)
{
    uint8_t *hint = sd->hint[hint_of(hash_line(sd->slot[from].line))];

    sd->slot[to] = sd->slot[from];
    far_set(&sd->stamps, to, sd->slot[from].stamp);
    hint[hint[0] != from] = (uint8_t)to;
}

/* A line that is in no slot gets one. The slot, or -ENOMEM. */
INLINE int bring_in(struct stackdist *sd, uint64_t line, uint64_t hash, uint64_t at, uint64_t now,
                    struct stackdist_result *result)
{
    bool cold = sd->entries[at].last <= sd->start;

    /* All that can fail comes before the first change. */
    if (cold && 4 * (sd->lines + 1) > 3 * sd->capacity) {
        if (stackdist_grow_table(sd) < 0)
            return -ENOMEM;
        at = find_entry(sd, line, hash);
    }
    if (sd->front_count == FRONT_LINES && sd->tail.next == sd->tail.limit && stackdist_renumber(sd) < 0)
        return -ENOMEM;

    struct entry *e = &sd->entries[at];
    if (cold) {
        result->stack = result->reuse = STACKDIST_COLD;
        e->line = line;
        sd->lines++;
    } else {
        result->stack = sd->front_count + tail_take(&sd->tail, e->place);
        result->reuse = now - e->last;
    }

    unsigned slot = near_oldest(&sd->stamps);
    if (sd->slot[slot].line != NO_LINE) {
        unsigned leaving = far_oldest(&sd->stamps);
        if (sd->slot[leaving].line != NO_LINE) {
            struct entry *other = &sd->entries[sd->slot[leaving].at];
            other->last = sd->slot[leaving].last;
            other->place = tail_give(&sd->tail);
            sd->front_count--;
        }
        move_away(sd, slot, leaving);
    }
    sd->front_count++;
    e->last = now + 1;
    e->place = PLACE_FRONT;
    sd->slot[slot].line = line;
    sd->slot[slot].at = at;
    add_hint(sd, hash, slot);
    return (int)slot;
}

/*
 * A touch of a line that is not where its first hint says, or not near. Fills in the result and makes
 * the line near, but for its time and stamp. Its slot, or -ENOMEM.
 */
NOT_INLINE int touch_elsewhere(struct stackdist *sd, uint64_t line, uint64_t now,
                               struct stackdist_result *result)
{
    uint64_t hash = hash_line(line);
    uint8_t *hint = sd->hint[hint_of(hash)];
    unsigned slot = hint[0];

    if (sd->slot[slot].line != line && sd->slot[slot = hint[1]].line != line) {
        uint64_t at = find_entry(sd, line, hash);
        if (sd->entries[at].last <= sd->start || sd->entries[at].place != PLACE_FRONT)
            return bring_in(sd, line, hash, at, now, result);
        slot = stackdist_slot_of(sd, line); /* both hints were others' */
        add_hint(sd, hash, slot);
    }
    result->reuse = now - sd->slot[slot].last;
    if (slot < FRONT_NEAR) {
        struct near near = near_open(&sd->stamps, 0);
        result->stack = near_newer(&near, &sd->slot[slot].stamp);
        return (int)slot;
    }
    result->stack = FRONT_NEAR + far_newer(&sd->stamps, &sd->slot[slot].stamp);

    unsigned oldest = near_oldest(&sd->stamps);
    uint64_t at = sd->slot[slot].at;
    move_away(sd, oldest, slot); /* before the hint: the two lines may share theirs */
    hint[hint[0] != slot] = (uint8_t)oldest;
    sd->slot[oldest].line = line;
    sd->slot[oldest].at = at;
    return (int)oldest;
}

/* Prefetches the table entry that a touch of the line will need. */
INLINE void look_ahead(const struct stackdist *sd, uint64_t line)
{
    uint64_t hash = hash_line(line);
    const uint8_t *hint = sd->hint[hint_of(hash)];

    if (sd->slot[hint[0]].line != line && sd->slot[hint[1]].line != line)
        __builtin_prefetch(&sd->entries[home_of(hash, sd->capacity)]);
}

/* Distances of HIST_EXACT and more. Which are so large cannot be guessed, so they are set aside, without a
 * branch. */
struct larges {
    uint64_t distance[CHUNK];
    size_t n;
};

INLINE void add_small(struct hist *h, struct larges *larges, uint64_t distance)
{
    larges->distance[larges->n] = distance;
    larges->n += distance >= HIST_EXACT;
    h->count[distance < HIST_EXACT ? distance : HIST_EXACT]++;
}

/* The rest, of n distances in all, but those that are STACKDIST_COLD. */
INLINE void add_large(struct hist *h, const struct larges *larges, size_t n)
{
    size_t cold = 0;

    h->count[HIST_EXACT] -= larges->n;
    for (size_t i = 0; i < larges->n; i++)
        if (larges->distance[i] != STACKDIST_COLD)
            h->count[hist_bin(larges->distance[i])]++;
        else
            cold++;
    h->total += n - cold;
}

/* Adds up n <= CHUNK distances, but those that are STACKDIST_COLD. */
INLINE void sum_up(struct hist *h, const uint64_t *distance, size_t n)
{
    struct larges larges;

    larges.n = 0;
    for (size_t i = 0; i < n; i++)
        add_small(h, &larges, distance[i]);
    add_large(h, &larges, n);
}

/* Both histograms in one go: many distances in a row are equal, and to count one waits for the last one's. */
INLINE void sum_up_both(const struct stackdist_sums *sums, const struct distances *d, size_t n)
{
    struct larges stack, reuse;

    stack.n = reuse.n = 0;
    for (size_t i = 0; i < n; i++) {
        add_small(sums->stack, &stack, d->stack[i]);
        add_small(sums->reuse, &reuse, d->reuse[i]);
    }
    add_large(sums->stack, &stack, n);
    add_large(sums->reuse, &reuse, n);
}

/* Touches the first `count` runs. How many were touched: less if memory was short. */
INLINE size_t touch_runs(struct stackdist *sd, const struct runs *runs, size_t count, struct distances *d)
{
    size_t ahead = sd->capacity > SMALL_TABLE && count > LOOK_AHEAD ? count - LOOK_AHEAD : 0;
    uint64_t before = sd->now, now = before;
    int16_t tick = sd->tick;
    struct near near = near_open(&sd->stamps, tick);
    size_t r;

    for (r = 0; r < count; r++) {
        uint64_t line = runs->line[r];
        const uint8_t *hint = sd->hint[hint_of(hash_line(line))];
        unsigned slot = sd->slot[hint[0]].line == line ? hint[0] : hint[1];
        struct slot *s = &sd->slot[slot];

        if (r < ahead)
            look_ahead(sd, runs->line[r + LOOK_AHEAD]);
        if (__builtin_expect(s->line == line && slot < FRONT_NEAR, 1)) {
            d->stack[r] = near_newer(&near, &s->stamp);
            d->reuse[r] = now - s->last;
        } else {
            near_close(&near, &sd->stamps);
            struct stackdist_result result;
            int found = touch_elsewhere(sd, line, now, &result);
            if (found < 0)
                break;
            d->stack[r] = result.stack;
            d->reuse[r] = result.reuse;
            slot = (unsigned)found;
            s = &sd->slot[slot];
        }
        now = before + runs->bound[r + 1];
        s->last = now;
        s->stamp = ++tick;
        near_stamp_next(&near, slot);
    }
    near_close(&near, &sd->stamps);
    sd->now = now;
    sd->tick = tick;
    return r;
}

/* The line's entry, or the empty one that it gets; at: where it was a moment ago. NULL without memory. */
INLINE struct entry *entry_of(struct stackdist *sd, uint64_t line, uint64_t at)
{
    if (sd->entries[at].last > sd->start && sd->entries[at].line == line)
        return &sd->entries[at];
    at = find_entry(sd, line, hash_line(line));
    if (sd->entries[at].last <= sd->start && 4 * (sd->lines + 1) > 3 * sd->capacity) {
        if (stackdist_grow_table(sd) < 0)
            return NULL;
        at = find_entry(sd, line, hash_line(line));
    }
    return &sd->entries[at];
}

/* Where the line's entry is: at its home, or some entries on, and those lie in the next line of memory as
 * often. */
INLINE void fetch_entries(const struct stackdist *sd, uint64_t line)
{
    const struct entry *home = &sd->entries[home_of(hash_line(line), sd->capacity)];

    __builtin_prefetch(home, 1);
    __builtin_prefetch((const char *)home + 64, 1);
}

/* As touch_runs, without a front. */
NOT_INLINE size_t touch_runs_plain(struct stackdist *sd, const struct runs *runs, size_t count,
                                   struct distances *d)
{
    uint64_t at[CHUNK], before = sd->now, now = before;
    size_t fetched = 0, found = 0, r;

    for (r = 0; r < count; r++) {
        for (; fetched < count && fetched < r + FETCH_AHEAD; fetched++)
            fetch_entries(sd, runs->line[fetched]);
        for (; found < count && found < r + FIND_AHEAD; found++) {
            at[found] = find_entry(sd, runs->line[found], hash_line(runs->line[found]));
            const struct entry *e = &sd->entries[at[found]];
            if (e->last > sd->start)
                tail_look_ahead(&sd->tail, e->place);
        }
        struct entry *e = entry_of(sd, runs->line[r], at[r]);
        if (!e || (sd->tail.next == sd->tail.limit && stackdist_renumber(sd) < 0))
            break;
        if (e->last > sd->start) {
            d->stack[r] = tail_take(&sd->tail, e->place);
            d->reuse[r] = now - e->last;
        } else {
            d->stack[r] = d->reuse[r] = STACKDIST_COLD;
            e->line = runs->line[r];
            sd->lines++;
        }
        now = before + runs->bound[r + 1];
        e->last = now;
        e->place = tail_give(&sd->tail);
    }
    sd->now = now;
    return r;
}

INLINE void list_cold(const struct stackdist_sums *sums, const struct runs *runs, const uint64_t *stack,
                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (stack[i] == STACKDIST_COLD)
            sums->cold_lines[(*sums->ncold)++] = runs->line[i];
}

/* Lists the touches at distances of far->least and more, first touches included; base: number of touches
 * before. */
INLINE void list_far(struct stackdist_far *far, const struct runs *runs, const uint64_t *stack, size_t n,
                     size_t base)
{
    size_t i = 0, used = far->n;

#ifdef __AVX512BW__
    const __m512i least = _mm512_set1_epi64((long long)far->least);
    for (; i + 8 <= n; i += 8) {
        __m512i distance = _mm512_loadu_si512(stack + i);
        __mmask8 reached = _mm512_cmpge_epu64_mask(distance, least);
        if (reached == 0)
            continue;
        __m256i at = _mm256_add_epi32(
            _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(runs->bound + i))),
            _mm256_set1_epi32((int)base));
        _mm512_storeu_si512(far->stack + used, _mm512_maskz_compress_epi64(reached, distance));
        _mm256_storeu_si256((__m256i *)(void *)(far->at + used), _mm256_maskz_compress_epi32(reached, at));
        used += (unsigned)__builtin_popcount(reached);
    }
#endif
    for (; i < n; i++) {
        far->stack[used] = stack[i];
        far->at[used] = (uint32_t)(base + runs->bound[i]);
        used += stack[i] >= far->least;
    }
    far->n = used;
}

/* Decides from the touches whether the front pays. */
INLINE void choose_front(struct stackdist *sd, const uint64_t *stack, size_t n)
{
    size_t past = 0;

    for (size_t i = 0; i < n; i++)
        past += stack[i] >= FRONT_LINES;
    if (n < TELLING || 2 * past == n || sd->plain == (2 * past > n))
        return;
    if (sd->plain)
        sd->plain = false;
    else
        stackdist_leave_front(sd);
}

CLONES int TOUCH(struct stackdist *sd, const uint64_t *lines, size_t n, const struct stackdist_sums *sums,
                 struct stackdist_result *single)
{
    struct distances d;
    struct runs runs;

    for (size_t done = 0; done < n; done += CHUNK) {
        uint64_t lines_before = sd->lines;
        size_t count = split_runs(lines + done, n - done < CHUNK ? n - done : CHUNK, &runs);
        if (sd->tick > FRONT_MAX_STAMP - (int)CHUNK)
            stackdist_restamp(sd);
        size_t touched =
            sd->plain ? touch_runs_plain(sd, &runs, count, &d) : touch_runs(sd, &runs, count, &d);
        size_t repeats = touched > 0 ? runs.bound[touched] - touched : 0;
        if (sums->stack && sums->reuse)
            sum_up_both(sums, &d, touched);
        else if (sums->stack || sums->reuse)
            sum_up(sums->stack ? sums->stack : sums->reuse, sums->stack ? d.stack : d.reuse, touched);
        if (sums->stack)
            hist_add(sums->stack, 0, repeats);
        if (sums->reuse)
            hist_add(sums->reuse, 0, repeats);
        if (sums->far)
            list_far(sums->far, &runs, d.stack, touched, done);
        if (sums->cold_lines && lines_before < sd->lines)
            list_cold(sums, &runs, d.stack, touched);
        for (; sums->first && lines_before < sd->lines; lines_before++)
            hist_add(sums->first, lines_before, 1);
        if (touched < count)
            return -ENOMEM;
        choose_front(sd, d.stack, touched);
        if (single)
            *single = (struct stackdist_result){d.stack[0], d.reuse[0]};
    }
    return 0;
}
