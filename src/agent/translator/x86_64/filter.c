/* SPDX-License-Identifier: Apache-2.0 */
/* See filter.h. */
#include "agent/translator/x86_64/filter.h"
#include "agent/sys/session.h"

/* Most touches of a block: about 45 bytes of code each, within BLOCK_CODE_MAX. */
#define TOUCHES_MOST 96u
/* The stack pointer is a multiple of this (System V ABI), unless a program sets it to something odd: then
 * touches of a second line are missed. */
#define STACK_UNIT 8

/* base + index * scale, as it is before instruction `insn`. */
struct base {
    int base, index, scale;
    unsigned insn;
    int is_fs;
};

struct touch {
    struct base of;
    int64_t disp;
    uint16_t group; /* the high bits of its word (wire.h) */
};

/* Bytes [low, high] of a group, relative to its base. */
struct range {
    int64_t low, high;
};

/* Work space of the translator, used under the lock. */
static struct touch touches[TOUCHES_MOST];
static unsigned ntouches, ngroups;
static struct base bases[BLOCK_WORDS]; /* by slot */
static uint8_t unused[1024];           /* receives the recording code, which is not used */

static int add_touch(const struct base *of, int64_t disp, unsigned group)
{
    if (ntouches == TOUCHES_MOST || disp != (int32_t)disp)
        return 0;
    touches[ntouches++] = (struct touch){*of, disp, (uint16_t)group};
    return 1;
}

static int is_stack(const struct base *b)
{
    return b->base == RSP && b->index < 0 && !b->is_fs;
}

/* The ranges of the references with that slot and flag, by ascending low end, overlapping ones merged.
 * Returns their number. */
static unsigned find_ranges(const struct template *t, unsigned slot, int is_fs, const struct base *of,
                            struct range *ranges)
{
    unsigned n = 0;
    for (unsigned i = 0; i < t->nrefs; i++) {
        const struct wire_ref *r = &t->refs[i];
        if (r->slot != slot || (r->flags & WIRE_FS) != (is_fs ? WIRE_FS : 0))
            continue;
        struct range add = {r->disp, r->disp + r->size - 1};
        if (is_stack(of)) {
            add.low &= -STACK_UNIT;
            add.high &= -STACK_UNIT;
        }
        unsigned at = n++;
        for (; at > 0 && ranges[at - 1].low > add.low; at--)
            ranges[at] = ranges[at - 1];
        ranges[at] = add;
    }
    return n;
}

/* Makes the references with that slot and flag the next group, if one of them may touch two lines. Returns
 * its number, or 0. low: the first touch. */
static unsigned make_group(struct template *t, unsigned slot, int is_fs, const struct base *of, int64_t low)
{
    unsigned group = ngroups + 1, may_touch_two = 0;
    if (is_stack(of) || group > WIRE_FILTER_GROUPS)
        return 0;
    for (unsigned i = 0; i < t->nrefs; i++) {
        struct wire_ref *r = &t->refs[i];
        if (r->slot != slot || (r->flags & WIRE_FS) != (is_fs ? WIRE_FS : 0))
            continue;
        r->slot2 = (uint8_t)group;
        r->disp -= low;
        may_touch_two |= r->size > 1;
    }
    if (!may_touch_two)
        return 0;
    ngroups = group;
    return group;
}

/* Touches that reach every line of the ranges. 0: there are too many. */
static int cover(const struct base *of, const struct range *ranges, unsigned n, unsigned group)
{
    int64_t line = session->line_bytes, last = ranges[0].low, highest = last;
    if (!add_touch(of, last, group))
        return 0;
    for (unsigned i = 0; i < n; i++) {
        if (ranges[i].low > last + line) {
            if (highest > last && !add_touch(of, highest, 0))
                return 0;
            last = highest;
            if (ranges[i].low > last + line) {
                last = highest = ranges[i].low;
                if (!add_touch(of, last, 0))
                    return 0;
            }
        }
        while (ranges[i].high > last + line) {
            /* The byte a line after `last` is in the range, since that begins before it. */
            last += line;
            if (!add_touch(of, last, 0))
                return 0;
        }
        if (ranges[i].high > highest)
            highest = ranges[i].high;
        if (highest < last)
            highest = last;
    }
    return highest == last || add_touch(of, highest, 0);
}

static int plan_group(struct template *t, unsigned slot, int is_fs)
{
    struct range ranges[BLOCK_REFS + 32];
    struct base of = bases[slot];
    of.is_fs = is_fs;
    unsigned n = find_ranges(t, slot, is_fs, &of, ranges);
    return n == 0 || cover(&of, ranges, n, make_group(t, slot, is_fs, &of, ranges[0].low));
}

/* References at a constant address make the touches of that address, before their own instruction. */
static int plan_constant(const struct wire_ref *r)
{
    const struct base of = {NO_REG, NO_REG, 0, r->insn, (r->flags & WIRE_FS) != 0};
    uint64_t line = session->line_bytes, first = (uint64_t)r->disp, last = first + r->size - 1;
    for (uint64_t at = first; at / line <= last / line; at = (at / line + 1) * line) {
        if (ntouches == TOUCHES_MOST)
            return 0;
        touches[ntouches++] = (struct touch){of, (int64_t)at, 0};
    }
    return 1;
}

/* Notes of which registers the words from slot `first` on are made. 0: of others than one base and index. */
static int note_bases(const struct template *t, int first, unsigned insn)
{
    for (int slot = first; slot < t->slots; slot++) {
        unsigned i = 0;
        while (i < t->nknown && t->known[i].slot != slot)
            i++;
        if (i == t->nknown)
            return 0;
        bases[slot] = (struct base){t->known[i].base, t->known[i].index, t->known[i].scale, insn, 0};
    }
    return 1;
}

int filter_plan(struct template *t, const struct insn *insns, unsigned n, uint64_t pc)
{
    struct emitter nowhere = {unused};
    ntouches = ngroups = 0;
    template_init(t, &nowhere, NO_REG + 1, NO_REG + 1);
    for (unsigned i = 0; i < n; i++) {
        int slots = t->slots;
        nowhere.at = unused;
        if (!insn_is_native(&insns[i]))
            template_record(t, &insns[i], i, (uint32_t)(insns[i].pc - pc));
        if (t->special || template_full(t) || !note_bases(t, slots, i))
            return 0;
        template_follow(t, &insns[i]);
    }
    for (unsigned i = 0; i < t->nrefs; i++)
        if (t->refs[i].slot == 0 && !plan_constant(&t->refs[i]))
            return 0;
    for (unsigned slot = 1; slot < (unsigned)t->slots; slot++)
        if (!plan_group(t, slot, 0) || !plan_group(t, slot, 1))
            return 0;
    for (unsigned i = 0; i < t->nrefs; i++)
        t->refs[i].slot = 0;
    t->slots = 1;
    return 1;
}

static int passes(uint64_t address)
{
    uint32_t class = (uint32_t)(address >> __builtin_ctz(session->line_bytes));
    __asm__("crc32l %1, %0" : "+r"(class) : "r"(UINT32_C(0)));
    return session->filter[class % WIRE_FILTER_CLASSES] != 0;
}

static void emit_address_of(struct emitter *e, const struct touch *touch, int to)
{
    const struct base *b = &touch->of;
    int32_t disp = (int32_t)touch->disp;
    if (!b->is_fs) {
        emit_address(e, 0x8d, to, b->base, b->index, b->index < 0 ? 1 : b->scale, disp, 0);
        return;
    }
    emit_gs_load(e, to, T_FS_BASE);
    if (b->index >= 0)
        emit_address(e, 0x8d, to, to, b->index, b->scale, 0, 0);
    if (b->base >= 0)
        emit_address(e, 0x8d, to, to, b->base, 1, disp, 0);
    else
        emit_lea(e, to, to, disp);
}

/* The class of the line of the address in `reg`, and from it what the filter has for it; both in `reg`. */
static void emit_filter(struct emitter *e, int reg)
{
    unsigned high = (unsigned)reg >> 3, low = (unsigned)reg & 7;
    const uint8_t code[] = {
        /* rorx reg, reg, line_shift */
        0xc4, (uint8_t)((high ? 0u : 0x80u) | 0x40u | (high ? 0u : 0x20u) | 3u), 0xfb, 0xf0,
        (uint8_t)(0xc0u | low << 3 | low), (uint8_t)__builtin_ctz(session->line_bytes),
        /* crc32 reg32, dword gs:[T_ZERO] */
        0x65, 0xf2, (uint8_t)(0x40u | high << 2), 0x0f, 0x38, 0xf1, (uint8_t)(0x04u | low << 3), 0x25,
        (uint8_t)T_ZERO, (uint8_t)(T_ZERO >> 8), 0, 0,
        /* movzx reg32, reg8 */
        (uint8_t)(0x40u | high << 2 | high), 0x0f, 0xb6, (uint8_t)(0xc0u | low << 3 | low)};
    emit_bytes(e, code, sizeof code);
    /* movzx reg, byte gs:[reg + T_FILTER] */
    emit_byte(e, 0x65);
    emit_byte(e, 0x48u | high << 2 | high);
    emit_byte(e, 0x0f);
    emit_byte(e, 0xb6);
    emit_modrm(e, reg, reg, T_FILTER);
}

void filter_emit(struct emitter *e, unsigned i, int scratch, int cursor)
{
    for (const struct touch *touch = touches; touch < touches + ntouches; touch++) {
        const struct base *b = &touch->of;
        if (b->insn != i)
            continue;
        int is_constant = b->base < 0 && b->index < 0 && !b->is_fs;
        if (is_constant && !passes((uint64_t)touch->disp))
            continue;
        if (is_constant)
            emit_move_imm(e, scratch, (uint64_t)touch->disp);
        else
            emit_address_of(e, touch, scratch);
        emit_store(e, cursor, 0, scratch);
        if (touch->group) { /* mov word [cursor + 6], group */
            emit_byte(e, 0x66);
            emit_byte(e, 0x40u | (unsigned)cursor >> 3);
            emit_byte(e, 0xc7);
            emit_modrm(e, 0, cursor, 6);
            emit_byte(e, touch->group);
            emit_byte(e, 0);
        }
        if (is_constant) {
            emit_lea(e, cursor, cursor, WIRE_FILTER_PASSES);
        } else {
            emit_filter(e, scratch);
            emit_address(e, 0x8d, cursor, cursor, scratch, 1, 0, 0);
        }
    }
}
