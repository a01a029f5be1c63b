/* SPDX-License-Identifier: Apache-2.0 */
/* decode-internal.h - what the files of the decoder share. */
#ifndef CACHEGRAM_DECODE_INTERNAL_H
#define CACHEGRAM_DECODE_INTERNAL_H

#include "collect/records/decode.h"
#include "collect/records/filter.h"

#define BATCH_ROOM DECODE_BATCH_ROOM
/* Space for one block or one reference more; a template that needs more is refused. */
#define BATCH_MARGIN 8192u
/* decode_groups writes whole vectors. */
#define BATCH_OVERHANG 8u
/* Line ids gathered before the sink is called: 8192, enough that the call costs nothing, and few enough that
 * they stay in the second-level cache together with the buffer that is being read. */
#define BATCH_LINES (BATCH_ROOM - BATCH_MARGIN - BATCH_OVERHANG)
/* User addresses; the kernel half and non-canonical values can only be corrupt. */
#define ADDRESS_MASK ((UINT64_C(1) << 48) - 1)
/* A repeated string instruction with more elements is corrupt. */
#define REP_MAX_ELEMENTS (UINT64_C(1) << 34)

struct plain_ref {
    uint64_t disp;
    uint16_t last; /* size - 1 */
    uint8_t slot;
    uint8_t fs;
    uint8_t twice; /* read-modify-write: a load and a store */
    uint8_t store; /* written */
};

/*
 * Up to 8 plain references in program order whose words are within a window of 8; one that is read and
 * written counts as two. One cache line; the first group of a block contains all that most blocks need, since
 * large programs have more blocks than any cache holds. All zero: no group.
 */
struct group {
    int32_t disp[8];
    uint64_t base;                         /* base address for references without a word */
    uint8_t last[8];                       /* size - 1 */
    uint8_t word[8];                       /* within the window */
    uint8_t with_word, with_base, with_fs; /* bit i: what is added to the displacement of reference i */
    uint8_t n;
    uint8_t loads;
    uint8_t ninsns; /* of the block; 0 in all groups but its first */
    uint8_t more;   /* number of the block's other groups, in block.groups; + GROUP_TURNS */
    union {
        uint8_t nwords; /* first group: words of the record, whose start is the window */
        uint8_t window; /* other groups: first word of the window */
    };
} __attribute__((aligned(64)));

#define LAST_REFERENCE ((1u << DECODE_SITE_BITS) - 1)
#define GROUP_TURNS 128u /* block.turns */

struct block {
    uint64_t header; /* of its records */
    uint32_t nwords;
    uint32_t nrefs;
    uint32_t ninsns;
    uint32_t loads, stores; /* if all references are plain */
    uint8_t special;        /* some reference is not plain */
    uint8_t bad;
    uint8_t turns;    /* it ends with a call or return that is noted */
    uint64_t returns; /* of a call: the return address */
    uint32_t module;
    uint64_t pc;
    struct wire_ref *refs; /* a copy of the template's: for special blocks and incomplete records */
    struct group *groups;  /* all except the first, or NULL */
    struct plain_ref plain[];
};

struct decoder {
    struct decode_source source;
    unsigned line_shift;
    unsigned line_bytes;
    struct block **blocks; /* by id */
    /* Blocks with this id or a higher one were never seen, and their table entries never written. Atomic: of
     * blocks that were seen, another thread may ask (decoder_site_code) while buffers are decoded. */
    uint32_t ids;
    struct group *first;                   /* by id: the block's first group; NULL if the CPU lacks AVX-512 */
    const struct filter *filter;           /* NULL: none */
    uint64_t *sums;                        /* with a filter, by id (decode-filtered.c) */
    uint64_t groups;                       /* with a filter: seen so far */
    int all_lines;                         /* with a filter: the batch has lines that do not pass */
    uint64_t *own_batch, *batch;           /* its own memory, and where lines are written */
    uint32_t *own_touches, *batch_touches; /* decoder_touches of each line, if sites are counted; likewise */
    size_t used;
    struct decode_turn *turns; /* of the batch; NULL: not noted */
    size_t nturns;
    struct decode_sites *sites; /* NULL: not counted */
    struct decode_sites *noted; /* in this call: sites, if there is a sink */
    uint32_t site;              /* of references written one by one */
    enum decode_strings strings;
    struct stackdist_repeat *repeats; /* of the batch; NULL: never DECODE_STRINGS_REPEAT */
    size_t nrepeats;
    uint64_t repeated; /* touches of these */
    decode_sink *sink; /* of the call in progress, with its ctx and what it counts */
    void *ctx;
    struct decode_counts *counts;
};

/* The part of its line in which an address is, at its place in decoder_touches. */
static inline uint32_t part_bits(uint64_t address, unsigned line_shift)
{
    return (uint32_t)(address >> (line_shift - DECODE_PARTS_SHIFT)) << DECODE_PART_SHIFT;
}

/* Whether a reference is two: read, then written. */
static inline int is_twice(const struct wire_ref *r)
{
    return (r->rw & WIRE_LOAD) != 0 && (r->rw & WIRE_STORE) != 0;
}

/* Counts a complete record of a block in which every site made one touch. */
static inline void note_execution(struct decode_sites *sites, uint64_t block)
{
    sites->executed[sites->nexecuted] = (uint32_t)block;
    sites->nexecuted += sites->executions[block]++ == 0;
}

/* After a complete record of a block that has turns, at that many touches of the batch. One at least is its
 * own, so that there is space; returns of the agent's code have none, but they are rare. */
static inline void note_turn(struct decoder *d, const struct block *b, const uint64_t *record,
                             uint64_t fs_base, size_t at)
{
    static const struct wire_ref only_word = {.slot = 1};
    const struct wire_ref *r = b->nrefs > 0 ? &b->refs[b->nrefs - 1] : &only_word;
    uint64_t slot =
        (uint64_t)r->disp + (r->slot != 0 ? record[r->slot] : 0) + ((r->flags & WIRE_FS) != 0 ? fs_base : 0);
    if (d->nturns < BATCH_ROOM)
        d->turns[d->nturns++] = (struct decode_turn){at, slot & ADDRESS_MASK, b->returns, b->module};
}

/* Checks and copies the template of block `id`. NULL: out of memory. */
struct block *decode_compile(struct decoder *d, uint32_t id);
/* Gives what is in the batch to the sink. 0, or its result. */
int decode_flush(struct decoder *d);
/*
 * Decodes one record reference by reference, of any kind: those of instructions below `insns`. Only `have`
 * words of it exist. 0, or the sink's result.
 */
int decode_record(struct decoder *d, const struct block *b, const uint64_t *record, uint32_t have,
                  uint32_t insns, uint64_t fs_base);
/* decode_buffer of an agent that filters lines. */
int decode_filtered(struct decoder *d, const struct wire_desc *desc, const uint64_t *words, uint64_t n);

/* Whether this machine runs decode_groups. */
int decode_has_avx512(void);
/* Divides b's plain references into groups, if possible. 0, or -ENOMEM. */
int decode_make_groups(struct block *b, struct group *first);
/*
 * Decodes complete records from words[at] on, as long as they are grouped and the batch has space. Returns
 * where it stopped: at a record that decode_buffer must handle.
 */
uint64_t decode_groups(struct decoder *d, const uint64_t *words, uint64_t at, uint64_t n, uint64_t fs_base);

#endif
