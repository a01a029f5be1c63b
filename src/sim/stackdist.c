/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact LRU stack distances and reuse distances, one pass.
 *
 * Problem. The stack distance of a reference is the number of distinct lines touched since its line
 * was last touched: the line's depth in a list kept in order of recency. Walking such a list costs
 * time in proportion to the depth; a tree over last-touch times (Bennett & Kruskal 1975) costs a
 * logarithm, but for every reference, also for the 95% that come back to a line used a moment ago.
 *
 * Method. The list is cut in two.
 *
 *  - The front: the FRONT_LINES most recent lines, in slots. rank[slot] is the line's depth. A touch
 *    of the line at depth d adds one to all ranks below d and makes its own zero: one or two vector
 *    instructions, no moves. A small table of hints (hash of the line -> slot), checked against the
 *    slot's line, finds the slot; nothing is searched.
 *
 *  - The tail: all other lines. A line that leaves the front gets the next number; a bit is set for
 *    each number in use. Lines leave the front in order of last touch, so the tail lines more recent
 *    than one are those with larger numbers, and its depth is FRONT_LINES plus the set bits above its
 *    own. Bits are counted by popcount within a word; over the words stands a tree with 16 children a
 *    node, each child with the count of set bits in its siblings above it. So a look-up adds one
 *    number a level and an update is 16 additions without a branch a level; a Fenwick tree has less to do but
 *    loops of unpredictable length, which cost more.
 *    When the numbers run out, the lines are renumbered without gaps.
 *
 * A hash table over all lines tells where a line is. It is asked only when the hint fails. Entries
 * are never removed. Time (the count of touches) goes on through stackdist_reset, so that an entry
 * from before the reset is known by its time, counts as empty, and costs the reset nothing.
 *
 * Example, with a front of two lines; touches a b c a b b:
 *   a  cold                           front a
 *   b  cold                           front b a
 *   c  cold; a leaves, number 0       front c b    tail a:0
 *   a  tail, no bit above 0: 2 + 0 = 2; b leaves, number 1     front a c    tail b:1
 *   b  tail, no bit above 1: 2; c leaves, number 2             front b a    tail c:2
 *   b  front, rank 0: 0
 *
 * Measured: see FRONT_LINES.
 */
#include "sim/stackdist.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"

/*
 * One vector of bytes on AVX-512, two on AVX2, four on any x86-64. Ranks are signed bytes: 127 at most.
 * Measured (EPYC, AVX2, 12 M references, ns each, whole trace / reset every 100k): gzip, where 22% go
 * past the front, 14.9 / 12.3, with 32 lines 15.2 / 12.2; a synthetic mix with 8% past it 10.2 / 7.6, with
 * 32 lines 12.0 / 8.6.
 */
#define FRONT_LINES 64u
#define HINT_BITS 12u
#define HINTS (1u << HINT_BITS)

#define MIN_ENTRIES 512u
#define MIN_NUMBERS 4096u
#define MAX_NUMBERS (UINT32_C(1) << 31)
#define PLACE_FRONT (UINT32_C(1) << 31) /* place: PLACE_FRONT | slot, or a tail number */

#define FANOUT 16u
#define MAX_LEVELS 7u /* 64 * 16^7 >= MAX_NUMBERS */

/* How far stackdist_touch_many looks ahead to fetch hash table entries that will be asked for. */
#define LOOK_AHEAD 12u
/* Entries. 1 MB stays in a second-level cache: looking ahead would only cost. */
#define SMALL_TABLE 50000u

/* Sanitizers instrument the resolvers of cloned functions, which run before their runtime is set up. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)
#define CLONES
#else
#define CLONES __attribute__((target_clones("avx2", "default")))
#endif
#define INLINE static inline __attribute__((always_inline))
#define COLD __attribute__((noinline, cold))

/* 20 bytes: with a table between a half and three quarters full, 27 to 40 bytes a line. */
struct entry {
    uint64_t line;
    uint64_t last;  /* time of the last touch, as known when the line entered or left the front */
    uint32_t place; /* see PLACE_FRONT */
} __attribute__((packed, aligned(4)));

struct tail {
    uint64_t *bits;              /* one for each number */
    uint32_t *above[MAX_LEVELS]; /* [level][i]: set bits in the later siblings of node i; level 0: words */
    uint32_t levels;             /* in use; the top one is a single family */
    uint32_t next;               /* numbers given so far */
    uint32_t limit;              /* numbers that there is room for */
};

struct stackdist {
    _Alignas(64) int8_t rank[FRONT_LINES]; /* by slot */
    uint64_t front_line[FRONT_LINES];      /* NO_LINE in an unused slot */
    uint64_t front_last[FRONT_LINES];
    uint64_t front_entry[FRONT_LINES]; /* index in entries */
    uint8_t hint[HINTS];
    uint32_t front_count;

    uint64_t now;   /* time of the latest touch; the first ever is 1 */
    uint64_t start; /* time of the latest reset; an entry with last <= start is empty */
    uint64_t lines;

    struct entry *entries;
    uint64_t capacity;

    struct tail tail;
};

#define NO_LINE UINT64_MAX /* line ids have 58 bits */

static const int8_t slot_index[FRONT_LINES] __attribute__((aligned(64))) = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
};

INLINE uint64_t hash_line(uint64_t line)
{
    return line * UINT64_C(0x9e3779b97f4a7c15);
}

/* The table's own hash is stronger: regular strides must not pile up in a table that is 3/4 full. */
INLINE uint64_t home_of(uint64_t hash, uint64_t capacity)
{
    hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return (uint64_t)(((unsigned __int128)hash * capacity) >> 64);
}

/* The entry of the line, or the empty one where it belongs. */
INLINE uint64_t find_entry(const struct stackdist *sd, uint64_t line, uint64_t hash)
{
    uint64_t at = home_of(hash, sd->capacity);

    while (sd->entries[at].last > sd->start && sd->entries[at].line != line)
        if (++at == sd->capacity)
            at = 0;
    return at;
}

/*
 * Put the line in `slot` at the front of the list; it was at depth `depth`. The compiler makes vector
 * code of this. Its own rank is set in the same pass: a store of one byte would stall the next touch,
 * whose vector load cannot be forwarded from two stores.
 */
INLINE void move_to_front(struct stackdist *sd, uint32_t slot, int8_t depth)
{
    int8_t self = (int8_t)slot;

    for (uint32_t i = 0; i < FRONT_LINES; i++) {
        int8_t rank = (int8_t)(sd->rank[i] + (sd->rank[i] < depth));
        sd->rank[i] = slot_index[i] == self ? 0 : rank;
    }
}

/* The slot of the front's oldest line, when the front is full. Vector code, too. */
INLINE uint32_t last_slot(const struct stackdist *sd)
{
    int8_t slot = 0;

    for (uint32_t i = 0; i < FRONT_LINES; i++)
        slot |= sd->rank[i] == (int8_t)(FRONT_LINES - 1) ? slot_index[i] : 0;
    return (uint32_t)slot;
}

/* Numbers in use that are larger than this one. */
INLINE uint64_t numbers_above(const struct tail *tail, uint32_t number)
{
    uint32_t node = number / 64;
    /* Two shifts, since number % 64 may be 63. */
    uint64_t count = (uint64_t)__builtin_popcountll(tail->bits[node] >> (number % 64) >> 1);

    for (uint32_t level = 0; level < tail->levels; level++, node /= FANOUT)
        count += tail->above[level][node];
    return count;
}

/* Take a number into use (delta 1) or out of it (delta UINT32_MAX, which is minus one). */
INLINE void change_number(struct tail *tail, uint32_t number, uint32_t delta)
{
    uint32_t node = number / 64;

    tail->bits[node] ^= UINT64_C(1) << (number % 64);
    for (uint32_t level = 0; level < tail->levels; level++, node /= FANOUT) {
        uint32_t *family = &tail->above[level][node - node % FANOUT];
        int32_t self = (int32_t)(node % FANOUT);
        for (int32_t i = 0; i < (int32_t)FANOUT; i++)
            family[i] += delta & (0 - (uint32_t)(i < self));
    }
}

static void tail_clear(struct tail *tail)
{
    size_t nodes = ((size_t)tail->next + 63) / 64;

    /* An update changes only nodes before its own: none past the last number given is set. */
    memset(tail->bits, 0, nodes * sizeof *tail->bits);
    for (uint32_t level = 0; level < tail->levels; level++) {
        memset(tail->above[level], 0, nodes * sizeof *tail->above[level]);
        nodes = (nodes + FANOUT - 1) / FANOUT;
    }
    tail->next = 0;
}

/* Give out the numbers below `count`, all in use. The tail is clear. */
static void tail_fill(struct tail *tail, uint32_t count)
{
    memset(tail->bits, 0xff, count / 64 * sizeof *tail->bits);
    if (count % 64)
        tail->bits[count / 64] = (UINT64_C(1) << (count % 64)) - 1;
    uint64_t span = 64;
    for (uint32_t level = 0; level < tail->levels; level++, span *= FANOUT)
        for (uint64_t node = 0; node * span < count; node++) {
            uint64_t from = (node + 1) * span, to = (node / FANOUT + 1) * FANOUT * span;
            to = to < count ? to : count;
            tail->above[level][node] = (uint32_t)(from < to ? to - from : 0);
        }
    tail->next = count;
}

static void tail_free(struct tail *tail)
{
    free(tail->bits);
    for (uint32_t level = 0; level < MAX_LEVELS; level++)
        free(tail->above[level]);
}

/* A clear tail with room for at least so many numbers. */
static int tail_new(struct tail *tail, uint64_t numbers)
{
    const uint64_t family = 64 * FANOUT;

    memset(tail, 0, sizeof *tail);
    numbers = (numbers + family - 1) / family * family;
    uint64_t nodes = numbers / 64;
    tail->limit = (uint32_t)numbers;
    tail->bits = calloc(nodes, sizeof *tail->bits);
    bool ok = tail->bits;
    do {
        size_t whole = (nodes + FANOUT - 1) / FANOUT * FANOUT;
        uint32_t *above = aligned_alloc(64, whole * sizeof *above);
        ok = ok && above;
        if (above)
            memset(above, 0, whole * sizeof *above);
        tail->above[tail->levels++] = above;
        nodes = whole / FANOUT;
    } while (nodes > 1);
    if (ok)
        return 0;
    tail_free(tail);
    return -ENOMEM;
}

static size_t tail_bytes(const struct tail *tail)
{
    return tail->limit / 64 * (sizeof *tail->bits + sizeof *tail->above[0]) * FANOUT / (FANOUT - 1);
}

/*
 * Numbers wanted before the next renumbering. That costs a pass over the table, so a large table
 * (which may be nearly empty after a reset) wants many.
 */
static uint64_t wanted_numbers(uint64_t tail_lines, uint64_t capacity)
{
    uint64_t wanted = 4 * tail_lines;

    if (wanted < capacity)
        wanted = capacity;
    if (wanted < MIN_NUMBERS)
        wanted = MIN_NUMBERS;
    return wanted < MAX_NUMBERS ? wanted : MAX_NUMBERS;
}

/* Renumber the tail without gaps and make room for more numbers. */
static COLD int renumber(struct stackdist *sd)
{
    uint64_t tail_lines = sd->lines - sd->front_count;
    uint64_t wanted = wanted_numbers(tail_lines, sd->capacity);
    struct tail larger;

    if (tail_lines >= wanted)
        return -ENOMEM;
    if (wanted > sd->tail.limit && tail_new(&larger, wanted) < 0)
        return -ENOMEM;
    for (uint64_t i = 0; i < sd->capacity; i++) {
        struct entry *e = &sd->entries[i];
        if (e->last > sd->start && !(e->place & PLACE_FRONT))
            e->place = (uint32_t)(tail_lines - 1 - numbers_above(&sd->tail, e->place));
    }
    if (wanted > sd->tail.limit) {
        tail_free(&sd->tail);
        sd->tail = larger;
    } else {
        tail_clear(&sd->tail);
    }
    tail_fill(&sd->tail, (uint32_t)tail_lines);
    return 0;
}

/* Make the hash table half as large again. */
static COLD int grow_table(struct stackdist *sd)
{
    uint64_t capacity = sd->capacity + sd->capacity / 2;
    struct entry *entries = calloc(capacity, sizeof *entries);

    if (!entries)
        return -ENOMEM;
    struct entry *old = sd->entries;
    uint64_t old_capacity = sd->capacity;
    sd->entries = entries;
    sd->capacity = capacity;
    for (uint64_t i = 0; i < old_capacity; i++) {
        if (old[i].last <= sd->start)
            continue;
        uint64_t at = find_entry(sd, old[i].line, hash_line(old[i].line));
        entries[at] = old[i];
        if (old[i].place & PLACE_FRONT)
            sd->front_entry[old[i].place & ~PLACE_FRONT] = at;
    }
    free(old);
    return 0;
}

/* A touch of a line that the hints do not know. 0 or -ENOMEM. */
INLINE int touch_slow(struct stackdist *sd, uint64_t line, uint64_t hash, struct stackdist_result *result)
{
    uint64_t at = find_entry(sd, line, hash);
    bool cold = sd->entries[at].last <= sd->start;

    if (!cold && (sd->entries[at].place & PLACE_FRONT)) { /* the hint was another line's */
        uint32_t slot = sd->entries[at].place & ~PLACE_FRONT;
        int8_t depth = sd->rank[slot];
        sd->now++;
        result->stack = (uint64_t)depth;
        result->reuse = sd->now - sd->front_last[slot] - 1;
        sd->front_last[slot] = sd->now;
        sd->hint[hash >> (64 - HINT_BITS)] = (uint8_t)slot;
        move_to_front(sd, slot, depth);
        return 0;
    }

    /* All that can fail comes before the first change. */
    if (cold && 4 * (sd->lines + 1) > 3 * sd->capacity) {
        if (grow_table(sd) < 0)
            return -ENOMEM;
        at = find_entry(sd, line, hash);
    }
    if (sd->front_count == FRONT_LINES && sd->tail.next == sd->tail.limit && renumber(sd) < 0)
        return -ENOMEM;

    struct entry *e = &sd->entries[at];
    sd->now++;
    if (cold) {
        result->stack = result->reuse = STACKDIST_COLD;
        e->line = line;
        sd->lines++;
    } else {
        result->stack = FRONT_LINES + numbers_above(&sd->tail, e->place);
        result->reuse = sd->now - e->last - 1;
        change_number(&sd->tail, e->place, UINT32_MAX);
    }

    uint32_t slot;
    if (sd->front_count < FRONT_LINES) {
        slot = sd->front_count++; /* an unused slot's rank is its index */
    } else {
        slot = last_slot(sd);
        struct entry *leaving = &sd->entries[sd->front_entry[slot]];
        leaving->last = sd->front_last[slot];
        leaving->place = sd->tail.next++;
        change_number(&sd->tail, leaving->place, 1);
    }
    e->last = sd->now;
    e->place = PLACE_FRONT | slot;
    sd->front_line[slot] = line;
    sd->front_last[slot] = sd->now;
    sd->front_entry[slot] = at;
    sd->hint[hash >> (64 - HINT_BITS)] = (uint8_t)slot;
    move_to_front(sd, slot, sd->rank[slot]);
    return 0;
}

INLINE int touch(struct stackdist *sd, uint64_t line, struct stackdist_result *result)
{
    uint64_t hash = hash_line(line);
    uint32_t slot = sd->hint[hash >> (64 - HINT_BITS)];

    if (__builtin_expect(sd->front_line[slot] != line, 0))
        return touch_slow(sd, line, hash, result);
    int8_t depth = sd->rank[slot];
    result->stack = (uint64_t)depth;
    result->reuse = sd->now++ - sd->front_last[slot];
    sd->front_last[slot] = sd->now;
    move_to_front(sd, slot, depth); /* at depth 0, too: a branch would be mispredicted too often */
    return 0;
}

CLONES int stackdist_touch(struct stackdist *sd, uint64_t line, struct stackdist_result *result)
{
    return touch(sd, line, result);
}

INLINE void count_value(struct hist *h, uint64_t value)
{
    h->count[value < HIST_EXACT ? (uint32_t)value : hist_bin(value)]++;
}

CLONES int stackdist_touch_many(struct stackdist *sd, const uint64_t *lines, size_t n,
                                struct hist *stack_hist, struct hist *reuse_hist, struct hist *first_hist,
                                uint64_t *cold)
{
    uint64_t lines_before = sd->lines;
    struct stackdist_result result;
    size_t done = 0;
    int code = 0;

    for (; done < n; done++) {
        if (sd->capacity > SMALL_TABLE && done + LOOK_AHEAD < n) {
            uint64_t ahead = hash_line(lines[done + LOOK_AHEAD]);
            if (sd->front_line[sd->hint[ahead >> (64 - HINT_BITS)]] != lines[done + LOOK_AHEAD])
                __builtin_prefetch(&sd->entries[home_of(ahead, sd->capacity)]);
        }
        code = touch(sd, lines[done], &result);
        if (code < 0)
            break;
        if (result.stack != STACKDIST_COLD) {
            if (stack_hist)
                count_value(stack_hist, result.stack);
            if (reuse_hist)
                count_value(reuse_hist, result.reuse);
        } else if (first_hist) {
            count_value(first_hist, sd->lines - 1);
        }
    }

    uint64_t first = sd->lines - lines_before;
    if (stack_hist)
        stack_hist->total += done - first;
    if (reuse_hist)
        reuse_hist->total += done - first;
    if (first_hist)
        first_hist->total += first;
    if (cold)
        *cold += first;
    return code;
}

static void clear_front(struct stackdist *sd)
{
    for (uint32_t slot = 0; slot < FRONT_LINES; slot++) {
        sd->rank[slot] = (int8_t)slot;
        sd->front_line[slot] = NO_LINE;
    }
    sd->front_count = 0;
}

struct stackdist *stackdist_new(uint64_t expected_lines, struct error *err)
{
    uint64_t capacity = MIN_ENTRIES;
    struct stackdist *sd = NULL;

    if (expected_lines > MAX_NUMBERS / 2)
        expected_lines = MAX_NUMBERS / 2;
    if (capacity < expected_lines + expected_lines / 2)
        capacity = expected_lines + expected_lines / 2;
    sd = aligned_alloc(_Alignof(struct stackdist), sizeof *sd);
    if (!sd)
        goto fail;
    memset(sd, 0, sizeof *sd);
    clear_front(sd);
    sd->capacity = capacity;
    sd->entries = calloc(capacity, sizeof *sd->entries);
    if (sd->entries && tail_new(&sd->tail, wanted_numbers(0, capacity)) == 0)
        return sd;
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
    free(sd->entries);
    tail_free(&sd->tail);
    free(sd);
}

void stackdist_reset(struct stackdist *sd)
{
    clear_front(sd);
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

    for (uint32_t slot = 0; slot < sd->front_count; slot++, left--)
        hist_add(age_hist, sd->now - sd->front_last[slot], 1);
    for (uint64_t i = 0; left > 0; i++) {
        const struct entry *e = &sd->entries[i];
        if (e->last <= sd->start || (e->place & PLACE_FRONT))
            continue;
        hist_add(age_hist, sd->now - e->last, 1);
        left--;
    }
}
