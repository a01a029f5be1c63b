/* SPDX-License-Identifier: Apache-2.0 */
/* process-stack.h - stack and reuse distances over the whole life of a process: full mode. */
#ifndef CACHEGRAM_PROCESS_STACK_H
#define CACHEGRAM_PROCESS_STACK_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"
#include "profile/profile.h"
#include "sim/stackdist.h"

struct process_stack;

/* NULL when memory is short (err says so). */
struct process_stack *process_stack_new(struct error *err);
void process_stack_free(struct process_stack *p);                         /* NULL is allowed */
struct stackdist *process_stack_distances(const struct process_stack *p); /* not to be freed */

/* Touches of n lines, and between them some that repeat the lines before. */
struct process_touches {
    const uint64_t *lines;
    size_t n, nrepeats;
    const struct stackdist_repeat *repeats; /* in the order of `at` */
};
/*
 * Touches them all. Adds their stack distances to stack_hist, first touches to *cold, and everything
 * else to the run's histograms run[PROFILE_HIST_KINDS]. far: lists the far ones of t->lines; NULL: not
 * wanted. 0, or -ENOMEM.
 */
int process_stack_touch(struct process_stack *p, const struct process_touches *t, struct hist *stack_hist,
                        struct hist *run, uint64_t *cold, struct stackdist_far *far);
/* No more touches: adds what is left to the run's histograms. */
void process_stack_end(struct process_stack *p, struct hist *run);

#endif
