/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.h - random instructions that are safe to run, and mostly touch memory that is there.
 *
 * For that the generator keeps, for each general register, a guess of what it holds. A wrong guess does no
 * harm: the sequence then ends in a fault, which is compared as well.
 */
#ifndef CACHEGRAM_TESTS_GENERATE_H
#define CACHEGRAM_TESTS_GENERATE_H

#include <Zydis/Zydis.h>
#include <stddef.h>
#include <stdint.h>
#include "isa.h"

enum holds { HOLDS_ANY, HOLDS_POINTER /* somewhere in the middle of the data */, HOLDS_SMALL /* 0 .. 31 */ };
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

struct generator {
    uint64_t random;
    uint64_t base;
    uint8_t *code; /* ISA_CODE_MAX bytes */
    size_t at;
    int bytes;            /* random bytes; else forms as an assembler would write them */
    enum holds holds[16]; /* RSP: always a pointer */
    uint32_t indices;     /* vector registers that still hold small indices */
    unsigned keep;        /* general registers that must not be written */
};

/* 0 .. n-1 */
static inline unsigned pick(struct generator *g, unsigned n)
{
    return (unsigned)((isa_random(&g->random) >> 32) * n >> 32);
}
/* True in `percent` of all cases. */
static inline int chance(struct generator *g, unsigned percent)
{
    return pick(g, 100) < percent;
}
static inline uint64_t arena(const struct generator *g)
{
    return g->base + ISA_ARENA;
}
static inline uint64_t here(const struct generator *g)
{
    return g->base + g->at;
}

/* Decodes; makes the lists of what this processor offers, and of forms to choose from. Call it first. */
void instructions_init(uint64_t seed);
/* Appends one random instruction that does not branch. */
void instruction(struct generator *g);
/* Appends bytes as they are, and takes note of what they do (they must be whole instructions). */
void put(struct generator *g, const void *bytes, size_t n);
/* A random register that holds what is asked for, or -1. */
int register_with(struct generator *g, enum holds what);

#endif
