/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missed.h - full mode and clock `count-always`: how many of the references are missing, since threads ran
 * natively (agent/native.c), and why.
 */
#ifndef CACHEGRAM_COLLECT_MISSED_H
#define CACHEGRAM_COLLECT_MISSED_H

#include <stddef.h>
#include <stdint.h>
#include "profile/profile.h"
#include "wire/wire.h"

/* From these shares on the report tells, the recorder warns and nothing is called exact any more. */
#define MISSED_STORED_PERCENT .1
#define MISSED_WARNED_PERCENT 1.

struct missed {
    uint64_t native_ns[WIRE_NATIVE_COUNT]; /* CPU time that went by natively, by reason */
    uint64_t stepped;                      /* instructions that were executed natively one by one */
    uint64_t lost_buffers,
        lost_ns;           /* of threads that ran when their process ended; of the second the time is known */
    uint64_t elsewhere_ns; /* CPU time in programs without the agent */
};

/* A process has ended: adds what it missed, and stores it, by thread. agent_ns: its CPU time with the agent
 * in it, at most; profile NULL: nothing is stored. */
int missed_add(struct missed *m, const struct wire_proc *proc, uint64_t agent_ns, uint64_t lost_buffers,
               struct profile *profile, uint64_t process, struct error *err);
/* Share of the run's references that are missing, an estimate, when so many were recorded, or counted, in so
 * much CPU time in translated code. */
double missed_percent(const struct missed *m, int counted, double references, double translated_ns);
/* Why, in words: the reasons that make up most of it. */
void missed_reasons(const struct missed *m, char *text, size_t size);

#endif
