/* SPDX-License-Identifier: Apache-2.0 */
/*
 * landings.h - the tables in which indirect branches and returns of counting code look up their targets
 * (count.h).
 *
 * There is one of jumps and one of returns, shared by all threads of the process. Each thread maps them at
 * its own T_JUMPS and T_RETURNS. Entries of addresses that are not in a table lead to the code at
 * `landings_miss`.
 *
 * The index is the low bits of an address: few at first, as most processes are small and short, and touching
 * a page costs up to 14 us in some virtual machines. After COUNT_TABLE_COLLISIONS collisions all code becomes
 * stale, and new code uses COUNT_TABLE_BITS. Code from before may still be running. It looks up
 * fewer bits in the same tables, which were cleared, and finds its targets through the dispatcher.
 */
#ifndef CACHEGRAM_X86_64_LANDINGS_H
#define CACHEGRAM_X86_64_LANDINGS_H

#include <stdint.h>
#include "agent/sys/session.h"
#include "agent/thread.h"

extern uint8_t *landings_miss[2] HIDDEN; /* of jumps, of returns; must be set first */

/* Makes the process's tables, if there are none. 0, or -1: no memory. The caller holds the translator's
 * lock. */
int landings_make(void);
/* Maps them where the thread's code looks for them. 0, or -1: no memory. */
int landings_map(struct thread *t);
uint64_t landings_bytes(void);  /* bytes of the tables that are in use */
unsigned landings_bits(void);   /* low bits of an address that are the index in code emitted from now on */
int landings_are_crowded(void); /* there were so many collisions that all code should become stale */
void landings_flushed(void);    /* all code has become stale: the number of bits may grow */
void landings_forked(void);     /* a forked child makes its own tables */
/* The caller holds the translator's lock; the tables exist. */
void landings_set(uint64_t pc, int is_return, const uint8_t *landing);
/* The same, but the tables need not exist. */
void landings_clear(uint64_t pc, int is_return);

#endif
