/* SPDX-License-Identifier: Apache-2.0 */
/* decode-templates.c - the decoder of a process, and the templates of its blocks: checked and compiled. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/pages.h"
#include "collect/records/decode-internal.h"

#define BLOCKS_BYTES (WIRE_MAX_BLOCKS * sizeof(struct block *))
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
        d->own_batch = malloc(BATCH_ROOM * sizeof(*d->own_batch));
        d->own_touches = malloc(BATCH_ROOM * sizeof(*d->own_touches));
        decoder_write_to(d, NULL, NULL);
    }
    int groups = decode_has_avx512();
    if (d != NULL && groups)
        d->first = pages_sparse_new(FIRST_BYTES);
    if (d == NULL || d->blocks == NULL || d->own_batch == NULL || d->own_touches == NULL ||
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
    free(d->own_batch);
    free(d->own_touches);
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

void decoder_write_to(struct decoder *d, uint64_t *lines, uint32_t *touches)
{
    d->batch = lines != NULL ? lines : d->own_batch;
    d->batch_touches = touches != NULL ? touches : d->own_touches;
}

void decoder_note_sites(struct decoder *d, struct decode_sites *sites)
{
    d->sites = sites;
}

const uint32_t *decoder_touches(const struct decoder *d)
{
    return d->batch_touches;
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
