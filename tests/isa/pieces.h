/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.h - what sequences are made of: single instructions, and short programs around them. */
#ifndef CACHEGRAM_TESTS_PIECES_H
#define CACHEGRAM_TESTS_PIECES_H

#include "generate.h"

/* Appends any piece. */
void piece(struct generator *g);

/* branches.c. All branches go forward, or back a counted number of times. */
void conditional(struct generator *g);
void over_junk(struct generator *g);     /* jmp over bytes that are never executed */
void on_count(struct generator *g);      /* jrcxz, jecxz, loop and its relatives, forward */
void counted_loop(struct generator *g);  /* the later rounds enter in the middle of what the first one ran */
void call(struct generator *g);          /* by displacement, through a register, or through memory */
void indirect_jump(struct generator *g); /* through a register, memory, a table, or by a return */

/* Parts of pieces. Bytes as they are, of which no note is taken: */
void byte(struct generator *g, unsigned b);
void raw32(struct generator *g, int64_t v);
/* The displacement at `place`, of 1 or 4 bytes, from its end, leads here. */
void land(struct generator *g, size_t place, size_t bytes);
/* n random instructions */
void some(struct generator *g, unsigned n);
/* What registers hold where two paths meet. */
void merge(struct generator *g, const struct generator *other);
/* A register that may be overwritten; never RSP. */
unsigned scratch(struct generator *g);
void set_small(struct generator *g, unsigned r, unsigned value);
void set_pointer(struct generator *g, unsigned r);
void push(struct generator *g, unsigned r);
void pop(struct generator *g, unsigned r);
/* Whole instructions, as put() */
#define PUT(g, ...)                             \
    do {                                        \
        const uint8_t bytes_[] = {__VA_ARGS__}; \
        put(g, bytes_, sizeof bytes_);          \
    } while (0)

#endif
