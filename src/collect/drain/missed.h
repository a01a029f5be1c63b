/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missed.h - full mode and clock `count-always`: how many of the references are missing, since threads
 * executed natively (agent/burst/native.c), and why.
 */
#ifndef CACHEGRAM_COLLECT_MISSED_H
#define CACHEGRAM_COLLECT_MISSED_H

#include <stddef.h>
#include <stdint.h>
#include "collect/clock/agent-time.h"
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
    uint64_t assumed_ns;   /* the part of native_ns[WIRE_NATIVE_OFF] that nobody has measured, at most */
};

/* A process has ended: adds its missed references, and stores them by thread. agent: its CPU time with the
 * agent; profile NULL: nothing is stored. */
int missed_add(struct missed *m, const struct wire_proc *proc, const struct agent_time *agent,
               uint64_t lost_buffers, struct profile *profile, uint64_t process, struct error *err);
/* What is assumed cannot be more than this. */
void missed_limit(struct missed *m, double ns);
/* Estimates the percentage of the run's references that are missing, given the number recorded or counted and
 * the CPU time in translated code for that. */
double missed_percent(const struct missed *m, int counted, double references, double translated_ns);
/* The main reasons, in words. */
void missed_reasons(const struct missed *m, char *text, size_t size);

#endif
