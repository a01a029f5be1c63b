/* SPDX-License-Identifier: Apache-2.0 */
/*
 * references.c - one loop over the references of each record, of any kind.
 *
 * decode.c has another one for line ids, written for speed. They share no code, and a test compares them.
 */
#include "collect/records/references.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/pages.h"

/* User addresses; the kernel half and non-canonical values can only be corrupt. */
#define ADDRESS_MASK ((UINT64_C(1) << 48) - 1)
/* A repeated string instruction with more elements is corrupt. */
#define REP_MAX_ELEMENTS (UINT64_C(1) << 34)

#define BLOCKS_BYTES (WIRE_MAX_BLOCKS * sizeof(struct block *))

/* A private copy of a template: the target could change the shared one at any time. */
struct block {
    uint64_t pc;
    uint32_t nwords; /* 0: corrupt */
    uint32_t nrefs, ninsns;
    struct wire_ref refs[];
};

struct references {
    struct decode_source source;
    struct block **blocks; /* by id; those from id `ids` on are NULL */
    uint32_t ids;
    uint64_t address[TRACE_BATCH], pc[TRACE_BATCH];
    uint16_t size[TRACE_BATCH];
    uint8_t rw[TRACE_BATCH];
    size_t used;
    references_sink *sink; /* of the call in progress, with its ctx */
    void *ctx;
    int status; /* the sink's result, once negative */
};

/* One execution of a block: the record of its reference values. */
struct record {
    const struct block *block;
    const uint64_t *words;
    uint32_t have; /* words of it that exist */
    uint64_t fs_base;
};

struct references *references_new(const struct decode_source *source, struct error *err)
{
    struct references *r = calloc(1, sizeof(*r));
    if (r != NULL)
        r->blocks = pages_sparse_new(BLOCKS_BYTES);
    if (r == NULL || r->blocks == NULL) {
        references_free(r);
        error_set(err, -ENOMEM, "out of memory for the trace of a process");
        return NULL;
    }
    r->source = *source;
    return r;
}

void references_free(struct references *r)
{
    if (r == NULL)
        return;
    for (uint32_t i = 0; r->blocks != NULL && i < r->ids; i++)
        free(r->blocks[i]);
    pages_sparse_free(r->blocks, BLOCKS_BYTES);
    free(r);
}

static struct block *copy_block(struct references *r, uint32_t id)
{
    struct wire_block head = {0};
    const uint8_t *refs = NULL;
    uint64_t offset = __atomic_load_n(&r->source.block_offset[id], __ATOMIC_ACQUIRE);
    if (offset != 0 && offset % 8 == 0 && offset + sizeof(head) <= r->source.template_bytes) {
        const uint8_t *at = (const uint8_t *)r->source.templates + offset;
        memcpy(&head, at, sizeof(head));
        if (head.nrefs * sizeof(struct wire_ref) <= r->source.template_bytes - offset - sizeof(head))
            refs = at + sizeof(head);
    }
    uint32_t nrefs = refs != NULL ? head.nrefs : 0;
    struct block *b = calloc(1, sizeof(*b) + nrefs * sizeof(b->refs[0]));
    if (b == NULL)
        return NULL;
    if (refs != NULL) {
        memcpy(b->refs, refs, nrefs * sizeof(b->refs[0]));
        b->pc = head.pc;
        b->nwords = head.nwords;
        b->nrefs = nrefs;
        b->ninsns = head.ninsns;
    }
    r->blocks[id] = b;
    r->ids = id >= r->ids ? id + 1 : r->ids;
    return b;
}

static void flush(struct references *r)
{
    const struct trace_batch batch = {
        .n = r->used, .address = r->address, .pc = r->pc, .size = r->size, .rw = r->rw};
    r->used = 0;
    if (batch.n != 0 && r->status >= 0)
        r->status = r->sink(r->ctx, &batch);
}

static inline void put(struct references *r, uint64_t address, uint64_t pc, uint64_t size, uint8_t rw)
{
    size_t i = r->used++;
    r->address[i] = address & ADDRESS_MASK;
    r->pc[i] = pc;
    r->size[i] = (uint16_t)size;
    r->rw[i] = rw;
    if (r->used == TRACE_BATCH)
        flush(r);
}

/* A read-modify-write operand is a load and a store. */
static inline void put_both(struct references *r, uint64_t address, uint64_t pc, uint64_t size, uint8_t rw)
{
    if ((rw & WIRE_LOAD) != 0)
        put(r, address, pc, size, TRACE_LOAD);
    if ((rw & WIRE_STORE) != 0)
        put(r, address, pc, size, TRACE_STORE);
}

/* Five words from the slot on: rcx, rsi, rdi before the instruction; rcx and a pointer after it. */
static void put_rep(struct references *r, const struct record *record, const struct wire_ref *ref,
                    uint64_t pc)
{
    if (ref->slot == 0 || ref->elem_bytes == 0)
        return;
    const uint64_t *words = &record->words[ref->slot];
    int reads = (ref->flags & WIRE_REP_SRC) != 0, touches = (ref->flags & WIRE_REP_DST) != 0;
    uint64_t source = words[1] + ((ref->flags & WIRE_FS) != 0 ? record->fs_base : 0), target = words[2];
    uint64_t elements = words[0] - words[3], moved = words[4] - (touches ? words[2] : words[1]);
    uint64_t step = (int64_t)moved < 0 ? -(uint64_t)ref->elem_bytes : ref->elem_bytes;
    if (elements > REP_MAX_ELEMENTS || moved != elements * step)
        return;
    uint8_t target_rw = (ref->flags & WIRE_REP_DST_RD) != 0 ? TRACE_LOAD : TRACE_STORE;
    for (; elements > 0 && r->status >= 0; elements--, source += step, target += step) {
        if (reads)
            put(r, source, pc, ref->elem_bytes, TRACE_LOAD);
        if (touches)
            put(r, target, pc, ref->elem_bytes, target_rw);
    }
}

static void put_gather(struct references *r, const struct record *record, const struct wire_ref *ref,
                       uint64_t address, uint64_t pc)
{
    if ((ref->index_bytes != 4 && ref->index_bytes != 8) || ref->elem_bytes == 0)
        return;
    const uint8_t *indices = (const uint8_t *)&record->words[ref->slot3];
    uint64_t capacity = (uint64_t)(record->have - ref->slot3) * 8 / ref->index_bytes;
    uint64_t mask = record->words[ref->slot2];
    unsigned elements = (unsigned)ref->size / ref->elem_bytes;
    if (elements < 64) /* the mask register has more bits than the instruction has elements */
        mask &= (UINT64_C(1) << elements) - 1;
    for (; mask != 0; mask &= mask - 1) {
        unsigned i = (unsigned)__builtin_ctzll(mask);
        int32_t narrow;
        int64_t index;
        if (i >= capacity)
            return;
        if (ref->index_bytes == 4) {
            memcpy(&narrow, indices + 4 * i, sizeof(narrow));
            index = narrow;
        } else {
            memcpy(&index, indices + 8 * i, sizeof(index));
        }
        put_both(r, address + (uint64_t)index * ref->scale, pc, ref->elem_bytes, ref->rw);
    }
}

/* MASKED and PACKED: the part of the operand that the mask selects. */
static void put_masked(struct references *r, const struct record *record, const struct wire_ref *ref,
                       uint64_t address, uint64_t pc)
{
    if (ref->elem_bytes == 0)
        return;
    uint64_t mask = record->words[ref->slot2];
    unsigned elements = (unsigned)ref->size / ref->elem_bytes; /* 0: all bits of the mask are used */
    if (elements != 0 && elements < 64)
        mask &= (UINT64_C(1) << elements) - 1;
    if (mask == 0)
        return;
    if (ref->kind == WIRE_REF_PACKED) {
        put_both(r, address, pc, (uint64_t)__builtin_popcountll(mask) * ref->elem_bytes, ref->rw);
        return;
    }
    unsigned first = (unsigned)__builtin_ctzll(mask), last = 63u - (unsigned)__builtin_clzll(mask);
    put_both(r, address + (uint64_t)first * ref->elem_bytes, pc,
             (uint64_t)(last - first + 1) * ref->elem_bytes, ref->rw);
}

/* Whether all words that the reference needs exist. */
static int is_there(const struct wire_ref *ref, uint32_t have)
{
    return ref->slot < have && (ref->kind != WIRE_REF_REP || ref->slot + 4u < have) &&
           (ref->kind <= WIRE_REF_REP || ref->slot2 < have) &&
           (ref->kind != WIRE_REF_GATHER || ref->slot3 < have);
}

/* Decodes the references of the record's instructions below `insns`. */
static void put_record(struct references *r, const struct record *record, uint32_t insns)
{
    const struct block *b = record->block;
    for (uint32_t i = 0; i < b->nrefs; i++) {
        const struct wire_ref *ref = &b->refs[i];
        if (ref->insn >= insns)
            continue;
        if (!is_there(ref, record->have))
            return; /* words are in the order of the references: the following ones do not exist either */
        uint64_t pc = b->pc + ref->pc_offset;
        uint64_t address = (uint64_t)ref->disp + (ref->slot != 0 ? record->words[ref->slot] : 0) +
                           ((ref->flags & WIRE_FS) != 0 ? record->fs_base : 0);
        switch (ref->kind) {
        case WIRE_REF_PLAIN:
            if (ref->size != 0)
                put_both(r, address, pc, ref->size, ref->rw);
            break;
        case WIRE_REF_REP:
            put_rep(r, record, ref, pc);
            break;
        case WIRE_REF_GATHER:
            put_gather(r, record, ref, address, pc);
            break;
        case WIRE_REF_MASKED:
        case WIRE_REF_PACKED:
            put_masked(r, record, ref, address, pc);
            break;
        default:
            break;
        }
    }
}

int references_decode(struct references *r, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                      references_sink *sink, void *ctx, uint64_t *instructions)
{
    r->sink = sink;
    r->ctx = ctx;
    r->status = 0;
    r->used = 0;
    for (uint64_t at = 0; at < n && r->status >= 0;) {
        uint64_t header = __atomic_load_n(&words[at], __ATOMIC_RELAXED);
        uint64_t id = header & WIRE_ID_MASK, nwords = header >> WIRE_ID_BITS;
        if (id == 0 || id >= WIRE_MAX_BLOCKS || nwords == 0)
            break; /* where the next record starts is unknown */
        struct block *b = r->blocks[id];
        if (b == NULL && (b = copy_block(r, (uint32_t)id)) == NULL)
            return -ENOMEM;
        if (b->nwords != nwords && b->nwords != 0)
            break;
        int is_last = nwords >= n - at;
        struct record record = {.block = b,
                                .words = &words[at],
                                .have = (uint32_t)(is_last ? n - at : nwords),
                                .fs_base = desc->fs_base};
        uint32_t insns = is_last && desc->last_insns < b->ninsns ? desc->last_insns : b->ninsns;
        *instructions += insns;
        put_record(r, &record, is_last ? desc->last_insns : UINT32_MAX);
        at += record.have;
    }
    flush(r);
    return r->status < 0 ? r->status : 0;
}
