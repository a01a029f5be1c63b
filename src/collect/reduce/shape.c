/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c - utilisation of lines, conflicts, and strides.
 *
 * The first buffers, and of some others up to COLLECT_SHAPE_WORDS words, are decoded a second time, to
 * complete references. In such a piece each line has a bit for each part of it (a byte of a 64-byte line)
 * that was touched. A line's stay ends when it is touched again after more than SYMBOLS_USE_LINES other stays
 * began, as a small cache would not hold it any more. The bits of each stay are counted for the instruction
 * that began it, which is the one that would fetch the line, if the piece shows the whole stay. At the
 * beginning of a piece any line that is used is a new one: stays only count after so many others or
 * COLLECT_SHAPE_WARM touches, unless the process begins with it. The end of a stay is shown if so many others
 * began since its last touch, or the process ends; and if COLLECT_SHAPE_IDLE touches used no further bytes of
 * the line, the piece has probably shown all that are used. Example: of a column walk over 480 rows, each
 * line stays for the eight columns that it has. Of the addresses by which an instruction began stays in an
 * object, a sample is kept: they show which field it is.
 *
 * Buffers are drawn by their size, the number of misses of that cache (and something for each reference), as
 * a process may make most of them in a small part of its references. Intervals have random sizes, or it might
 * always be the same one of several threads that fill buffers by turns. So a piece represents all since the
 * one before: its stays together so many misses, and each of its references so many others. Example: a piece
 * shows 1000 stays of a buffer with 5000 misses; since the last piece, 20 such buffers were executed: each
 * stay counts for 100.
 *
 * Conflicts: each line is also looked up in 64 sets of 8 lines (LRU), empty at the start of the piece. A line
 * that is not there, though it was touched in the piece and at most SYMBOLS_USE_LINES different lines can
 * have been touched since, was evicted by lines of its set while others had room. Example: 12 arrays
 * that begin 65536 bytes apart, of which element i is read in turn, all use set i / 8 mod 64.
 *
 * The stride of an instruction is found by majority vote (Boyer & Moore 1981): a candidate and a number of
 * votes for it; an equal difference adds a vote, another one takes one away, and replaces the candidate if
 * there is none left.
 */
#include "collect/reduce/shape.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pages.h"
#include "base/random.h"
#include "collect/records/references.h"
#include "collect/tunables.h"
#include "symbols/code.h"

#define LINES 262144u /* slots for the lines of a piece, which has fewer */
#define MOST_STAYS (LINES / 2)
#define PIECE_REFERENCES 196608u /* most; only string instructions make as many */
#define PLACES 32768u            /* slots; at most half of them are used */
#define USES 32768u              /* likewise */
#define CONFLICTS 4096u
#define SETS 64u
#define WAYS 8u

/* The stay of a line in a small cache. */
struct stay {
    uint64_t line, used; /* bits: parts of it */
    uint32_t place;      /* that touched it first */
    uint32_t last;       /* number of stays at its last touch */
    uint32_t first;      /* number of its first touch */
    uint32_t touch;      /* and of its last one */
    uint32_t grown;      /* and of the last one that used further parts */
    uint32_t from;       /* first byte of its first touch */
};

struct slot {
    uint32_t piece, stay;
};

/* Successive addresses of an instruction. */
struct walk {
    struct shape_stride stride;
    uint64_t last;
    uint32_t votes, piece;
};

struct place {
    struct walk all, fetches; /* those by which it began stays */
    uint8_t rw;               /* the stride is that of references of the kind of the first one */
};

/* A touch of the piece. */
struct conflict {
    uint64_t line;
    uint32_t from; /* the first byte of the touch in it */
    uint32_t place;
};

/* What is needed for a piece only; pieces of all processes are numbered in one sequence. */
struct shape_piece {
    uint32_t number, nreferences;
    struct slot slots[LINES];
    struct stay stays[MOST_STAYS];
    uint32_t nstays;
    /* Lines + 1 of each set, most recently used first; 0: empty. */
    uint64_t sets[SETS][WAYS];
    struct conflict found[MOST_STAYS];
    uint32_t nfound, ntouches;
};

struct shape {
    struct references *decoder;
    struct shape_piece *piece;
    unsigned line_shift, part_shift;
    struct random_state random;
    int all;      /* no reference is left out yet */
    int in_burst; /* bursts have begun */
    /* Of what was executed: in all, since the last piece, until the next. */
    double size, since, ahead;
    uint64_t pieces, looked_at, steps; /* steps: that were recorded, in full mode or in bursts */
    double references;                 /* estimate */
    uint32_t nplaces, nuses, nconflicts;
    /* By hash of the key: numbers of the elements below, + 1; 0: empty. */
    uint16_t place_slots[PLACES], use_slots[USES], conflict_slots[CONFLICTS];
    struct place places[PLACES / 2];
    struct shape_lines uses[USES / 2];
    struct shape_conflicts conflicts[CONFLICTS / 2];
};

struct shape_piece *shape_piece_new(void)
{
    return pages_sparse_new(sizeof(struct shape_piece));
}

void shape_piece_free(struct shape_piece *p)
{
    pages_sparse_free(p, sizeof(*p));
}

struct shape *shape_new(const struct decode_source *source, unsigned line_bytes, struct shape_piece *piece,
                        struct error *err)
{
    struct shape *s = pages_sparse_new(sizeof(*s));
    if (s == NULL) {
        error_set(err, -ENOMEM, "out of memory for the use of lines");
        return NULL;
    }
    s->piece = piece;
    s->line_shift = (unsigned)__builtin_ctz(line_bytes);
    s->part_shift = s->line_shift > 6 ? s->line_shift - 6 : 0;
    random_seed(&s->random, 1);
    if ((s->decoder = references_new(source, err)) != NULL)
        return s;
    shape_free(s);
    return NULL;
}

void shape_free(struct shape *s)
{
    if (s == NULL)
        return;
    references_free(s->decoder);
    pages_sparse_free(s, sizeof(*s));
}

static uint32_t slot_of_number(uint64_t number, uint32_t slots)
{
    uint64_t hash = number * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 40) & (slots - 1);
}

/* The place of an instruction; NULL: there are too many. */
static struct place *find_place(struct shape *s, uint64_t pc)
{
    uint32_t at = slot_of_number(pc, PLACES);
    while (s->place_slots[at] != 0 && s->places[s->place_slots[at] - 1].all.stride.pc != pc)
        at = (at + 1) & (PLACES - 1);
    if (s->place_slots[at] == 0) {
        if (pc == 0 || s->nplaces == PLACES / 2)
            return NULL;
        s->places[s->nplaces].all.stride.pc = s->places[s->nplaces].fetches.stride.pc = pc;
        s->place_slots[at] = (uint16_t)++s->nplaces;
    }
    return &s->places[s->place_slots[at] - 1];
}

static void note_address(struct walk *w, uint32_t piece, uint64_t address)
{
    int64_t bytes = (int64_t)(address - w->last);
    if (w->piece == piece && bytes != 0) { /* 0: read and written, or not moved */
        w->stride.all++;
        if (bytes == w->stride.bytes) {
            w->votes++;
            w->stride.same++;
        } else if (w->votes > 0) {
            w->votes--;
        } else {
            w->stride.bytes = bytes;
            w->votes = w->stride.same = 1;
        }
    }
    w->last = address;
    w->piece = piece;
}

/* An instruction may read at one address and write at another. */
static void note_stride(struct shape *s, struct place *p, uint64_t address, uint8_t rw)
{
    if (p->all.piece == 0)
        p->rw = rw;
    if (p->rw == rw)
        note_address(&p->all, s->piece->number, address);
}

/* Nonzero: its set had it. */
static int touch_set(struct shape_piece *p, uint64_t line)
{
    uint64_t *set = p->sets[line % SETS];
    unsigned at = 0;
    while (at < WAYS - 1 && set[at] != line + 1)
        at++;
    int hit = set[at] == line + 1;
    for (; at > 0; at--)
        set[at] = set[at - 1];
    set[0] = line + 1;
    return hit;
}

/* from: the first byte of the touch. Nonzero: a stay begins. */
static int use_line(struct shape_piece *p, uint64_t line, uint64_t from, uint64_t used, uint32_t place)
{
    int hit = touch_set(p, line);
    uint32_t at = slot_of_number(line, LINES);
    while (p->slots[at].piece == p->number && p->stays[p->slots[at].stay].line != line)
        at = (at + 1) & (LINES - 1);
    struct slot *slot = &p->slots[at];
    if (!hit && slot->piece == p->number &&
        (p->nstays <= SYMBOLS_USE_LINES || p->ntouches - p->stays[slot->stay].touch <= SYMBOLS_USE_LINES))
        p->found[p->nfound++] = (struct conflict){line, (uint32_t)from, place};
    int begins = slot->piece != p->number || p->nstays - p->stays[slot->stay].last > SYMBOLS_USE_LINES;
    if (begins) {
        *slot = (struct slot){p->number, p->nstays};
        p->stays[p->nstays++] =
            (struct stay){.line = line, .place = place, .from = (uint32_t)from, .first = p->ntouches};
    }
    struct stay *stay = &p->stays[slot->stay];
    if ((used & ~stay->used) != 0)
        stay->grown = p->ntouches;
    stay->used |= used;
    stay->last = p->nstays;
    stay->touch = p->ntouches++;
    return begins;
}

/* Bits of the parts from byte `from` to byte `last` of a line. */
static uint64_t parts(const struct shape *s, uint64_t from, uint64_t last)
{
    uint64_t low = from >> s->part_shift, high = last >> s->part_shift;
    return (UINT64_MAX << low) & (UINT64_MAX >> (63 - high));
}

static int take(void *ctx, const struct trace_batch *batch)
{
    struct shape *s = ctx;
    uint64_t line_bytes = UINT64_C(1) << s->line_shift;
    for (size_t i = 0; i < batch->n; i++) {
        struct place *p = find_place(s, batch->pc[i]);
        uint64_t address = batch->address[i], last = address + batch->size[i] - 1;
        int enough = s->piece->nstays >= COLLECT_SHAPE_STAYS && s->piece->nreferences >= COLLECT_SHAPE_LEAST;
        if ((enough && !s->all) || s->piece->nreferences == PIECE_REFERENCES ||
            s->piece->nstays > MOST_STAYS - 2 || s->piece->nfound > MOST_STAYS - 2)
            return -ECANCELED;
        s->piece->nreferences++;
        if (p == NULL || batch->size[i] == 0)
            continue;
        note_stride(s, p, address, batch->rw[i]);
        uint64_t line = address >> s->line_shift, end = last >> s->line_shift;
        uint64_t from = address & (line_bytes - 1), to = last & (line_bytes - 1);
        if (use_line(s->piece, line, from, parts(s, from, end == line ? to : line_bytes - 1),
                     (uint32_t)(p - s->places)))
            note_address(&p->fetches, s->piece->number, address);
        if (end == line + 1)
            use_line(s->piece, end, 0, parts(s, 0, to), (uint32_t)(p - s->places));
    }
    return 0;
}

/* Where in its object a stay began: a random sample of all (Chao 1982). */
static void sample_offset(struct shape *s, struct shape_lines *u, uint64_t offset, double weight)
{
    double at = u->noffsets;
    u->inside += weight;
    if (u->noffsets < SHAPE_OFFSETS)
        u->noffsets++;
    else
        at = random_unit(&s->random) * u->inside / weight;
    if (at < SHAPE_OFFSETS)
        u->offsets[(unsigned)at] = offset;
}

/* NULL: there are too many. */
static struct shape_lines *find_use(struct shape *s, uint64_t pc, uint32_t object)
{
    uint32_t at = slot_of_number(pc + ((uint64_t)object << 48), USES);
    while (s->use_slots[at] != 0 &&
           (s->uses[s->use_slots[at] - 1].pc != pc || s->uses[s->use_slots[at] - 1].object != object))
        at = (at + 1) & (USES - 1);
    if (s->use_slots[at] == 0) {
        if (s->nuses == USES / 2)
            return NULL;
        s->uses[s->nuses] = (struct shape_lines){.pc = pc, .object = object};
        s->use_slots[at] = (uint16_t)++s->nuses;
    }
    return &s->uses[s->use_slots[at] - 1];
}

/* Whether the piece shows all that is used of the line. is_last: the process ends with it. */
static int is_whole(const struct shape_piece *p, const struct stay *stay, int is_last)
{
    return is_last || p->nstays - stay->last > SYMBOLS_USE_LINES ||
           p->ntouches - stay->grown > COLLECT_SHAPE_IDLE;
}

/* weight: of any stay of the piece; whole_weight: of those that are whole, for all. */
static void count_use(const struct shape *s, const struct stay *stay, int is_last, double weight,
                      double whole_weight, struct shape_lines *u)
{
    u->lines += weight;
    if (is_whole(s->piece, stay, is_last)) {
        u->whole++;
        u->ended += weight;
        u->shown += whole_weight;
        u->bytes += whole_weight * (double)((uint64_t)__builtin_popcountll(stay->used) << s->part_shift);
    } else if (s->piece->ntouches - stay->first > COLLECT_SHAPE_IDLE) {
        u->open += weight;
    }
}

static void count_conflict(struct shape *s, uint64_t pc, uint32_t object, double weight)
{
    uint32_t at = slot_of_number(pc + ((uint64_t)object << 48), CONFLICTS);
    const uint16_t *slots = s->conflict_slots;
    while (slots[at] != 0 &&
           (s->conflicts[slots[at] - 1].pc != pc || s->conflicts[slots[at] - 1].object != object))
        at = (at + 1) & (CONFLICTS - 1);
    if (slots[at] == 0) {
        if (s->nconflicts == CONFLICTS / 2)
            return;
        s->conflicts[s->nconflicts] = (struct shape_conflicts){.pc = pc, .object = object};
        s->conflict_slots[at] = (uint16_t)++s->nconflicts;
    }
    s->conflicts[slots[at] - 1].references += weight;
}

static uint32_t object_of(const struct shape *s, struct objects *objects, uint64_t line, uint64_t from,
                          uint64_t pc)
{
    uint32_t site = slot_of_number(pc, 1u << 24);
    return objects != NULL ? objects_find(objects, line, objects_part(from, s->line_shift), site) : 0;
}

/* Counts the stays of a piece, which represents so many. is_first: from the process' beginning on; is_last:
 * to its end. */
static void count_stays(struct shape *s, int is_first, int is_last, double represents,
                        struct objects *objects)
{
    const struct shape_piece *p = s->piece;
    uint32_t first = 0, whole = 0;
    while (!is_first && first < p->nstays && first <= SYMBOLS_USE_LINES &&
           p->stays[first].first < COLLECT_SHAPE_WARM)
        first++;
    for (uint32_t i = first; i < p->nstays; i++)
        whole += (uint32_t)is_whole(p, &p->stays[i], is_last);
    double weight = represents / (p->nstays - first);
    for (uint32_t i = first; i < p->nstays; i++) {
        const struct stay *l = &p->stays[i];
        uint64_t pc = s->places[l->place].all.stride.pc, offset;
        uint32_t object = object_of(s, objects, l->line, l->from, pc);
        struct shape_lines *u = find_use(s, pc, object);
        if (u == NULL)
            continue;
        count_use(s, l, is_last, weight, represents / whole, u);
        if (object != 0 && weight > 0 &&
            objects_offset(objects, (l->line << s->line_shift) + l->from, object, &offset) == 0)
            sample_offset(s, u, offset, weight);
    }
}

static void count_conflicts(struct shape *s, double weight, struct objects *objects)
{
    const struct shape_piece *p = s->piece;
    for (uint32_t i = 0; i < p->nfound; i++) {
        uint64_t pc = s->places[p->found[i].place].all.stride.pc;
        count_conflict(s, pc, object_of(s, objects, p->found[i].line, p->found[i].from, pc), weight);
    }
    s->references += weight * p->nreferences;
}

/* One reference in so many is looked at. */
static double every(const struct shape *s, int in_burst)
{
    double grown = (double)s->steps / COLLECT_SHAPE_GROWS;
    if (in_burst)
        return COLLECT_SHAPE_BURSTS_EVERY;
    return fmin(fmax(grown, COLLECT_SHAPE_FIRST_EVERY), COLLECT_SHAPE_EVERY);
}

/* The size until the next piece. */
static double draw_interval(struct shape *s, double one_in)
{
    double most = one_in * (double)s->looked_at / ((double)s->pieces * (double)s->steps);
    return 2 * random_unit(&s->random) * s->size * fmin(1.0 / COLLECT_SHAPE_PARTS, most);
}

int shape_buffer(struct shape *s, const struct shape_buffer *b, struct objects *objects)
{
    struct shape_piece *p = s->piece;
    uint64_t instructions = 0, start = 0, n = b->n;
    double steps = (double)b->steps;
    double misses = b->steps > 0 ? (double)b->misses / steps : 0; /* of a step */
    double size = b->represents * (misses + COLLECT_SHAPE_HIT_SIZE);
    int is_first = s->steps == 0 && !b->in_burst;
    if (b->steps == 0 || !(size > 0))
        return 0;
    if (b->in_burst && !s->in_burst) {
        s->in_burst = 1;
        s->pieces = s->looked_at = s->steps = 0;
    }
    s->all = s->steps < COLLECT_SHAPE_ALL && !b->in_burst;
    s->steps += b->steps;
    s->size += size;
    s->since += size;
    if (s->since < s->ahead)
        return 0;
    if (n > COLLECT_SHAPE_WORDS && !s->all) {
        start = decode_whole_records(b->words, n, random_below(&s->random, n - COLLECT_SHAPE_WORDS + 1));
        n = decode_whole_records(b->words + start, n - start, COLLECT_SHAPE_WORDS);
    }
    p->number++;
    p->nreferences = p->nstays = p->nfound = p->ntouches = 0;
    memset(p->sets, 0, sizeof(p->sets));
    int status = references_decode(s->decoder, b->desc, b->words + start, n, take, s, &instructions);
    int is_last = b->desc->end == WIRE_END_EXIT && start + n == b->n && status == 0 && !b->in_burst;
    double looked_at = fmin(steps * (double)n / (double)b->n, p->nreferences);
    if (p->nreferences > 0) {
        double represents = s->since / size * b->represents;
        count_stays(s, is_first, is_last, represents * misses, objects);
        count_conflicts(s, represents / looked_at, objects);
    }
    s->since = 0;
    s->pieces++;
    s->looked_at += (uint64_t)looked_at;
    s->ahead = s->steps < COLLECT_SHAPE_ALL && !b->in_burst ? 0 : draw_interval(s, every(s, b->in_burst));
    return status == -ECANCELED ? 0 : status;
}

const struct shape_lines *shape_lines(const struct shape *s, size_t *n)
{
    *n = s->nuses;
    return s->uses;
}

const struct shape_conflicts *shape_conflicts(const struct shape *s, size_t *n, double *of)
{
    *n = s->nconflicts;
    *of = s->references;
    return s->conflicts;
}

const struct shape_stride *shape_stride(const struct shape *s, size_t i)
{
    return i < s->nplaces ? &s->places[i].all.stride : NULL;
}

const struct shape_stride *shape_fetch_stride(const struct shape *s, size_t i)
{
    return i < s->nplaces ? &s->places[i].fetches.stride : NULL;
}
