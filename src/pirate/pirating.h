/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirating.h - `cachegram pirate` without its command line: measures a program while a Pirate occupies part
 * of the shared cache (Eklov's thesis, Paper III; docs/pirate.md).
 */
#ifndef CACHEGRAM_PIRATING_H
#define CACHEGRAM_PIRATING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "pirate/meter.h"
#include "pirate/hold.h"
#include "pirate/llc.h"
#include "profile/profile.h"

struct pirating_options {
    char **argv; /* the command, NULL-terminated; or NULL, with */
    pid_t pid;   /* the process to attach to */
    const uint64_t
        *available; /* sizes to leave to the program, in any order; NULL: sixteen, about a way each */
    size_t n;
    const char *progress; /* `what` of meter_init: intervals of one run. NULL: one whole run for each size */
    const char *from,
        *to;              /* only this part of a run is measured (span.h); NULL: from its start, to its end */
    unsigned threads;     /* of the Pirate; 0: determined by the paper's method, or one */
    double limit;         /* HOLD_LIMIT */
    uint64_t interval_ns; /* of a measurement */
    unsigned repeats;     /* runs for each size */
    double duration_s;    /* stop measuring after this time; 0: at the program's end */
    int resctrl;          /* partition the cache instead of running a Pirate */
    uint64_t
        llc_bytes; /* size of the last level; 0: as the system reports it, or as the Pirate determines it */
    int output_fd; /* for the standard output of the (first) run; -1: ours */
    /* Called before every run and cycle, for a progress bar, or NULL. done: 0..1, NaN: unknown. */
    void (*on_progress)(void *ctx, double done, const char *what);
    void *ctx;
};

struct pirating_result {
    int ran;    /* the program was started, or attached to */
    int status; /* its exit status for the shell: of the first run */
    struct llc llc;
    uint64_t llc_bytes; /* of which available sizes are parts */
    struct hold_scale scale;
    double ticks_per_ns;
    int huge_pages;
    unsigned threads;
    uint64_t alone_bytes;        /* the largest amount that the Pirate holds while the program does not run */
    const char *unit;            /* of ns_per_unit: "bytes", "steps", "run" */
    struct profile_pirate *rows; /* largest available size first; malloc'ed */
    size_t n;
    uint64_t cycles;
    uint64_t unshared; /* measurements dropped since the two CPUs did not share the cache, whatever the system
                       reports */
    uint64_t
        disturbed; /* likewise, since the program, or we, had been stopped (Ctrl-Z) or continued meanwhile */
    double stopped_share;   /* of the time: the program was held while the Pirate fetched its data; NaN: whole
                               runs */
    double cachegram_share; /* likewise: this process, without the Pirate, ran on a CPU that the program could
                         have used */
    double alone_ns,
        interference_ns; /* ns per unit alone, and next to a Pirate of half a megabyte; NaN: not measured */
    double cpu_seconds, wall_seconds; /* of the first run, or the only one; NaN: it was attached to */
    char notes[4096];                 /* for the user, one sentence per line */
};

/*
 * The exit status for the shell: the program's own; 125, 126, 127 with err filled when it was not started
 * (or, with a pid, 1). A signal that ends the measurement early (attached: SIGINT, SIGTERM) is not a failure:
 * rows contain what was measured.
 */
int pirating_run(const struct pirating_options *options, struct pirating_result *result, struct error *err);
void pirating_clear(struct pirating_result *result);

#endif
