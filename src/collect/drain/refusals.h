/* SPDX-License-Identifier: Apache-2.0 */
/* refusals.h - burst mode: why there are no bursts, or few. */
#ifndef CACHEGRAM_COLLECT_REFUSALS_H
#define CACHEGRAM_COLLECT_REFUSALS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "wire/wire.h"

/* Sums over processes that have ended: triggers, and those of them without a burst, by reason. */
struct refusals {
    uint64_t triggers, buffer, code, busy, gs, handlers;
    uint64_t blocked_ns; /* CPU time of threads while they blocked SIGTRAP, without any burst meanwhile */
};

#define BLOCKED_THREADS 16u /* observed in a process; others are ignored */

/* Threads of a process that block SIGTRAP by system calls of their own (libc's functions are intercepted). */
struct blocked {
    uint64_t bursts, cpu_ns; /* at the last look */
    uint64_t ns;             /* so far, as blocked_ns */
    unsigned n;              /* threads that blocked it at the last look, and their CPU time */
    struct blocked_thread {
        pid_t tid;
        uint64_t cpu_ns;
    } thread[BLOCKED_THREADS];
};

/*
 * To be called from time to time. libc blocks all signals for moments (in pthread_create, as a thread ends),
 * and a helper thread may block them while it sleeps. So only the CPU time counts that a thread used between
 * two looks at which it blocked SIGTRAP.
 */
void blocked_look(struct blocked *b, const struct wire_proc *proc, pid_t pid);
void refusals_add(struct refusals *r, const struct wire_proc *proc, const struct blocked *b);
/* The main reason, in words; "" if none explains it. cpu_ns: of the run. */
void refusals_reason(const struct refusals *r, uint64_t cpu_ns, char *text, size_t size);

#endif
