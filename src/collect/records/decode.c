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
#include <errno.h>
#include "collect/records/decode-internal.h"

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
    uint32_t *touches = d->batch_touches + d->used;
    uint32_t site = DECODE_SITE(b->header & WIRE_ID_MASK, 0);
    for (const struct plain_ref *p = b->plain, *end = p + b->nrefs; p < end; p++) {
        uint64_t address = (p->disp + record[p->slot] + base[p->fs]) & ADDRESS_MASK;
        uint64_t line = address >> shift, last = (address + p->last) >> shift;
        uint32_t part = part_bits(address, shift);
        unsigned times = 1u + p->twice;
        out[0] = out[1] = line;
        touches[0] = site | part;
        touches[1] = (site + 1) | part; /* counts only if it is read and written */
        if (__builtin_expect(line == last, 1)) {
            out += times;
            touches += times;
            site += times;
            continue;
        }
        for (; times > 0; times--, site++) {
            for (uint64_t at = line; at <= last; at++) {
                *out++ = at;
                *touches++ = site | (at == line ? part : 0);
            }
            d->noted->more(d->noted->ctx, site, last - line);
        }
    }
    d->used = (size_t)(out - d->batch);
}

/* Decodes a whole record of a block that has plain references only; base: by segment. */
static inline int decode_plain(struct decoder *d, struct block *b, uint64_t id, const uint64_t *record,
                               const uint64_t *base)
{
    struct decode_counts *counts = d->counts;
    uint64_t loads = counts->loads + b->loads, stores = counts->stores + b->stores;
    int status = 0;
    if (d->noted != NULL && 2 * b->nrefs <= LAST_REFERENCE) {
        note_execution(d->noted, id);
        put_plain_sites(d, b, record, base);
    } else if (d->noted != NULL) {
        status = decode_record(d, b, record, b->nwords, UINT32_MAX, base[1]);
    } else if (d->sink != NULL) {
        put_plain(d, b, record, base);
    }
    counts->loads = loads;
    counts->stores = stores;
    return status;
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
        } else if (status >= 0) {
            status = decode_plain(d, b, id, record, base);
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
