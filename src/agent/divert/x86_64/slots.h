/* SPDX-License-Identifier: Apache-2.0 */
/* slots.h - code and data of each thread's diverted calls (calls.S). Also for the assembler. */
#ifndef CACHEGRAM_X86_64_SLOTS_H
#define CACHEGRAM_X86_64_SLOTS_H

#include "agent/tunables.h"

/* Code of call_through for one thread. */
#define CALL_THROUGH_BYTES 16

#ifndef __ASSEMBLER__
#include <stdint.h>
#include "agent/sys/session.h"

/* Of each thread, by its index: where the target goes on behind the call, and whether that lasts. */
struct call_slot {
    uint64_t go_on;
    uint64_t lasts;
};
extern struct call_slot call_slots[CALL_SLOTS] HIDDEN;
extern const char call_through[] HIDDEN, call_through_end[] HIDDEN; /* CALL_THROUGH_BYTES each */
extern const char call_and_back[] HIDDEN, call_and_back_after[] HIDDEN;

#endif /* __ASSEMBLER__ */
#endif
