/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c - the collector's hot loop.
 *
 * A record is a header and the values of the registers from which its block's addresses are calculated; the
 * block's template says how. A template is checked on first use and compiled into a private copy (the target
 * could change the shared one at any time). In the copy, a plain reference is
 *
 *     address = disp + record[slot] + base[fs]
 *
 * without a branch. References without a register use slot 0, the header, whose known value is subtracted
 * from their displacement. Example, 64-byte lines: header 0x2_00007 (block 7, 2 words), `mov 8(%rax)` is
 * {disp 8, slot 1}, `mov var` at 0x4010 is {disp 0x4010 - 0x200007, slot 0}; the record [0x200007, 0x5000]
 * gives 0x5008 and 0x4010: lines 0x140 and 0x100.
 *
 * With AVX-512, up to eight such references form one group (decode-avx512.c).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/pages.h"
#include "collect/records/decode-internal.h"

#define BLOCKS_BYTES (WIRE_MAX_BLOCKS * sizeof(struct block *))
#define LAST_REFERENCE ((1u << DECODE_SITE_BITS) - 1)
#define FIRST_BYTES (WIRE_MAX_BLOCKS * sizeof(struct group))
#define SUMS_BYTES (((size_t)WIRE_ID_MASK + 1) * sizeof(uint64_t)) /* any id, before it is checked */

struct decoder *decoder_new(unsigned line_bytes, const struct decode_source *source, struct error *err)
{
    if (line_bytes < 8 || line_bytes > 4096 || (line_bytes & (line_bytes - 1)) != 0) {
        error_set(err, -EINVAL, "line size %u is not a power of two from 8 to 4096", line_bytes);
        return NULL;
    }
    struct decoder *d = calloc(1, sizeof(*d));
    if (d != NULL) {
        d->blocks = pages_sparse_new(BLOCKS_BYTES);
        d->batch = malloc(BATCH_ROOM * sizeof(*d->batch));
        d->batch_sites = malloc(BATCH_ROOM * sizeof(*d->batch_sites));
    }
    int groups = decode_has_avx512();
    if (d != NULL && groups)
        d->first = pages_sparse_new(FIRST_BYTES);
    if (d == NULL || d->blocks == NULL || d->batch == NULL || d->batch_sites == NULL ||
        (groups && d->first == NULL)) {
        decoder_free(d);
        error_set(err, -ENOMEM, "out of memory for the decoder of a process");
        return NULL;
    }
    d->source = *source;
    d->line_bytes = line_bytes;
    d->line_shift = (unsigned)__builtin_ctz(line_bytes);
    return d;
}

void decoder_free(struct decoder *d)
{
    if (d == NULL)
        return;
    for (uint32_t i = 0; i < d->ids; i++)
        if (d->blocks[i] != NULL) {
            free(d->blocks[i]->refs);
            free(d->blocks[i]->groups);
            free(d->blocks[i]);
        }
    pages_sparse_free(d->blocks, BLOCKS_BYTES);
    pages_sparse_free(d->first, FIRST_BYTES);
    pages_sparse_free(d->sums, SUMS_BYTES);
    free(d->batch);
    free(d->batch_sites);
    free(d->turns);
    free(d->repeats);
    free(d);
}

int decoder_strings(struct decoder *d, enum decode_strings how)
{
    if (how == DECODE_STRINGS_REPEAT && d->repeats == NULL &&
        (d->repeats = malloc(BATCH_ROOM * sizeof(*d->repeats))) == NULL)
        return -ENOMEM;
    d->strings = how;
    return 0;
}

int decoder_filter(struct decoder *d, const struct filter *filter)
{
    pages_sparse_free(d->first, FIRST_BYTES);
    d->first = NULL;
    d->filter = filter;
    return (d->sums = pages_sparse_new(SUMS_BYTES)) != NULL ? 0 : -ENOMEM;
}

const struct stackdist_repeat *decoder_repeats(const struct decoder *d, size_t *n)
{
    *n = d->nrepeats;
    return d->repeats;
}

void decoder_note_sites(struct decoder *d, struct decode_sites *sites)
{
    d->sites = sites;
}

const uint32_t *decoder_line_sites(const struct decoder *d)
{
    return d->batch_sites;
}

int decoder_note_turns(struct decoder *d)
{
    d->turns = malloc(BATCH_ROOM * sizeof(*d->turns));
    return d->turns != NULL ? 0 : -ENOMEM;
}

const struct decode_turn *decoder_turns(const struct decoder *d, size_t *n)
{
    *n = d->nturns;
    return d->turns;
}

static uint32_t site_of(uint64_t block, uint32_t reference)
{
    return DECODE_SITE(block, reference < LAST_REFERENCE ? reference : LAST_REFERENCE);
}

static int is_twice(const struct wire_ref *r)
{
    return (r->rw & WIRE_LOAD) != 0 && (r->rw & WIRE_STORE) != 0;
}

int decoder_site_code(const struct decoder *d, uint32_t site, uint64_t *pc, uint32_t *module)
{
    uint32_t id = site >> DECODE_SITE_BITS, reference = site & LAST_REFERENCE, first = 0;
    const struct block *b = id < __atomic_load_n(&d->ids, __ATOMIC_RELAXED) ? d->blocks[id] : NULL;
    for (uint32_t i = 0; b != NULL && !b->bad && i < b->nrefs; i++) {
        first += 1u + (unsigned)is_twice(&b->refs[i]);
        if (reference >= first)
            continue;
        *pc = b->pc + b->refs[i].pc_offset;
        *module = b->module;
        return 0;
    }
    return -ENOENT;
}

/* Most bytes that a reference may span, or 0 if its description is corrupt. */
static uint32_t ref_span(const struct wire_ref *r, uint32_t nwords)
{
    if (r->slot >= nwords)
        return 0;
    switch (r->kind) {
    case WIRE_REF_PLAIN:
        return (r->rw & (WIRE_LOAD | WIRE_STORE)) != 0 ? r->size : 0;
    case WIRE_REF_REP:
        if (r->slot == 0 || r->slot + 4u >= nwords || (r->flags & (WIRE_REP_SRC | WIRE_REP_DST)) == 0)
            return 0;
        return r->elem_bytes <= 8 ? r->elem_bytes : 0;
    case WIRE_REF_MASKED:
    case WIRE_REF_PACKED:
        if (r->slot2 == 0 || r->slot2 >= nwords || (r->rw & (WIRE_LOAD | WIRE_STORE)) == 0)
            return 0;
        return 64u * r->elem_bytes;
    case WIRE_REF_GATHER:
        if (r->slot2 == 0 || r->slot2 >= nwords || r->slot3 == 0 || r->slot3 >= nwords)
            return 0;
        if ((r->index_bytes != 4 && r->index_bytes != 8) || (r->rw & (WIRE_LOAD | WIRE_STORE)) == 0)
            return 0;
        return 64u * r->elem_bytes;
    default:
        return 0;
    }
}

/* A block that ends with a call or return of which the record says where the return address lies: that is
 * what its last reference is to, or of the agent's code its only word. */
static int has_turn(const struct wire_block *head, const struct wire_ref *refs)
{
    if (head->ends != WIRE_BLOCK_CALL && head->ends != WIRE_BLOCK_RETURN)
        return 0;
    if (head->nrefs == 0)
        return head->ends == WIRE_BLOCK_RETURN && head->nwords == 2;
    const struct wire_ref *last = &refs[head->nrefs - 1];
    return last->kind == WIRE_REF_PLAIN &&
           last->rw == (head->ends == WIRE_BLOCK_CALL ? WIRE_STORE : WIRE_LOAD);
}

struct block *decode_compile(struct decoder *d, uint32_t id)
{
    struct wire_block head = {0};
    const uint8_t *at = NULL;
    uint64_t offset = __atomic_load_n(&d->source.block_offset[id], __ATOMIC_ACQUIRE);
    if (offset != 0 && offset % 8 == 0 && offset + sizeof(head) <= d->source.template_bytes) {
        at = (const uint8_t *)d->source.templates + offset;
        memcpy(&head, at, sizeof(head));
        if (head.nrefs * sizeof(struct wire_ref) > d->source.template_bytes - offset - sizeof(head))
            at = NULL;
    }
    uint32_t nrefs = at != NULL ? head.nrefs : 0;
    struct block *b = calloc(1, sizeof(*b) + nrefs * sizeof(b->plain[0]));
    struct wire_ref *refs = malloc((nrefs + 1) * sizeof(*refs));
    if (b == NULL || refs == NULL) {
        free(b);
        free(refs);
        return NULL;
    }
    b->refs = refs;
    b->bad = at == NULL || head.nwords == 0;
    d->blocks[id] = b;
    if (id >= d->ids)
        __atomic_store_n(&d->ids, id + 1, __ATOMIC_RELAXED);
    if (b->bad)
        return b;
    memcpy(refs, at + sizeof(head), nrefs * sizeof(*refs));
    b->nwords = head.nwords;
    b->nrefs = nrefs;
    b->ninsns = head.ninsns;
    b->pc = head.pc;
    b->module = head.module;

    uint64_t header = b->header = id | (uint64_t)head.nwords << WIRE_ID_BITS;
    uint64_t most_lines = 0;
    for (uint32_t i = 0; i < nrefs; i++) {
        const struct wire_ref *r = &refs[i];
        uint32_t span = ref_span(r, b->nwords);
        if (span == 0) {
            b->bad = 1;
            return b;
        }
        b->special |= r->kind != WIRE_REF_PLAIN;
        b->loads += (r->rw & WIRE_LOAD) != 0;
        b->stores += (r->rw & WIRE_STORE) != 0;
        most_lines += 2 * (span / d->line_bytes + 2);
        b->plain[i] = (struct plain_ref){
            .disp = (uint64_t)r->disp - (r->slot == 0 ? header : 0),
            .last = (uint16_t)(r->size - 1),
            .slot = r->slot,
            .fs = (r->flags & WIRE_FS) != 0,
            .twice = (uint8_t)is_twice(r),
            .store = (r->rw & WIRE_STORE) != 0,
        };
    }
    b->bad = most_lines > BATCH_MARGIN;
    b->turns = d->turns != NULL && has_turn(&head, refs);
    b->returns = head.ends == WIRE_BLOCK_CALL ? head.pc + head.bytes : 0;
    if (d->first != NULL && !b->bad && !b->special && decode_make_groups(b, &d->first[id]) < 0) {
        d->blocks[id] = NULL;
        free(b->refs);
        free(b);
        return NULL;
    }
    return b;
}

/* Removes lines that the filter does not let pass. Returns how many are left. */
static size_t keep_passing(const struct filter *f, uint64_t *lines, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        lines[kept] = lines[i];
        kept += (size_t)filter_passes(f, lines[i]);
    }
    return kept;
}

int decode_flush(struct decoder *d)
{
    size_t n = d->used;
    int status = 0;
    d->used = 0;
    if (n > 0 && d->sink != NULL) {
        d->counts->touches += n + d->repeated;
        if (d->all_lines)
            n = keep_passing(d->filter, d->batch, n);
        status = d->sink(d->ctx, d->batch, n);
    }
    d->nturns = d->nrepeats = 0;
    d->repeated = 0;
    return status;
}

/* Writes one line of d->site; the caller has checked the space. */
static inline void put_line(struct decoder *d, uint64_t line)
{
    d->batch_sites[d->used] = d->site;
    d->batch[d->used++] = line;
}

/* Writes all lines of [address, address + bytes), once; the caller has checked the space. */
static inline void put_span(struct decoder *d, uint64_t address, uint64_t bytes)
{
    address &= ADDRESS_MASK;
    for (uint64_t line = address >> d->line_shift; line <= (address + bytes - 1) >> d->line_shift; line++)
        put_line(d, line);
}

static void count_rw(struct decode_counts *c, unsigned rw)
{
    c->loads += (rw & WIRE_LOAD) != 0;
    c->stores += (rw & WIRE_STORE) != 0;
}

/* Writes the lines of the elements chosen by mask, each line once: they are parts of one reference. */
static void put_masked(struct decoder *d, uint64_t address, uint64_t mask, unsigned elem_bytes)
{
    uint64_t next = 0; /* lower lines have been written */
    address &= ADDRESS_MASK;
    for (; mask != 0; mask &= mask - 1) {
        uint64_t start = address + (uint64_t)__builtin_ctzll(mask) * elem_bytes;
        uint64_t line = start >> d->line_shift;
        if (line < next)
            line = next;
        for (; line <= (start + elem_bytes - 1) >> d->line_shift; line++)
            put_line(d, line);
        next = line;
    }
}

/* One operand of a repeated string instruction. */
struct string_operand {
    uint64_t address, last; /* of the next element; the last line it touched */
    int used;
};

/* How many elements, from the next one on, lie completely in its first line; at least 1. */
static uint64_t elements_of_line(const struct decoder *d, const struct string_operand *o, uint64_t step)
{
    uint64_t n = (int64_t)step < 0 ? 0 : (d->line_bytes - (o->address & (d->line_bytes - 1))) / step;
    return n > 0 ? n : 1;
}

/* Writes lines of the next element, except the last one touched. */
static void put_element(struct decoder *d, struct string_operand *o, uint64_t bytes)
{
    uint64_t address = o->address & ADDRESS_MASK;
    for (uint64_t line = address >> d->line_shift; line <= (address + bytes - 1) >> d->line_shift; line++)
        if (line != o->last)
            put_line(d, o->last = line);
}

/* Writes the lines of so many elements, except those touched last. Returns how many elements were decoded. */
static uint64_t put_string_lines(struct decoder *d, struct string_operand operands[2], uint64_t elements,
                                 uint64_t step, uint64_t bytes, int *status)
{
    uint64_t i = 0;
    while (i < elements) {
        uint64_t go = elements - i;
        if (d->used >= BATCH_LINES && (*status = decode_flush(d)) < 0)
            break;
        for (unsigned k = 0; k < 2; k++)
            if (operands[k].used) {
                uint64_t most = elements_of_line(d, &operands[k], step);
                put_element(d, &operands[k], bytes);
                go = most < go ? most : go;
            }
        operands[0].address += go * step;
        operands[1].address += go * step;
        i += go;
    }
    return i;
}

/* The lines that the last element touched, one for each operand, are touched so many times more. */
static void note_repeat(struct decoder *d, uint32_t lines, uint64_t times)
{
    struct stackdist_repeat r = {.at = (uint32_t)d->used, .lines = lines, .times = times};
    if (lines == 2 && d->batch[d->used - 1] == d->batch[d->used - 2])
        r = (struct stackdist_repeat){.at = r.at, .lines = 1, .times = 2 * times};
    d->repeats[d->nrepeats++] = r;
    d->repeated += r.lines * r.times;
}

/* Writes the lines of the first of the elements that touch the same lines, and notes the others. Returns
 * their number. */
static uint64_t put_repeats(struct decoder *d, const struct string_operand operands[2], uint64_t elements,
                            uint64_t step, uint64_t bytes)
{
    uint64_t go = elements;
    uint32_t lines = 0;
    for (unsigned k = 0; k < 2; k++)
        if (operands[k].used) {
            uint64_t most = elements_of_line(d, &operands[k], step);
            put_span(d, operands[k].address, bytes);
            go = most < go ? most : go;
            lines++;
        }
    if (go > 1 && lines > 0)
        note_repeat(d, lines, go - 1);
    return go;
}

/* Writes all lines of all elements. Returns the number of elements. */
static uint64_t put_elements(struct decoder *d, struct string_operand operands[2], uint64_t elements,
                             uint64_t step, uint64_t bytes, int *status)
{
    uint64_t i = 0, go = 1;
    for (; i < elements; i += go) {
        if (d->used >= BATCH_LINES && (*status = decode_flush(d)) < 0)
            break;
        if (d->strings == DECODE_STRINGS_REPEAT)
            go = put_repeats(d, operands, elements - i, step, bytes);
        else
            for (unsigned k = 0; k < 2; k++)
                if (operands[k].used)
                    put_span(d, operands[k].address, bytes);
        operands[0].address += go * step;
        operands[1].address += go * step;
    }
    return i;
}

/* words: rcx, rsi, rdi before the instruction; rcx and a pointer after it. */
static int put_rep(struct decoder *d, const struct wire_ref *r, const uint64_t *words, uint64_t fs_base)
{
    uint64_t elements = words[0] - words[3];
    uint64_t source = words[1] + ((r->flags & WIRE_FS) != 0 ? fs_base : 0), target = words[2];
    uint64_t moved = words[4] - ((r->flags & WIRE_REP_DST) != 0 ? words[2] : words[1]);
    int backwards = (int64_t)moved < 0;
    uint64_t step = backwards ? -(uint64_t)r->elem_bytes : r->elem_bytes;

    if (elements > REP_MAX_ELEMENTS || moved != elements * step) {
        d->counts->bad_records++;
        return 0;
    }
    int reads = (r->flags & WIRE_REP_SRC) != 0, touches = (r->flags & WIRE_REP_DST) != 0;
    int dst_reads = (r->flags & WIRE_REP_DST_RD) != 0;
    int status = 0;
    struct string_operand operands[] = {{source, UINT64_MAX, reads}, {target, UINT64_MAX, touches}};
    uint64_t i = d->strings == DECODE_STRINGS_LINES
                     ? put_string_lines(d, operands, elements, step, r->elem_bytes, &status)
                     : put_elements(d, operands, elements, step, r->elem_bytes, &status);
    d->counts->steps += (unsigned)(reads + touches) * (1 - i); /* the rest as for any other reference */
    d->counts->loads += i * (unsigned)(reads + (touches && dst_reads));
    d->counts->stores += touches && !dst_reads ? i : 0;
    if (d->noted != NULL && i > 0)
        d->noted->more(d->noted->ctx, d->site, i * (unsigned)(reads + touches));
    return status;
}

static void put_gather(struct decoder *d, const struct wire_ref *r, const uint64_t *record, uint32_t nwords,
                       uint64_t base)
{
    const uint8_t *indices = (const uint8_t *)&record[r->slot3];
    uint64_t capacity = (uint64_t)(nwords - r->slot3) * 8 / r->index_bytes;
    uint64_t mask = record[r->slot2];
    unsigned elements = r->elem_bytes != 0 ? (unsigned)r->size / r->elem_bytes : 0;
    if (elements < 64) /* the mask register has more bits than the instruction has elements */
        mask &= (UINT64_C(1) << elements) - 1;
    for (; mask != 0; mask &= mask - 1) {
        unsigned i = (unsigned)__builtin_ctzll(mask);
        if (i >= capacity) {
            d->counts->bad_records++;
            return;
        }
        int64_t index = 0;
        if (r->index_bytes == 4) {
            int32_t narrow;
            memcpy(&narrow, indices + 4 * i, 4);
            index = narrow;
        } else {
            memcpy(&index, indices + 8 * i, 8);
        }
        uint64_t address = base + (uint64_t)index * r->scale;
        for (unsigned rw = WIRE_LOAD; rw <= WIRE_STORE; rw <<= 1)
            if ((r->rw & rw) != 0) {
                count_rw(d->counts, rw);
                put_span(d, address, r->elem_bytes);
            }
    }
}

static void note_touches(struct decoder *d, uint64_t touches)
{
    if (d->noted != NULL && touches > 0)
        d->noted->more(d->noted->ctx, d->site, touches);
}

int decode_record(struct decoder *d, const struct block *b, const uint64_t *record, uint32_t have,
                  uint32_t insns, uint64_t fs_base)
{
    uint64_t id = b->header & WIRE_ID_MASK;
    uint32_t next = 0;
    for (uint32_t i = 0; i < b->nrefs; i++) {
        const struct wire_ref *r = &b->refs[i];
        d->site = site_of(id, next);
        next += 1u + (unsigned)is_twice(r);
        if (r->insn >= insns)
            continue;
        if (r->slot >= have || (r->kind == WIRE_REF_REP && r->slot + 4u >= have) ||
            (r->kind > WIRE_REF_REP && r->slot2 >= have) ||
            (r->kind == WIRE_REF_GATHER && r->slot3 >= have)) {
            d->counts->bad_records++;
            return 0;
        }
        if (d->used >= BATCH_LINES) {
            int status = decode_flush(d);
            if (status < 0)
                return status;
        }
        uint64_t address = (uint64_t)r->disp + (r->slot != 0 ? record[r->slot] : 0) +
                           ((r->flags & WIRE_FS) != 0 ? fs_base : 0);
        if (r->kind == WIRE_REF_REP) {
            int status = put_rep(d, r, &record[r->slot], fs_base);
            if (status < 0)
                return status;
            continue;
        }
        size_t before = d->used;
        if (r->kind == WIRE_REF_GATHER) {
            put_gather(d, r, record, have, address);
            note_touches(d, d->used - before);
            continue;
        }
        /* MASKED without whole elements: all bits of the mask are used. */
        unsigned elements = r->elem_bytes != 0 ? (unsigned)r->size / r->elem_bytes : 0;
        uint64_t mask = 0;
        if (r->kind != WIRE_REF_PLAIN) {
            mask = record[r->slot2];
            if (elements != 0 && elements < 64)
                mask &= (UINT64_C(1) << elements) - 1;
            if (mask == 0)
                continue;
        }
        for (unsigned rw = WIRE_LOAD; rw <= WIRE_STORE; rw <<= 1) {
            if ((r->rw & rw) == 0)
                continue;
            count_rw(d->counts, rw);
            if (r->kind == WIRE_REF_PLAIN)
                put_span(d, address, r->size);
            else if (r->kind == WIRE_REF_MASKED)
                put_masked(d, address, mask, r->elem_bytes);
            else
                put_span(d, address, (uint64_t)__builtin_popcountll(mask) * r->elem_bytes);
        }
        note_touches(d, d->used - before);
    }
    return 0;
}

/* A complete record of plain references only: nearly all records are. */
static inline void put_plain(struct decoder *d, const struct block *b, const uint64_t *record,
                             const uint64_t base[2])
{
    unsigned shift = d->line_shift;
    uint64_t *out = d->batch + d->used;
    for (const struct plain_ref *p = b->plain, *end = p + b->nrefs; p < end; p++) {
        uint64_t address = (p->disp + record[p->slot] + base[p->fs]) & ADDRESS_MASK;
        uint64_t line = address >> shift, last = (address + p->last) >> shift;
        out[0] = line;
        out[1] = line; /* counts only if it is read and written */
        if (__builtin_expect(line == last, 1)) {
            out += 1 + p->twice;
            continue;
        }
        for (unsigned times = 0; times <= p->twice; times++)
            for (uint64_t at = line; at <= last; at++)
                *out++ = at;
    }
    d->used = (size_t)(out - d->batch);
}

/* The same with sites, for a block in which each site has its own number. */
static inline void put_plain_sites(struct decoder *d, const struct block *b, const uint64_t *record,
                                   const uint64_t base[2])
{
    unsigned shift = d->line_shift;
    uint64_t *out = d->batch + d->used;
    uint32_t *sites = d->batch_sites + d->used;
    uint32_t site = DECODE_SITE(b->header & WIRE_ID_MASK, 0);
    for (const struct plain_ref *p = b->plain, *end = p + b->nrefs; p < end; p++) {
        uint64_t address = (p->disp + record[p->slot] + base[p->fs]) & ADDRESS_MASK;
        uint64_t line = address >> shift, last = (address + p->last) >> shift;
        unsigned times = 1u + p->twice;
        out[0] = out[1] = line;
        sites[0] = site;
        sites[1] = site + 1; /* counts only if it is read and written */
        if (__builtin_expect(line == last, 1)) {
            out += times;
            sites += times;
            site += times;
            continue;
        }
        for (; times > 0; times--, site++) {
            for (uint64_t at = line; at <= last; at++) {
                *out++ = at;
                *sites++ = site;
            }
            d->noted->more(d->noted->ctx, site, last - line);
        }
    }
    d->used = (size_t)(out - d->batch);
}

int decode_buffer(struct decoder *d, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                  decode_sink *sink, void *ctx, struct decode_counts *counts)
{
    const uint64_t base[2] = {0, desc->fs_base};
    uint64_t loads_and_stores = counts->loads + counts->stores;
    int status = 0;

    d->sink = sink;
    d->ctx = ctx;
    d->counts = counts;
    d->used = 0;
    d->nturns = d->nrepeats = 0;
    d->repeated = 0;
    d->noted = sink != NULL ? d->sites : NULL;
    if (d->filter != NULL) {
        status = decode_filtered(d, desc, words, n);
        n = 0;
    }
    for (uint64_t at = 0; at < n && status >= 0;) {
        if (d->first != NULL && sink != NULL && (at = decode_groups(d, words, at, n, desc->fs_base)) >= n)
            break;
        const uint64_t *record = &words[at];
        uint64_t header = __atomic_load_n(record, __ATOMIC_RELAXED);
        uint64_t id = header & WIRE_ID_MASK, nwords = header >> WIRE_ID_BITS;
        if (id == 0 || id >= WIRE_MAX_BLOCKS || nwords == 0) {
            counts->bad_records++; /* where the next one starts is unknown */
            break;
        }
        struct block *b = d->blocks[id];
        if (b == NULL && (b = decode_compile(d, (uint32_t)id)) == NULL) {
            status = -ENOMEM;
            break;
        }
        if (b->bad || b->nwords != nwords) {
            counts->bad_records++;
            if (!b->bad || b->nwords == 0)
                break;
            at += nwords;
            continue;
        }
        counts->records++;
        if (__builtin_expect(nwords >= n - at, 0)) { /* the last record */
            uint32_t insns = desc->last_insns < b->ninsns ? desc->last_insns : b->ninsns;
            counts->instructions += insns;
            uint32_t limit = desc->last_insns;
            status = decode_record(d, b, record, (uint32_t)(n - at), limit, desc->fs_base);
            break;
        }
        if (d->used >= BATCH_LINES)
            status = decode_flush(d);
        counts->instructions += b->ninsns;
        if (__builtin_expect(b->special, 0)) {
            if (status >= 0)
                status = decode_record(d, b, record, b->nwords, UINT32_MAX, desc->fs_base);
        } else {
            if (d->noted != NULL && 2 * b->nrefs <= LAST_REFERENCE) {
                note_execution(d->noted, id);
                put_plain_sites(d, b, record, base);
            } else if (d->noted != NULL && status >= 0) {
                uint64_t loads = counts->loads, stores = counts->stores;
                status = decode_record(d, b, record, b->nwords, UINT32_MAX, desc->fs_base);
                counts->loads = loads;
                counts->stores = stores;
            } else if (sink != NULL) {
                put_plain(d, b, record, base);
            }
            counts->loads += b->loads;
            counts->stores += b->stores;
        }
        if (b->turns && d->noted != NULL && status >= 0)
            note_turn(d, b, record, desc->fs_base, d->used);
        at += nwords;
    }
    if (status >= 0 && d->used > 0)
        status = decode_flush(d);
    counts->references += counts->loads + counts->stores - loads_and_stores;
    counts->steps += counts->loads + counts->stores - loads_and_stores;
    return status < 0 ? status : 0;
}

uint64_t decode_whole_records(const uint64_t *words, uint64_t n, uint64_t most)
{
    uint64_t at = 0;
    if (n <= most)
        return n;
    for (;;) {
        uint32_t nwords = (uint32_t)words[at] >> WIRE_ID_BITS;
        if (nwords == 0) /* invalid: nothing after it is decoded */
            return n;
        if (at + nwords > most)
            return at;
        at += nwords;
    }
}
