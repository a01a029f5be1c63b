/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_X86_64_DISPATCH_H
#define CACHEGRAM_X86_64_DISPATCH_H

#include <stdint.h>
#include "agent/agent.h"

extern const char dispatch_entry[] HIDDEN;
extern const char gate_begin[] HIDDEN, gate_call[] HIDDEN, gate_after[] HIDDEN, gate_end[] HIDDEN;
/* Of each thread, by its index: where the target goes on behind the call, and whether that lasts. */
struct call_slot {
    uint64_t go_on;
    uint64_t lasts;
};
extern struct call_slot call_slots[CALL_SLOTS] HIDDEN;
extern const char call_through[] HIDDEN, call_through_end[] HIDDEN; /* CALL_THROUGH_BYTES each */
extern const char call_and_back[] HIDDEN, call_and_back_after[] HIDDEN;
HIDDEN uint64_t dispatch_c(struct thread *t, uint64_t *regs);

#endif
