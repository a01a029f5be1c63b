/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_X86_64_DISPATCH_H
#define CACHEGRAM_X86_64_DISPATCH_H

#include <stdint.h>
#include "agent/agent.h"

extern const char dispatch_entry[] HIDDEN;
extern const char gate_begin[] HIDDEN, gate_call[] HIDDEN, gate_after[] HIDDEN, gate_end[] HIDDEN;
extern uint64_t call_return HIDDEN; /* where the target goes on behind one of these */
extern const char call_through[] HIDDEN, call_through_after[] HIDDEN;
extern const char call_and_back[] HIDDEN, call_and_back_after[] HIDDEN;
HIDDEN uint64_t dispatch_c(struct thread *t, uint64_t *regs);

#endif
