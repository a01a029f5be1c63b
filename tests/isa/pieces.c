/* SPDX-License-Identifier: Apache-2.0 */
#include "pieces.h"
#include <string.h>

void byte(struct generator *g, unsigned b)
{
    g->code[g->at++] = (uint8_t)b;
}
void raw32(struct generator *g, int64_t v)
{
    int32_t narrow = (int32_t)v;
    memcpy(g->code + g->at, &narrow, 4);
    g->at += 4;
}

void land(struct generator *g, size_t place, size_t bytes)
{
    int32_t disp = (int32_t)(g->at - (place + bytes));
    memcpy(g->code + place, &disp, bytes);
}

void some(struct generator *g, unsigned n)
{
    while (n--)
        instruction(g);
}

void merge(struct generator *g, const struct generator *other)
{
    for (unsigned i = 0; i < 16; i++)
        if (g->holds[i] != other->holds[i])
            g->holds[i] = HOLDS_ANY;
    g->indices &= other->indices;
}

unsigned scratch(struct generator *g)
{
    for (;;) {
        unsigned r = pick(g, 16);
        if (r != RSP && !(g->keep >> r & 1))
            return r;
    }
}

void set_small(struct generator *g, unsigned r, unsigned value)
{
    uint8_t mov[] = {(uint8_t)(0x40 | r >> 3), (uint8_t)(0xb8 | (r & 7)), (uint8_t)value, 0, 0, 0};
    if (r < 8 && chance(g, 80))
        put(g, mov + 1, 5);
    else
        put(g, mov, 6);
    g->holds[r] = HOLDS_SMALL;
}

void set_pointer(struct generator *g, unsigned r)
{
    uint64_t target = arena(g) + ISA_DATA + ISA_DATA_BYTES / 4 + pick(g, ISA_DATA_BYTES / 2) / 64 * 64;
    uint8_t b[10] = {(uint8_t)(0x48 | r >> 3), (uint8_t)(0xb8 | (r & 7))};
    switch (pick(g, 3)) {
    case 0: /* lea r, [rip + disp] */
        b[0] = (uint8_t)(0x48 | r >> 3 << 2);
        b[1] = 0x8d;
        b[2] = (uint8_t)((r & 7) << 3 | 5);
        put(g, b, 7);
        g->at -= 4;
        raw32(g, (int64_t)(target - here(g) - 4));
        break;
    case 1: /* mov r, [rip + a pointer among the constants] */
        b[0] = (uint8_t)(0x48 | r >> 3 << 2);
        b[1] = 0x8b;
        b[2] = (uint8_t)((r & 7) << 3 | 5);
        put(g, b, 7);
        g->at -= 4;
        raw32(g, (int64_t)(arena(g) + ISA_CONST + pick(g, 64) * 8u - here(g) - 4));
        break;
    default: /* mov r, imm64 */
        memcpy(b + 2, &target, 8);
        put(g, b, 10);
    }
    g->holds[r] = HOLDS_POINTER;
}

void push(struct generator *g, unsigned r)
{
    uint8_t b[] = {(uint8_t)(0x40 | r >> 3), (uint8_t)(0x50 | (r & 7))};
    if (r < 8)
        put(g, b + 1, 1);
    else
        put(g, b, 2);
}

void pop(struct generator *g, unsigned r)
{
    uint8_t b[] = {(uint8_t)(0x40 | r >> 3), (uint8_t)(0x58 | (r & 7))};
    if (r < 8)
        put(g, b + 1, 1);
    else
        put(g, b, 2);
}

/* Flags of any kind, but none that traps, checks alignment, or is not a program's to change. */
static void flags(struct generator *g)
{
    PUT(g, 0x9c);                                                                       /* pushfq */
    PUT(g, 0x81, 0x34, 0x24, (uint8_t)pick(g, 256), chance(g, 30) ? 0x0c : 0x08, 0, 0); /* xor */
    PUT(g, 0x81, 0x24, 0x24, 0xd7, (uint8_t)(chance(g, 50) ? 0x0e : 0x0a), 0x20, 0); /* and dword [rsp], .. */
    if (chance(g, 10))
        byte(g, 0x66); /* popf */
    else if (chance(g, 10))
        byte(g, 0x48);
    byte(g, 0x9d);
    if (g->code[g->at - 2] == 0x66)
        PUT(g, 0x48, 0x8d, 0x64, 0x24, 0x06); /* lea rsp, [rsp + 6] */
}

/* A string instruction with all it needs. */
static void string(struct generator *g)
{
    static const uint8_t opcodes[] = {0xa4, 0xa5, 0xa6, 0xa7, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf};
    if (g->keep & (1u << RSI | 1u << RDI | 1u << RCX))
        return;
    if (g->holds[RSI] != HOLDS_POINTER)
        set_pointer(g, RSI);
    if (g->holds[RDI] != HOLDS_POINTER)
        set_pointer(g, RDI);
    set_small(g, RCX, chance(g, 15) ? 0 : pick(g, 25));
    if (chance(g, 30))
        byte(g, chance(g, 50) ? 0xfc : 0xfd);
    if (chance(g, 30)) { /* so that comparing goes on for a while: mov rsi, rdi; or eax of zeros */
        PUT(g, 0x48, 0x89, 0xfe);
    }
    uint8_t b[6];
    unsigned n = 0;
    if (chance(g, 10))
        b[n++] = 0x66;
    if (chance(g, 80))
        b[n++] = chance(g, 50) ? 0xf3 : 0xf2;
    if (chance(g, 5) && g->base == ISA_BASE_LOW)
        b[n++] = 0x67;
    if (chance(g, 40))
        b[n++] = (uint8_t)(0x40 | pick(g, 16));
    b[n++] = opcodes[pick(g, sizeof opcodes)];
    put(g, b, n);
}

static void frame(struct generator *g)
{
    if (g->keep >> RBP & 1)
        return;
    unsigned before = g->keep;
    PUT(g, 0xc8, (uint8_t)(pick(g, 8) * 8), 0, (uint8_t)(chance(g, 70) ? 0 : pick(g, 4))); /* enter */
    g->holds[RBP] = HOLDS_POINTER;
    g->keep |= 1u << RBP;
    some(g, 1 + pick(g, 4));
    g->keep = before;
    PUT(g, 0xc9);
    g->holds[RBP] = HOLDS_ANY;
}

static void stack_room(struct generator *g)
{
    uint8_t n = (uint8_t)(8 * (1 + pick(g, 8)));
    PUT(g, 0x48, 0x83, 0xec, n); /* sub rsp, n */
    some(g, pick(g, 3));
    if (chance(g, 50))
        PUT(g, 0x48, 0x83, 0xc4, n); /* add rsp, n */
    else
        PUT(g, 0x48, 0x8d, 0x64, 0x24, n); /* lea rsp, [rsp + n] */
}

/* System calls without results of their own: sched_yield, and one that there is not. */
static void system_call(struct generator *g)
{
    if (g->keep & (1u << RAX | 1u << RCX | 1u << 11))
        return;
    if (chance(g, 30))
        PUT(g, 0xb8, 24, 0, 0, 0);
    else
        PUT(g, 0xb8, 0xff, 0xff, 0, 0);
    byte(g, 0x0f);
    byte(g, 0x05);
    g->holds[RCX] = g->holds[11] = g->holds[RAX] = HOLDS_ANY;
}

/* What ends a sequence early, on purpose. */
static void fault(struct generator *g)
{
    static const uint8_t traps[][3] = {{1, 0xcc}, {2, 0x0f, 0x0b}, {1, 0xf4}, {2, 0xcd, 0x80 + 1}, {1, 0xfa}};
    unsigned i = pick(g, 5);
    int r = register_with(g, chance(g, 50) ? HOLDS_POINTER : HOLDS_SMALL);
    if (r >= 0 && chance(g, 50)) {
        byte(g, 0x40u | (unsigned)r >> 3); /* jump to where there is no code */
        byte(g, 0xff);
        byte(g, 0xe0u | ((unsigned)r & 7));
        return;
    }
    for (unsigned k = 1; k <= traps[i][0]; k++)
        byte(g, traps[i][k]);
}

void piece(struct generator *g)
{
    unsigned pointers = 0, smalls = 0, n = pick(g, 1000);
    for (unsigned i = 0; i < 16; i++) {
        pointers += g->holds[i] == HOLDS_POINTER;
        smalls += g->holds[i] == HOLDS_SMALL;
    }
    if (pointers < 4)
        set_pointer(g, scratch(g));
    if (smalls < 2)
        set_small(g, scratch(g), pick(g, 32));
    if (n < 700)
        instruction(g);
    else if (n < 760)
        conditional(g);
    else if (n < 780)
        over_junk(g);
    else if (n < 800)
        on_count(g);
    else if (n < 840)
        counted_loop(g);
    else if (n < 870)
        call(g);
    else if (n < 895)
        indirect_jump(g);
    else if (n < 910)
        flags(g);
    else if (n < 945)
        string(g);
    else if (n < 955)
        frame(g);
    else if (n < 965)
        stack_room(g);
    else if (n < 980)
        push(g, pick(g, 16));
    else if (n < 992)
        pop(g, scratch(g));
    else if (n < 997)
        system_call(g);
    else
        fault(g);
}
