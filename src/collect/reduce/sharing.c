/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharing.c - true and false sharing between threads, from pieces of the recorded references.
 *
 * A table has recently used lines, each with the last few threads that used it, and the bytes that these used
 * and wrote within the last one or two periods of COLLECT_SHARING_NS. When a thread uses a line again,
 *   - the sharing is true if another thread wrote, since this one's previous use, bytes that this one uses;
 *   - it is false if others write, but only bytes that this one does not use;
 *   - nothing is said if others wrote such bytes earlier, as when one thread has initialized them.
 *
 * Example: threads A and B each increment a counter of their own, in one line that a third thread cleared.
 * The first use by A is true sharing: it reads what was written there. From then on the third thread is
 * silent, and each turn of A finds that B has written, but other bytes.
 *
 * A piece shows only some of the bytes that a thread uses. Therefore bytes are collected over pieces, and
 * false sharing is counted from the COLLECT_SHARING_TURNS-th turn on at which only other bytes were written;
 * true sharing resets the count. A line that is seen rarely, as in a large array, is not counted.
 */
#include "collect/reduce/sharing.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/pages.h"
#include "base/random.h"
#include "collect/records/references.h"
#include "collect/tunables.h"

#define LINES 4096u
#define SHARERS 4u
#define PIECE_SLOTS (4 * SHARING_PIECE)
#define REFS 4096u /* slots; at most half of them are used */

/* Bytes of a line: bits. [0]: in the period of the last use, [1]: in the one before. */
struct sharer {
    uint32_t tid;    /* 0: empty */
    uint32_t period; /* of its last use */
    uint64_t used[2], written[2];
    uint64_t piece;      /* of its last use */
    uint64_t last_write; /* likewise */
};

struct line {
    uint64_t number;
    uint32_t turns;
    struct sharer sharers[SHARERS];
};

enum verdict { NOT_SHARED, APART, SAME };

/* A line of the piece. */
struct piece_line {
    uint64_t number, used, written;
    uint64_t piece;
    enum verdict verdict;
};

/* What is needed as soon as there are two threads. */
struct tables {
    struct line lines[LINES]; /* direct-mapped */
    struct piece_line piece[PIECE_SLOTS];
    uint32_t listed[PIECE_SLOTS / 2]; /* those in use */
    uint32_t nlisted;
    struct sharing_refs refs[REFS];
    uint32_t nrefs;
    /* The piece that is decoded. */
    uint64_t address[SHARING_PIECE], pc[SHARING_PIECE];
    uint16_t size[SHARING_PIECE];
    uint8_t rw[SHARING_PIECE];
    size_t n;
};

struct sharing {
    struct decode_source source;
    struct references *references;
    struct tables *tables; /* NULL: one thread so far */
    unsigned line_shift, part_shift;
    uint32_t tid;       /* the first thread */
    uint64_t total;     /* references */
    uint64_t threaded;  /* likewise, since there are two threads */
    uint64_t in_pieces; /* likewise, looked at */
    uint64_t pieces;
    uint64_t ahead; /* full mode: words until the next piece */
    struct random_state random;
};

struct sharing *sharing_new(const struct decode_source *source, unsigned line_bytes, struct error *err)
{
    struct sharing *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        error_set(err, -ENOMEM, "out of memory for the sharing of lines");
        return NULL;
    }
    s->source = *source;
    s->line_shift = (unsigned)__builtin_ctz(line_bytes);
    s->part_shift = s->line_shift > 6 ? s->line_shift - 6 : 0;
    random_seed(&s->random, 1);
    return s;
}

void sharing_free(struct sharing *s)
{
    if (s == NULL)
        return;
    references_free(s->references);
    pages_sparse_free(s->tables, sizeof(*s->tables));
    free(s);
}

static uint32_t hash_of(uint64_t number, uint32_t slots)
{
    uint64_t hash = number * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 40) & (slots - 1);
}

/* --- the lines of a piece --- */

/* NULL: there are too many. */
static struct piece_line *find_piece_line(struct sharing *s, uint64_t number)
{
    struct tables *t = s->tables;
    uint32_t at = hash_of(number, PIECE_SLOTS);
    while (t->piece[at].piece == s->pieces && t->piece[at].number != number)
        at = (at + 1) & (PIECE_SLOTS - 1);
    if (t->piece[at].piece == s->pieces)
        return &t->piece[at];
    if (t->nlisted == PIECE_SLOTS / 2)
        return NULL;
    t->listed[t->nlisted++] = at;
    t->piece[at] = (struct piece_line){.number = number, .piece = s->pieces};
    return &t->piece[at];
}

/* Bits of the parts from byte `from` to byte `last` of a line. */
static uint64_t parts(const struct sharing *s, uint64_t from, uint64_t last)
{
    return (UINT64_MAX << (from >> s->part_shift)) & (UINT64_MAX >> (63 - (last >> s->part_shift)));
}

static void use(struct sharing *s, uint64_t address, uint64_t last, int writes)
{
    uint64_t end = (UINT64_C(1) << s->line_shift) - 1;
    for (uint64_t line = address >> s->line_shift; line <= last >> s->line_shift; line++) {
        struct piece_line *l = find_piece_line(s, line);
        if (l == NULL)
            return;
        uint64_t used = parts(s, line == address >> s->line_shift ? address & end : 0,
                              line == last >> s->line_shift ? last & end : end);
        l->used |= used;
        l->written |= writes ? used : 0;
    }
}

/* --- what threads do to a line --- */

static int is_recent(const struct sharer *t, uint32_t period)
{
    return t->tid != 0 && period - t->period <= 1;
}

/* Bytes of the last one or two periods. */
static uint64_t recent(const struct sharer *t, const uint64_t bytes[2], uint32_t period)
{
    if (!is_recent(t, period))
        return 0;
    return t->period == period ? bytes[0] | bytes[1] : bytes[0];
}

static void note_use(struct sharer *t, uint32_t tid, uint32_t period, const struct piece_line *p)
{
    if (t->tid != tid || !is_recent(t, period)) {
        *t = (struct sharer){.tid = tid};
    } else if (t->period != period) {
        t->used[1] = t->used[0];
        t->written[1] = t->written[0];
        t->used[0] = t->written[0] = 0;
    }
    t->period = period;
    t->used[0] |= p->used;
    t->written[0] |= p->written;
    t->piece = p->piece;
    if (p->written != 0)
        t->last_write = p->piece;
}

/* The thread's place in the line, or the one that was not used for longest. */
static struct sharer *find_sharer(struct line *l, uint32_t tid)
{
    struct sharer *oldest = &l->sharers[0];
    for (unsigned i = 0; i < SHARERS; i++) {
        if (l->sharers[i].tid == tid)
            return &l->sharers[i];
        if (l->sharers[i].piece < oldest->piece)
            oldest = &l->sharers[i];
    }
    return oldest;
}

static enum verdict judge(struct line *l, uint32_t tid, uint32_t period, const struct piece_line *p)
{
    struct sharer *me = find_sharer(l, tid);
    uint64_t last = me->tid == tid ? me->piece : 0;
    uint64_t used = p->used | (me->tid == tid ? recent(me, me->used, period) : 0);
    int same = 0, earlier = 0, apart = 0, turn = 0, others = 0;
    for (unsigned i = 0; i < SHARERS; i++) {
        const struct sharer *t = &l->sharers[i];
        uint64_t written = recent(t, t->written, period);
        if (t->tid == tid)
            continue;
        others |= is_recent(t, period);
        if ((written & used) != 0) {
            same |= t->last_write > last;
            earlier = 1;
        } else if (written != 0) {
            apart = 1;
            turn |= t->last_write > last;
        }
    }
    if (same || !others)
        l->turns = 0;
    if (same || earlier || !apart)
        return same ? SAME : NOT_SHARED;
    l->turns += (uint32_t)turn;
    return l->turns >= COLLECT_SHARING_TURNS ? APART : NOT_SHARED;
}

/* A line that several threads use is only replaced when they no longer do. */
static int is_replaceable(const struct line *l, uint32_t period)
{
    unsigned threads = 0;
    for (unsigned i = 0; i < SHARERS; i++)
        threads += (unsigned)is_recent(&l->sharers[i], period);
    return threads < 2;
}

static void take_line(struct sharing *s, uint32_t tid, uint32_t period, struct piece_line *p)
{
    struct line *l = &s->tables->lines[hash_of(p->number, LINES)];
    if (l->number != p->number && !is_replaceable(l, period))
        return;
    if (l->number != p->number)
        *l = (struct line){.number = p->number};
    p->verdict = judge(l, tid, period, p);
    note_use(find_sharer(l, tid), tid, period, p);
}

/* --- counting --- */

/* NULL: there are too many. */
static struct sharing_refs *count(struct tables *t, uint64_t pc, uint32_t object, enum verdict verdict)
{
    uint32_t at = hash_of(pc + ((uint64_t)object << 48), REFS);
    while (t->refs[at].pc != 0 && (t->refs[at].pc != pc || t->refs[at].object != object))
        at = (at + 1) & (REFS - 1);
    struct sharing_refs *r = &t->refs[at];
    if (r->pc == 0) {
        if (pc == 0 || t->nrefs == REFS / 2)
            return NULL;
        t->nrefs++;
        *r = (struct sharing_refs){.pc = pc, .object = object};
    }
    r->apart += verdict == APART;
    r->same += verdict == SAME;
    return r;
}

static void sample_offset(struct sharing *s, struct sharing_refs *r, uint64_t offset)
{
    uint64_t at = r->inside++;
    if (r->noffsets < SHARING_OFFSETS)
        r->noffsets++;
    else
        at = random_below(&s->random, r->inside);
    if (at < SHARING_OFFSETS)
        r->offsets[at] = offset;
}

int sharing_piece(struct sharing *s, uint32_t tid, uint64_t ns, const struct trace_batch *piece,
                  struct objects *objects)
{
    size_t n = piece->n < SHARING_PIECE ? piece->n : SHARING_PIECE;
    uint32_t period = (uint32_t)(ns / COLLECT_SHARING_NS) + 2;
    if (s->tables == NULL && (s->tables = pages_sparse_new(sizeof(*s->tables))) == NULL)
        return -ENOMEM;
    s->pieces++;
    s->tables->nlisted = 0;
    s->in_pieces += n;
    for (size_t i = 0; i < n; i++)
        if (piece->size[i] != 0)
            use(s, piece->address[i], piece->address[i] + piece->size[i] - 1, piece->rw[i] == TRACE_STORE);
    for (uint32_t i = 0; i < s->tables->nlisted; i++)
        take_line(s, tid, period, &s->tables->piece[s->tables->listed[i]]);
    for (size_t i = 0; i < n; i++) {
        if (piece->size[i] == 0)
            continue;
        struct piece_line *l = find_piece_line(s, piece->address[i] >> s->line_shift);
        if (l == NULL || l->verdict == NOT_SHARED)
            continue;
        uint32_t site = hash_of(piece->pc[i], 1u << 24),
                 object = objects != NULL ? objects_find_at(objects, piece->address[i], site) : 0;
        struct sharing_refs *r = count(s->tables, piece->pc[i], object, l->verdict);
        uint64_t offset;
        if (r != NULL && l->verdict == APART && object != 0 &&
            objects_offset(objects, piece->address[i], object, &offset) == 0)
            sample_offset(s, r, offset);
    }
    return 0;
}

static int take(void *ctx, const struct trace_batch *batch)
{
    struct tables *t = ctx;
    size_t room = SHARING_PIECE - t->n, n = batch->n < room ? batch->n : room;
    memcpy(t->address + t->n, batch->address, n * sizeof(t->address[0]));
    memcpy(t->pc + t->n, batch->pc, n * sizeof(t->pc[0]));
    memcpy(t->size + t->n, batch->size, n * sizeof(t->size[0]));
    memcpy(t->rw + t->n, batch->rw, n * sizeof(t->rw[0]));
    t->n += n;
    return t->n == SHARING_PIECE ? -ECANCELED : 0;
}

int sharing_buffer(struct sharing *s, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                   uint64_t references, struct objects *objects)
{
    struct error ignored;
    uint64_t instructions = 0;
    s->total += references;
    if (s->tid == 0)
        s->tid = desc->tid;
    if (s->references == NULL && s->tid == desc->tid)
        return 0;
    if (s->references == NULL && ((s->references = references_new(&s->source, &ignored)) == NULL ||
                                  (s->tables = pages_sparse_new(sizeof(*s->tables))) == NULL))
        return -ENOMEM;
    s->threaded += references;
    if (desc->full && s->ahead >= n) {
        s->ahead -= n;
        return 0;
    }
    s->ahead = random_below(&s->random, 2 * COLLECT_SHARING_EVERY_WORDS);
    s->tables->n = 0;
    int status =
        references_decode(s->references, desc, words, n < COLLECT_SHARING_WORDS ? n : COLLECT_SHARING_WORDS,
                          take, s->tables, &instructions);
    if (status < 0 && status != -ECANCELED)
        return status;
    const struct trace_batch piece = {.n = s->tables->n,
                                      .address = s->tables->address,
                                      .pc = s->tables->pc,
                                      .size = s->tables->size,
                                      .rw = s->tables->rw};
    return sharing_piece(s, desc->tid, desc->start_ns, &piece, objects);
}

const struct sharing_refs *sharing_refs(const struct sharing *s, size_t *n)
{
    *n = s->tables != NULL ? REFS : 0;
    return s->tables != NULL ? s->tables->refs : NULL;
}

double sharing_scale(const struct sharing *s)
{
    return s->in_pieces > 0 ? (double)s->threaded / (double)s->in_pieces : 0;
}

uint64_t sharing_total(const struct sharing *s)
{
    return s->total;
}
