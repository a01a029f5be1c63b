/* SPDX-License-Identifier: Apache-2.0 */
/* pirating-internal.h - what set-up, whole runs and intervals of a measurement share. */
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
    int out_of_reach;          /* there is not so much, or the Pirate does not hold so much even alone */
    struct ratio rate;         /* CPU time by units, of what counts */
    uint64_t dropped, unheld;  /* unheld: of those, the Pirate ran and could not hold its set all the same */
    double events[PERF_KINDS]; /* in what counts; NaN: not counted */
    struct hold_count seen;    /* by the Pirate, in all intervals */
};

struct pirating {
    const struct pirating_options *options;
    struct pirating_result *result;
    struct pirate *pirate;   /* or */
    struct resctrl *resctrl; /* one of them is NULL */
    struct cell *cells;      /* largest available first */
    size_t n;
    unsigned threads; /* of the Pirate, now */
    cpu_set_t all;    /* our CPUs before */
    struct rivals rivals;
};

/* Takes so much away, with so many threads; 0: nothing. Returns when it has been brought in. */
int pirating_take(struct pirating *p, unsigned threads, uint64_t stolen_bytes, struct error *err);
/* CPUs that the program may run on, and we beside it: not on the Pirate's. */
void pirating_target_cpus(const struct pirating *p, cpu_set_t *cpus);
/* Was what was taken held in between? Adds what was seen to the cell, and counts it there if not. */
int pirating_held(const struct pirating *p, struct cell *cell, const struct hold_count *before,
                  const struct hold_count *after);
struct hold_count pirating_count(const struct pirating *p);
/*
 * Do the program's CPU and the Pirate's share the cache at this moment? 1 or 0; unclear counts as 0. The
 * Pirate rests afterwards. To be asked before and after a measurement, which counts only if both say so.
 */
int pirating_shared(struct pirating *p);
/* Counts a measurement that does not. */
void pirating_apart(struct pirating *p, struct cell *cell);
/* Counts one in which the program, or we, did not run all the time: signals stopped it. */
void pirating_disturbed(struct pirating *p, struct cell *cell);
/* The part of a run that is to be measured. */
struct span pirating_span(const struct pirating *p);
/* Adds a sentence to the result's notes. */
void pirating_note(struct pirating *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Both return an exit status as pirating_run. pirating-whole.c, pirating-intervals.c. */
int pirating_whole_runs(struct pirating *p, struct error *err);
int pirating_intervals(struct pirating *p, struct meter *meter, struct error *err);

/*
 * How many Pirate threads: as many as can be added, one after the other, without making the program slower
 * than beside one of them (Eklov's thesis, III.4.4). rates[k]: time by progress beside k threads that steal
 * half a megabyte together, k from 1 to `most`; a count of which a measurement is missing is not taken.
 */
unsigned pirating_threads(const struct ratio *rates, unsigned most);
#define PIRATING_ROUNDS 4u /* measurements of each */

/* Exit status for what target_start said. */
int pirating_start_status(int code);

#endif
