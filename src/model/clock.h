/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - from CPU time to references: a thread's rate is known around its bursts, and taken to change
 * linearly between them. (DESIGN.md, "the reference clock".)
 */
#ifndef CACHEGRAM_MODEL_CLOCK_H
#define CACHEGRAM_MODEL_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/*
 * References per nanosecond where nothing is known: in the middle of what programs were seen to make
 * natively, one each .19 to .76 ns. The hybrid estimator hardly minds a clock that is wrong by a constant
 * factor.
 */
#define CLOCK_NOMINAL_RATE 3.0

struct clock_knot {
    uint32_t thread;
    double cpu_ns;      /* of the thread, since it began */
    double refs_per_ns; /* there; NaN: not known */
};

struct clock;

/* From n knots in any order. NULL when memory is short. clock_free takes NULL. */
struct clock *clock_new(const struct clock_knot *knots, size_t n);
void clock_free(struct clock *c);
/* References that the thread made from one moment of its CPU time to a later one; >= 0. */
double clock_refs(const struct clock *c, uint32_t thread, double from_ns, double to_ns);

#endif
