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

/* For each thread, by its index: where the target continues after the call, and whether the call is in
 * progress. */
struct call_slot {
    uint64_t return_pc;
    uint64_t in_progress;
};
extern struct call_slot call_slots[CALL_SLOTS] HIDDEN;
extern const char call_through[] HIDDEN, call_through_end[] HIDDEN; /* CALL_THROUGH_BYTES each */
extern const char call_then_fault[] HIDDEN, call_then_fault_after[] HIDDEN;

#endif /* __ASSEMBLER__ */
#endif
