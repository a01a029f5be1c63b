/* SPDX-License-Identifier: Apache-2.0 */
/* pirating-internal.h - shared by the set-up, whole runs and intervals of a measurement. */
#ifndef CACHEGRAM_PIRATING_INTERNAL_H
#define CACHEGRAM_PIRATING_INTERNAL_H

#include "pirate/pirating.h"
#include "pirate/rivals.h"
#include "pirate/span.h"
#include "collect/launch/target.h"
#include "pirate/pirate.h"
#include "pirate/resctrl.h"
#include "pirate/ratio.h"

/* One size. */
struct cell {
    uint64_t available_bytes, stolen_bytes;
    int out_of_reach;           /* larger than the cache, or than what the Pirate can hold even alone */
    struct ratio rate;          /* CPU time per unit, from valid measurements */
    uint64_t dropped, not_held; /* not_held: of those, the Pirate ran but could not hold its set */
    double events[PERF_KINDS];  /* in valid measurements; NaN: not counted */
    struct hold_count seen;     /* by the Pirate, in all measurements */
};

struct pirating {
    const struct pirating_options *options;
    struct pirating_result *result;
    struct pirate *pirate;   /* or */
    struct resctrl *resctrl; /* exactly one of the two is set */
    struct cell *cells;      /* largest available first */
    size_t n;
    unsigned threads; /* of the Pirate, currently */
    cpu_set_t all;    /* CPUs on which we might run before */
    struct rivals rivals;
};

/* Takes so much cache away, with so many threads; 0: nothing. Returns when the set has been fetched. */
int pirating_take(struct pirating *p, unsigned threads, uint64_t stolen_bytes, struct error *err);
/* CPUs for the program, and for us next to it: not those of the Pirate. */
void pirating_target_cpus(const struct pirating *p, cpu_set_t *cpus);
/* Was the taken cache held meanwhile? Adds the observations to the cell, and counts a failure there. */
int pirating_held(const struct pirating *p, struct cell *cell, const struct hold_count *before,
                  const struct hold_count *after);
struct hold_count pirating_count(const struct pirating *p);
/*
 * Do the program's CPU and the Pirate's share the cache now? 1 or 0; 0 if unclear. The Pirate is idle
 * afterwards. To be called before and after a measurement, which is valid only if both return 1.
 */
int pirating_shared(struct pirating *p);
/* Counts a measurement that is invalid for this reason. */
void pirating_count_unshared(struct pirating *p, struct cell *cell);
/* Counts one that is invalid since signals stopped the program or us meanwhile. */
void pirating_count_disturbed(struct pirating *p, struct cell *cell);
/* The part of a run to be measured. */
struct span pirating_span(const struct pirating *p);
/* Adds a sentence to the result's notes. */
void pirating_note(struct pirating *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Both return an exit status as pirating_run does. pirating-whole.c, pirating-intervals.c. */
int pirating_whole_runs(struct pirating *p, struct error *err);
int pirating_intervals(struct pirating *p, struct meter *meter, struct error *err);

/*
 * Number of Pirate threads: as many as can be added one by one without making the program slower than next to
 * one of them (Eklov's thesis, III.4.4). rates[k]: time per progress next to k threads that take half a
 * megabyte together, k from 1 to `most`; a number without measurements is not used.
 */
unsigned pirating_threads(const struct ratio *rates, unsigned most);
#define PIRATING_ROUNDS 4u /* measurements of each */

/* Exit status for an error of target_start. */
int pirating_start_status(int code);

#endif
