/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackdist-touch.c - the loop that processes every reference. Compiled twice (meson.build), as
 * stackdist_touch_any and as stackdist_touch_avx2: TOUCH is its name. stackdist.c explains the method.
 */
#include <errno.h>
#include <stdbool.h>

#include "sim/stackdist-internal.h"

/* References processed together; their results fit into a first-level cache. */
#define CHUNK 512u
/* If lines are scattered, a run's entries are prefetched so many runs ahead. */
#define FETCH_AHEAD 48u
/* Fewest runs in a chunk from which this is decided. */
#define TELLING 128u

#define INLINE static inline __attribute__((always_inline))
#define NOT_INLINE static __attribute__((noinline))

/* Runs: consecutive touches of one line. */
struct runs {
    uint64_t line[CHUNK];
    uint16_t bound[CHUNK + 1]; /* [r]: index of the first reference of run r; [r + 1]: after its last */
};

/* Splits n <= CHUNK references into runs, without a branch: a third to a half of them repeat the previous
 * line. */
INLINE size_t split_runs(const uint64_t *lines, size_t n, struct runs *runs)
{
    size_t count = 0;

    runs->bound[0] = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        runs->line[count] = lines[i];
        runs->bound[count + 1] = (uint16_t)(i + 1);
        count += lines[i] != lines[i + 1];
    }
    runs->line[count] = lines[n - 1];
    runs->bound[count + 1] = (uint16_t)n;
    return count + 1;
}

INLINE void add_distance(struct hist *h, uint64_t distance)
{
    if (h)
        h->count[__builtin_expect(distance < HIST_EXACT, 1) ? distance : hist_bin(distance)]++;
}

/* Creates an entry for the line. NULL if memory is short. */
NOT_INLINE struct entry *new_entry(struct stackdist *sd, uint64_t line, uint64_t at,
                                   const struct stackdist_sums *sums)
{
    if (4 * (sd->lines + 1) > 3 * sd->capacity) {
        if (stackdist_grow_table(sd) < 0)
            return NULL;
        at = find_entry(sd, line, hash_line(line));
    }
    if (sums->first)
        hist_add(sums->first, sd->lines, 1);
    if (sums->cold_lines)
        sums->cold_lines[(*sums->ncold)++] = line;
    sd->lines++;
    sd->entries[at].line = line;
    return &sd->entries[at];
}

/* Prefetches the line's entry: at its home, or some entries further, often in the next line of memory. */
INLINE void fetch_entries(const struct stackdist *sd, uint64_t line)
{
    const struct entry *home = &sd->entries[home_of(hash_line(line), sd->capacity)];

    __builtin_prefetch(home, 1);
    __builtin_prefetch((const char *)home + 64, 1);
}

/* Finds the entries of n runs, which were prefetched, and prefetches their data in the tail. */
INLINE void find_entries(const struct stackdist *sd, const uint64_t *line, size_t n, uint64_t *at)
{
    for (size_t i = 0; i < n; i++) {
        at[i] = find_entry(sd, line[i], hash_line(line[i]));
        const struct entry *e = &sd->entries[at[i]];
        if (e->last > sd->start)
            tail_look_ahead(&sd->tail, e->number);
    }
}

/* Subtracts one from the first `lanes` lanes. */
INLINE void subtract_one(recent_counts *counts, uint32_t lanes)
{
    static const int16_t steps[2 * RECENT_WORDS] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                    -1, -1, -1, -1, -1, -1, -1, -1};
    recent_counts minus;
    __builtin_memcpy(&minus, steps + RECENT_WORDS - lanes, sizeof minus);
    *counts += minus;
}

/*
 * Touches n runs, not more than there are numbers left in the word; bound: of those. before: time before the
 * chunk, which contains the caller's touches from index `base` on. at: where their entries were found, or
 * NULL. Returns how many were touched: fewer if memory is short.
 */
INLINE size_t touch_word(struct stackdist *sd, const uint64_t *line, const uint16_t *bound, size_t n,
                         uint64_t before, size_t base, const uint64_t *at, const struct stackdist_sums *sums)
{
    const uint64_t start = sd->start;
    const uint32_t open = sd->open;
    uint64_t *const bits = sd->tail.bits;
    struct hist *const stack_hist = sums->stack, *const reuse_hist = sums->reuse;
    struct stackdist_far *const far = sums->far;
    size_t nfar = far ? far->n : 0;
    struct entry *entries = sd->entries;
    recent_counts later = sd->later.all;
    uint64_t now = sd->now, stack;
    uint32_t next = sd->next;
    uint64_t to_come = 64 - next % 64; /* bits of the word that are set in advance */
    size_t r;

    for (r = 0; r < n; r++) {
        uint64_t hash = hash_line(line[r]);
        uint32_t *hint = &sd->hint[hint_of(hash)];
        struct entry *e = &entries[at != NULL ? at[r] : *hint];

        if (__builtin_expect(e->line != line[r] || e->last <= start, 0)) {
            uint64_t found = find_entry(sd, line[r], hash);
            e = &entries[found];
            if (e->last <= start) {
                e = new_entry(sd, line[r], found, sums);
                if (!e)
                    break;
                entries = sd->entries;
                *hint = (uint32_t)(e - entries);
                stack = STACKDIST_COLD;
                goto touched;
            }
            *hint = (uint32_t)found;
        }
        uint32_t number = e->number, recent = number / 64 - open;
        if (__builtin_expect(recent < RECENT_WORDS, 1)) {
            uint64_t word = bits[number / 64];
            stack =
                (uint64_t)(__builtin_popcountll(word >> (number % 64) >> 1) + sd->later.of[recent]) - to_come;
            bits[number / 64] = word & ~(UINT64_C(1) << (number % 64));
            subtract_one(&later, recent);
            sd->later.all = later;
            if (stack_hist)
                stack_hist->count[stack]++; /* there are fewer recent numbers than bins of one value */
        } else {
            stack = sd->lines - 1 - tail_take(&sd->tail, number);
            sd->far++;
            add_distance(stack_hist, stack);
        }
        add_distance(reuse_hist, now - e->last);
touched:
        if (far) {
            far->stack[nfar] = stack;
            far->at[nfar] = (uint32_t)(base + bound[r]);
            nfar += stack >= far->least;
        }
        now = before + bound[r + 1];
        e->last = now;
        e->number = next++;
        to_come--;
    }
    sd->now = now;
    sd->next = next;
    if (far)
        far->n = nfar;
    return r;
}

/* Touches the first `count` runs. Returns how many were touched: fewer if memory is short. */
INLINE size_t touch_runs(struct stackdist *sd, const struct runs *runs, size_t count, size_t base,
                         const struct stackdist_sums *sums)
{
    uint64_t before = sd->now, at[64];
    size_t fetched = 0, r = 0;

    while (r < count) {
        if (sd->next % 64 == 0 && stackdist_open_word(sd) < 0)
            break;
        size_t left = 64 - sd->next % 64, n = count - r < left ? count - r : left, done;
        const uint64_t *line = runs->line + r;
        if (sd->scattered) {
            for (; fetched < count && fetched < r + n + FETCH_AHEAD; fetched++)
                fetch_entries(sd, runs->line[fetched]);
            find_entries(sd, line, n, at);
            done = touch_word(sd, line, runs->bound + r, n, before, base, at, sums);
        } else {
            done = touch_word(sd, line, runs->bound + r, n, before, base, NULL, sums);
        }
        r += done;
        if (done < n)
            break;
    }
    return r;
}

/* Adds totals and repetitions of n touched runs, whose finite distances are in the histograms. */
INLINE void add_up(struct hist *h, uint64_t finite, uint64_t repeats)
{
    if (!h)
        return;
    h->count[0] += repeats;
    h->total += finite + repeats;
}

int TOUCH(struct stackdist *sd, const uint64_t *lines, size_t n, const struct stackdist_sums *sums)
{
    struct runs runs;

    for (size_t done = 0; done < n; done += CHUNK) {
        uint64_t lines_before = sd->lines;
        size_t count = split_runs(lines + done, n - done < CHUNK ? n - done : CHUNK, &runs);
        sd->far = 0;
        size_t touched = touch_runs(sd, &runs, count, done, sums);
        uint64_t cold = sd->lines - lines_before, repeats = touched > 0 ? runs.bound[touched] - touched : 0;
        add_up(sums->stack, touched - cold, repeats);
        add_up(sums->reuse, touched - cold, repeats);
        if (touched < count)
            return -ENOMEM;
        if (touched >= TELLING)
            sd->scattered = 2 * (sd->far + cold) > touched;
    }
    return 0;
}
