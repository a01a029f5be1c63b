/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missed.h - full mode and clock `count-always`: how many of the references are missing, since threads
 * executed natively (agent/burst/native.c), and why.
 */
#ifndef CACHEGRAM_COLLECT_MISSED_H
#define CACHEGRAM_COLLECT_MISSED_H

#include <stddef.h>
#include <stdint.h>
#include "profile/profile.h"
#include "wire/wire.h"

/* From these percentages on, the report mentions it; the recorder warns, and nothing is called exact. */
#define MISSED_STORED_PERCENT 0.1
#define MISSED_WARNED_PERCENT 1.

struct missed {
    uint64_t native_ns[WIRE_NATIVE_COUNT]; /* CPU time of native execution, by reason */
    uint64_t stepped;                      /* instructions that were stepped */
    uint64_t lost_buffers;                 /* of threads that a signal killed with their process */
    uint64_t lost_ns;      /* CPU time in the lost buffers of threads whose process another thread ended */
    uint64_t elsewhere_ns; /* CPU time in programs without the agent */
};

/* A process has ended: adds its missed references, and stores them by thread. agent_ns: upper bound of its
 * CPU time with the agent; profile NULL: nothing is stored. */
int missed_add(struct missed *m, const struct wire_proc *proc, uint64_t agent_ns, uint64_t lost_buffers,
               struct profile *profile, uint64_t process, struct error *err);
/* Estimates the percentage of the run's references that are missing, given the number recorded or counted and
 * the CPU time in translated code for that. */
double missed_percent(const struct missed *m, int counted, double references, double translated_ns);
/* The main reasons, in words. */
void missed_reasons(const struct missed *m, char *text, size_t size);

#endif
