/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_X86_64_DISPATCH_H
#define CACHEGRAM_X86_64_DISPATCH_H

#include <stdint.h>
#include "agent/sys/session.h"
#include "agent/thread.h"

extern const char dispatch_entry[] HIDDEN;
extern const char gate_begin[] HIDDEN, gate_call[] HIDDEN, gate_after[] HIDDEN, gate_end[] HIDDEN;
HIDDEN uint64_t dispatch_c(struct thread *t, uint64_t *regs);

#endif
