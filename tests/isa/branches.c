/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pieces.h"

/* An opcode and the room for its displacement; land() it. */
static size_t jump(struct generator *g, unsigned short_form, unsigned near_map, unsigned near_form,
                   size_t *bytes)
{
    *bytes = chance(g, 60) && short_form ? 1 : 4;
    if (chance(g, 10))
        byte(g, chance(g, 50) ? 0x2e : 0x3e); /* branch hints */
    if (*bytes == 1) {
        byte(g, short_form);
    } else {
        if (near_map)
            byte(g, near_map);
        byte(g, near_form);
    }
    g->at += *bytes;
    return g->at - *bytes;
}

void conditional(struct generator *g)
{
    unsigned c = pick(g, 16);
    size_t bytes, place = jump(g, 0x70 | c, 0x0f, 0x80 | c, &bytes);
    struct generator before = *g;
    some(g, 1 + pick(g, 3));
    if (bytes == 1 && g->at - place - 1 > 127) { /* three of the longest do fit */
        fprintf(stderr, "isa_generate: a short jump is too long\n");
        exit(1);
    }
    if (chance(g, 25)) { /* if, else */
        size_t bytes2, place2 = jump(g, 0xeb, 0, 0xe9, &bytes2);
        land(g, place, bytes);
        struct generator first = *g;
        memcpy(g->holds, before.holds, sizeof g->holds);
        g->indices = before.indices;
        some(g, 1 + pick(g, 2));
        land(g, place2, bytes2);
        merge(g, &first);
        return;
    }
    land(g, place, bytes);
    merge(g, &before);
}

/* jmp over bytes that are never executed */
void over_junk(struct generator *g)
{
    size_t bytes, place = jump(g, 0xeb, 0, 0xe9, &bytes);
    for (unsigned n = pick(g, 24); n; n--)
        byte(g, pick(g, 256));
    land(g, place, bytes);
}

/* jrcxz, jecxz, loop and its relatives, forward */
void on_count(struct generator *g)
{
    static const uint8_t opcodes[] = {0xe0, 0xe1, 0xe2, 0xe3};
    unsigned op = opcodes[pick(g, 4)];
    if (op != 0xe3 && g->keep >> RCX & 1)
        op = 0xe3;
    if (chance(g, 30))
        byte(g, 0x67);
    byte(g, op);
    size_t place = g->at++;
    if (op != 0xe3)
        g->holds[RCX] = HOLDS_ANY;
    struct generator before = *g;
    some(g, 1 + pick(g, 3));
    land(g, place, 1);
    merge(g, &before);
}

/* Runs a stretch several times; the later rounds enter in the middle of what the first one ran. */
void counted_loop(struct generator *g)
{
    unsigned before = g->keep, r = chance(g, 60) && !(g->keep >> RCX & 1) ? (unsigned)RCX : scratch(g);
    set_small(g, r, 1 + pick(g, 4));
    g->keep |= 1u << r;
    struct generator start = *g;
    if (chance(g, 60))
        some(g, 1 + pick(g, 2));
    size_t top = g->at;
    /* What the second round finds may be less than what the first did. */
    some(g, 1 + pick(g, 3));
    if (r == RCX && g->at - top < 120 && chance(g, 70)) {
        static const uint8_t opcodes[] = {0xe0, 0xe1, 0xe2, 0xe2};
        byte(g, opcodes[pick(g, 4)]);
        byte(g, (unsigned)(top - (g->at + 1)));
    } else {
        PUT(g, (uint8_t)(0x48 | r >> 3), 0xff, (uint8_t)(0xc8 | (r & 7))); /* dec r */
        if (g->at - top < 120) {
            byte(g, 0x75);
            byte(g, (unsigned)(top - (g->at + 1)));
        } else {
            byte(g, 0x0f);
            byte(g, 0x85);
            raw32(g, (int64_t)top - (int64_t)(g->at + 4));
        }
    }
    merge(g, &start);
    g->keep = before;
    g->holds[r] = HOLDS_SMALL;
}

/* lea r, [rip + where], to be filled in by land() */
static size_t take_address(struct generator *g, unsigned r)
{
    PUT(g, (uint8_t)(0x48 | r >> 3 << 2), 0x8d, (uint8_t)((r & 7) << 3 | 5), 0, 0, 0, 0);
    g->holds[r] = HOLDS_ANY;
    return g->at - 4;
}

/* A function after the call, jumped over; called by displacement, through a register, or through memory. */
void call(struct generator *g)
{
    unsigned how = pick(g, 4), r = scratch(g), arguments = pick(g, 3);
    size_t place, bytes, over, literal = 0;
    for (unsigned i = 0; i < arguments; i++)
        push(g, pick(g, 16));
    switch (how) {
    case 0:
        place = g->at + 1;
        byte(g, 0xe8);
        raw32(g, 0);
        break;
    case 1:
        place = take_address(g, r);
        byte(g, 0x40 | r >> 3);
        byte(g, 0xff);
        byte(g, 0xd0 | (r & 7));
        break;
    case 2: /* call [rip + literal] */
        byte(g, 0xff);
        byte(g, 0x15);
        literal = g->at;
        raw32(g, 0);
        place = 0;
        break;
    default: /* call [rsp] */
        place = take_address(g, r);
        push(g, r);
        byte(g, 0xff);
        byte(g, 0x14);
        byte(g, 0x24);
        arguments++;
        break;
    }
    over = jump(g, 0, 0, 0xe9, &bytes);
    if (literal) {
        land(g, literal, 4);
        uint64_t target = here(g) + 8;
        memcpy(g->code + g->at, &target, 8);
        g->at += 8;
    } else {
        land(g, place, 4);
        if (how) /* no address of code may stay where it could be jumped to again, for ever */
            set_small(g, r, pick(g, 32));
    }
    some(g, 1 + pick(g, 3));
    if (chance(g, 20))
        byte(g, 0xf3); /* as compilers pad a return */
    if (arguments && chance(g, 60)) {
        byte(g, 0xc2);
        byte(g, 8 * arguments);
        byte(g, 0);
        arguments = 0;
    } else {
        byte(g, 0xc3);
    }
    land(g, over, bytes);
    for (; arguments; arguments--)
        pop(g, scratch(g));
}

/* jmp r; jmp [rip + literal]; jmp [r + small * 8] through a table; push r, ret */
void indirect_jump(struct generator *g)
{
    unsigned r = scratch(g);
    size_t place;
    switch (pick(g, 4)) {
    case 0:
        place = take_address(g, r);
        byte(g, 0x40 | r >> 3);
        byte(g, 0xff);
        byte(g, 0xe0 | (r & 7));
        break;
    case 1:
        byte(g, 0xff);
        byte(g, 0x25);
        raw32(g, 0);
        {
            uint64_t target = here(g) + 8;
            memcpy(g->code + g->at, &target, 8);
            g->at += 8;
        }
        return;
    case 2: {
        unsigned i = scratch(g), n = pick(g, 4);
        if (i == r)
            return;
        set_small(g, i, n);
        place = take_address(g, r);
        byte(g, 0x40 | (i >> 3) << 1 | r >> 3);
        byte(g, 0xff);
        byte(g, 0x64);
        byte(g, 0xc0 | (i & 7) << 3 | (r & 7)); /* [r + i * 8 + disp8] */
        byte(g, 0);
        size_t disp = g->at - 1;
        for (unsigned junk = pick(g, 8); junk; junk--)
            byte(g, 0xcc);
        g->code[disp] = (uint8_t)(g->at - (place + 4)); /* r is the address after lea */
        int32_t zero = 0;
        memcpy(g->code + place, &zero, 4);
        uint64_t target = here(g) + 8u * 4;
        for (unsigned k = 0; k < 4; k++) {
            uint64_t other = k == n ? target : target + 1;
            memcpy(g->code + g->at, &other, 8);
            g->at += 8;
        }
        set_small(g, r, pick(g, 32));
        return;
    }
    default:
        place = take_address(g, r);
        push(g, r);
        byte(g, 0xc3);
        break;
    }
    for (unsigned junk = pick(g, 8); junk; junk--)
        byte(g, pick(g, 256));
    land(g, place, 4);
    set_small(g, r, pick(g, 32));
}
