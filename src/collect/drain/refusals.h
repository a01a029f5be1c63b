/* SPDX-License-Identifier: Apache-2.0 */
/* refusals.h - burst mode: why there are no bursts, or hardly any. */
#ifndef CACHEGRAM_COLLECT_REFUSALS_H
#define CACHEGRAM_COLLECT_REFUSALS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "wire/wire.h"

/* Of the processes that have ended: triggers, and those that no burst came of, by reason. */
struct refusals {
    uint64_t triggers, buffer, code, busy, gs;
    uint64_t blocked_ns; /* CPU time of processes that were seen with SIGTRAP blocked and had no bursts
                            meanwhile */
};

/* A process' signals, from one look to the next. */
struct blocked {
    uint64_t bursts, cpu_ns; /* when last looked at */
    uint64_t ns;             /* so far, as blocked_ns */
};

void blocked_look(struct blocked *b, const struct wire_proc *proc, pid_t pid);
void refusals_add(struct refusals *r, const struct wire_proc *proc, const struct blocked *b);
/* The reason that explains it, in words; "" if none does. cpu_ns: of the run. */
void refusals_reason(const struct refusals *r, uint64_t cpu_ns, char *text, size_t size);

#endif
