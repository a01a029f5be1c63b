/* SPDX-License-Identifier: Apache-2.0 */
/*
 * touched.c - counts the references in the records of a probe burst, and finds watched lines in them.
 * wire.h explains the records. The collector's decoders do the same for whole bursts (collect/records);
 * tests/unit/test_references.c compares all three.
 */
#include "agent/burst/burst.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/watch/watch.h"

/* The lines to be found, and the result. */
struct search {
    const uint64_t *lines;
    unsigned n;
    uint64_t pc; /* of the current instruction */
    struct touched touched;
};

struct record {
    const struct wire_block *block;
    const uint64_t *words;
    uint32_t have;  /* number of its words that were written */
    uint32_t insns; /* instructions of it that were executed */
    uint64_t fs_base;
};

static uint64_t word(const struct record *r, unsigned slot)
{
    return slot && slot < r->have ? r->words[slot] : 0;
}

static uint64_t address_of(const struct record *r, const struct wire_ref *ref)
{
    return (uint64_t)ref->disp + word(r, ref->slot) + (ref->flags & WIRE_FS ? r->fs_base : 0);
}

static inline void touch(struct search *s, uint64_t address, uint64_t bytes)
{
    uint64_t line = session->line_bytes;
    for (unsigned i = 0; i < s->n; i++)
        if (__builtin_expect(address + bytes - 1 - s->lines[i] < line + bytes - 1, 0)) {
            if (!s->touched.found) {
                s->touched.before = s->touched.refs;
                s->touched.pc = s->pc;
            }
            s->touched.found |= 1ull << i;
        }
}

/* An access that reads and writes is two references. */
static inline void touch_once(struct search *s, const struct wire_ref *ref, uint64_t address, uint64_t bytes)
{
    touch(s, address, bytes);
    s->touched.refs += ref->rw == (WIRE_LOAD | WIRE_STORE) ? 2 : 1;
}

/* All elements, from the pointer in its direction. */
static void touch_elements(struct search *s, uint64_t pointer, uint64_t elements, uint64_t bytes, int down)
{
    uint64_t all = elements * bytes;
    touch(s, down ? pointer + bytes - all : pointer, all);
    s->touched.refs += elements;
}

static void touch_rep(struct search *s, const struct record *r, const struct wire_ref *ref)
{
    if (ref->slot + 4u >= r->have)
        return; /* the instruction did not complete, and now runs natively */
    const uint64_t *w = r->words + ref->slot;
    uint64_t elements = w[0] - w[3], bytes = ref->elem_bytes;
    int down = (int64_t)(w[4] - (ref->flags & WIRE_REP_DST ? w[2] : w[1])) < 0;
    if (!elements)
        return;
    if (ref->flags & WIRE_REP_SRC)
        touch_elements(s, w[1] + (ref->flags & WIRE_FS ? r->fs_base : 0), elements, bytes, down);
    if (ref->flags & WIRE_REP_DST)
        touch_elements(s, w[2], elements, bytes, down);
}

static void touch_gather(struct search *s, const struct record *r, const struct wire_ref *ref)
{
    unsigned elements = ref->elem_bytes ? (unsigned)ref->size / ref->elem_bytes : 0;
    for (unsigned i = 0; i < elements; i++) {
        unsigned at = i * ref->index_bytes;
        uint64_t w = word(r, ref->slot3 + at / 8);
        if (!(word(r, ref->slot2) >> i & 1))
            continue;
        int64_t index = ref->index_bytes == 8 ? (int64_t)w : (int32_t)(w >> at % 8 * 8);
        touch_once(s, ref, address_of(r, ref) + (uint64_t)(index * ref->scale), ref->elem_bytes);
    }
}

static void look(struct search *s, const struct record *r)
{
    for (unsigned i = 0; i < r->block->nrefs; i++) {
        const struct wire_ref *ref = &r->block->refs[i];
        if (ref->insn >= r->insns)
            break;
        s->pc = r->block->pc + ref->pc_offset;
        switch (ref->kind) {
        case WIRE_REF_REP:
            touch_rep(s, r, ref);
            break;
        case WIRE_REF_GATHER:
            touch_gather(s, r, ref);
            break;
        case WIRE_REF_MASKED: /* as if all elements were accessed: may find a line too many */
            if (word(r, ref->slot2))
                touch_once(s, ref, address_of(r, ref), ref->size);
            break;
        default:
            if (ref->slot < r->have)
                touch_once(s, ref, address_of(r, ref), ref->size);
            break;
        }
    }
}

struct touched records_touched(const uint64_t *words, const uint64_t *end, uint32_t last_insns,
                               const uint64_t *lines, unsigned n_lines)
{
    struct search s = {.lines = lines, .n = n_lines};
    uint64_t fs_base = arch_thread_pointer();
    while (words < end) {
        uint32_t id = (uint32_t)*words & WIRE_ID_MASK, n = (uint32_t)*words >> WIRE_ID_BITS;
        int last = words + n >= end;
        if (n == 0 || id == 0 || id >= WIRE_MAX_BLOCKS)
            break;
        struct record r = {.block =
                               (const struct wire_block *)(const void *)(slot + session->template_offset +
                                                                         proc->block_offset[id]),
                           .words = words,
                           .have = last ? (uint32_t)(end - words) : n,
                           .insns = last ? last_insns : UINT32_MAX,
                           .fs_base = fs_base};
        look(&s, &r);
        words += n;
    }
    return s.touched;
}
