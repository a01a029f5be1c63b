/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_X86_64_DISPATCH_H
#define CACHEGRAM_X86_64_DISPATCH_H

#include <stdint.h>
#include "agent/agent.h"

extern const char dispatch_entry[] HIDDEN;
extern const char stub_begin[] HIDDEN, stub_call[] HIDDEN, stub_after[] HIDDEN, stub_end[] HIDDEN;
HIDDEN uint64_t dispatch_c(struct thread *t, uint64_t *regs);

#endif
