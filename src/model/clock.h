/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - from CPU time to references: a thread's rate is known at its bursts and interpolated linearly
 * between them (docs/methods.md, section 7).
 */
#ifndef CACHEGRAM_MODEL_CLOCK_H
#define CACHEGRAM_MODEL_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/*
 * References per nanosecond where no rate is known: in the range of native programs (one every 0.19 to 0.76
 * ns). The estimator is insensitive to a clock that is wrong by a constant factor.
 */
#define CLOCK_NOMINAL_RATE 3.0

struct clock_knot {
    uint32_t thread;
    double cpu_ns;      /* of the thread, since it began */
    double refs_per_ns; /* at that moment; NaN: not known */
};

struct clock;

/* From n knots in any order. NULL when memory is short. clock_free takes NULL. */
struct clock *clock_new(const struct clock_knot *knots, size_t n);
void clock_free(struct clock *c);
/* References that the thread made from one moment of its CPU time to a later one; >= 0. */
double clock_refs(const struct clock *c, uint32_t thread, double from_ns, double to_ns);

#endif
