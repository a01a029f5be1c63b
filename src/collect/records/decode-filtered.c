/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode-filtered.c - decodes buffers of an agent that filters lines (wire.h, "The filter").
 *
 * Nearly all words are headers of one word, of which only the references are counted, or addresses in the
 * sample. One of six is an address, at random, so they are distinguished without a branch.
 */
#include <errno.h>
#include "collect/records/decode-internal.h"

/* decoder.sums: what an execution of a block adds, side by side. No chunk of a buffer makes them overflow. */
#define SUM_BITS 21
#define SUM_MASK ((UINT64_C(1) << SUM_BITS) - 1)
#define SUM_KNOWN (UINT64_C(1) << 63) /* the block was checked, and has a header only; else the sum is 0 */

/* Only one group in so many is examined for references that touch two lines. */
#define GROUPS_EVERY 7u

static uint64_t sum_of(const struct block *b)
{
    return SUM_KNOWN | (uint64_t)b->ninsns << 2 * SUM_BITS | (uint64_t)b->stores << SUM_BITS | b->loads;
}

/* What was decoded of a buffer. */
struct decoded {
    uint64_t at;     /* the next word */
    uint64_t last;   /* block of the last header of one word; 0: none, or a record came after it */
    uint64_t two;    /* references that touch two lines, of groups in the sample */
    uint64_t sample; /* addresses */
    uint64_t references;
};

/* How many references of a group touch two lines, if its first touch is at that address. */
static uint64_t touching_two(const struct decoder *d, const struct block *b, uint64_t group, uint64_t address)
{
    uint64_t two = 0, line = d->line_bytes;
    for (uint32_t i = 0; i < b->nrefs; i++) {
        const struct wire_ref *r = &b->refs[i];
        uint64_t times = 1u + (unsigned)is_twice(r), at = address + (uint64_t)r->disp;
        two += r->slot2 == group && (at & (line - 1)) + r->size > line ? times : 0;
    }
    return two;
}

/* From words to lines, in place. blocks: of each, or 0. Adds to o->two. */
static void take_addresses(struct decoder *d, uint64_t *words, const uint32_t *blocks, size_t n,
                           struct decoded *o)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t group = words[i] >> WIRE_FILTER_ADDRESS_BITS, address = words[i] & ADDRESS_MASK;
        if (group != 0 && blocks[i] != 0 && d->groups++ % GROUPS_EVERY == 0)
            o->two += GROUPS_EVERY * touching_two(d, d->blocks[blocks[i]], group, address);
        words[i] = address >> d->line_shift;
    }
}

/* Headers of known blocks and addresses, until another word or `end`. */
static void take_words(struct decoder *d, const uint64_t *words, uint64_t end, struct decoded *o)
{
    const uint64_t *sums = d->sums;
    uint64_t *const batch = d->batch + d->used, *out = batch;
    uint32_t *blocks = d->batch_touches; /* of the addresses; there are no sites */
    uint64_t at = o->at, sum = 0, last = o->last;
    for (; at < end; at++) {
        uint64_t w = __atomic_load_n(&words[at], __ATOMIC_RELAXED), is_header = w >> 63;
        uint64_t id = w & WIRE_ID_MASK & -is_header, adds = sums[id];
        if (__builtin_expect(adds == 0, 0))
            break;
        sum += adds;
        last = is_header ? id : last;
        *out = w;
        *blocks = (uint32_t)last;
        out += 1 - is_header;
        blocks += 1 - is_header;
    }
    size_t addresses = (size_t)(out - batch);
    uint64_t loads = sum & SUM_MASK, stores = sum >> SUM_BITS & SUM_MASK;
    d->counts->records += at - o->at - addresses;
    d->counts->instructions += (sum & ~SUM_KNOWN) >> 2 * SUM_BITS;
    d->counts->loads += loads;
    d->counts->stores += stores;
    o->references += loads + stores;
    o->sample += addresses;
    o->last = last;
    o->at = at;
    take_addresses(d, batch, d->batch_touches, addresses, o);
    d->used += addresses;
}

/* A header that take_words did not know. 0, or negative; *over: nothing after it can be decoded. */
static int take_header(struct decoder *d, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                       struct decoded *o)
{
    uint64_t header = __atomic_load_n(&words[o->at], __ATOMIC_RELAXED);
    uint64_t id = header & WIRE_ID_MASK, nwords = WIRE_FILTERED_WORDS(header), left = n - o->at;
    struct block *b = NULL;
    if (header >= WIRE_FILTERED && id != 0 && id < WIRE_MAX_BLOCKS && (b = d->blocks[id]) == NULL &&
        (b = decode_compile(d, (uint32_t)id)) == NULL)
        return -ENOMEM;
    if (b == NULL || b->bad || b->nwords != nwords) { /* perhaps an address that no program can have */
        d->counts->bad_records++;
        o->at++;
        return 0;
    }
    if (nwords == 1) {
        d->sums[id] = sum_of(b);
        return 0;
    }
    int is_last = nwords >= left;
    uint32_t limit = is_last ? desc->last_insns : UINT32_MAX;
    d->counts->records++;
    d->counts->instructions += limit < b->ninsns ? limit : b->ninsns;
    d->all_lines = 1;
    int status =
        decode_record(d, b, &words[o->at], (uint32_t)(is_last ? left : nwords), limit, desc->fs_base);
    o->at += is_last ? left : nwords;
    o->last = 0;
    return status;
}

/* Of the block whose header came last, only some instructions were executed. */
static void take_back(struct decoder *d, const struct wire_desc *desc, struct decoded *o)
{
    const struct block *b = d->blocks[o->last];
    if (desc->last_insns >= b->ninsns)
        return;
    d->counts->instructions -= b->ninsns - desc->last_insns;
    for (uint32_t i = 0; i < b->nrefs; i++) {
        const struct wire_ref *r = &b->refs[i];
        uint64_t loads = (r->rw & WIRE_LOAD) != 0, stores = (r->rw & WIRE_STORE) != 0;
        if (r->insn < desc->last_insns)
            continue;
        d->counts->loads -= loads;
        d->counts->stores -= stores;
        o->references -= loads + stores;
    }
}

int decode_filtered(struct decoder *d, const struct wire_desc *desc, const uint64_t *words, uint64_t n)
{
    struct decoded o = {0};
    int status = 0;
    d->all_lines = 0;
    d->sums[0] = SUM_KNOWN; /* of addresses */
    while (o.at < n && status >= 0) {
        if (d->used >= BATCH_LINES) {
            status = decode_flush(d);
            d->all_lines = 0;
            continue;
        }
        uint64_t most = BATCH_LINES - d->used;
        take_words(d, words, n - o.at < most ? n : o.at + most, &o);
        if (o.at < n && words[o.at] >> 63 != 0 && d->used < BATCH_LINES)
            status = take_header(d, desc, words, n, &o);
    }
    if (o.last != 0)
        take_back(d, desc, &o);
    if (status >= 0)
        status = decode_flush(d);
    /* decode_flush has counted the addresses in the sample as touches. */
    d->counts->touches += o.references + o.two * WIRE_FILTER_CLASSES / d->filter->npassing - o.sample;
    return status;
}
