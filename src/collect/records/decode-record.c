/* SPDX-License-Identifier: Apache-2.0 */
/* decode-record.c - decodes a record reference by reference, of any kind; and the batch of lines. */
#include <string.h>
#include "collect/records/decode-internal.h"

static uint32_t site_of(uint64_t block, uint32_t reference)
{
    return DECODE_SITE(block, reference < LAST_REFERENCE ? reference : LAST_REFERENCE);
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

/* Writes one line that a reference of d->site from that address on touches; the caller has checked the space.
 */
static inline void put_line(struct decoder *d, uint64_t line, uint64_t address)
{
    uint32_t part = line == address >> d->line_shift ? part_bits(address, d->line_shift) : 0;
    d->batch_touches[d->used] = d->site | part;
    d->batch[d->used++] = line;
}

/* Writes all lines of [address, address + bytes), once; the caller has checked the space. */
static inline void put_span(struct decoder *d, uint64_t address, uint64_t bytes)
{
    address &= ADDRESS_MASK;
    for (uint64_t line = address >> d->line_shift; line <= (address + bytes - 1) >> d->line_shift; line++)
        put_line(d, line, address);
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
            put_line(d, line, start);
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
            put_line(d, o->last = line, address);
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
