/* SPDX-License-Identifier: Apache-2.0 */
/*
 * landings.h - the tables in which indirect branches and returns of counting code find their targets
 * (count.h).
 *
 * One of jumps, one of returns, shared by all threads of the process: each has them at T_JUMPS and T_RETURNS
 * of its own. An address that is not in a table leads to the code at `landings_miss`.
 */
#ifndef CACHEGRAM_X86_64_LANDINGS_H
#define CACHEGRAM_X86_64_LANDINGS_H

#include <stdint.h>
#include "agent/sys/session.h"
#include "agent/thread.h"

extern uint8_t *landings_miss[2] HIDDEN; /* of jumps, of returns: set before anything else */

/* The process has tables. 0, or -1: no memory. The translator's lock is held. */
int landings_make(void);
/* They are where the thread's code looks for them. 0, or -1: no memory. */
int landings_map(struct thread *t);
uint64_t landings_bytes(void); /* that they take */
void landings_forked(void);    /* a forked child leaves its parent's alone */
/* The translator's lock is held, and there are tables. */
void landings_set(uint64_t pc, int is_return, const uint8_t *landing);
/* Likewise, but there may be none. */
void landings_clear(uint64_t pc, int is_return);

#endif
