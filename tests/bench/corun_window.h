/* SPDX-License-Identifier: Apache-2.0 */
/* corun_window.h - stretches of traces that bench_corun lets run side by side, and what models know of them.
 */
#ifndef CACHEGRAM_CORUN_WINDOW_H
#define CACHEGRAM_CORUN_WINDOW_H

#include <stddef.h>
#include <stdint.h>
#include "corun_errors.h"
#include "model/statcc.h"
#include "bench/corun_sim.h"

#define WINDOW_REGIONS 2048u

struct window {
    char name[64];
    uint32_t *touch; /* line << 1 | store; lines are numbered by region (corun_window.c) */
    size_t n, capacity;
    double references_per_instruction; /* of the whole trace; touches, as curves count them */
    double rise;                       /* of the miss ratio, from 2 MB to 1 MB */
    uint64_t region[WINDOW_REGIONS];
    uint32_t regions;
};

/* What models get of a stretch of touches. */
struct knowledge {
    struct hist stack, reuse;
    uint64_t cold;
    struct statcc_curve exact, statstack;
};

/* Ends the program with a line on stderr: a benchmark's way with errors. */
_Noreturn void window_die(const char *what, const struct error *err);
/* memory, unless that is NULL: then it ends as above. */
void *window_need(void *memory);

/*
 * The middle one of `rounds` equal parts of a trace; where it has more references than `most` (0: no limit),
 * the middle `most` of it. touch is malloc'ed, the caller frees it.
 */
void window_load(struct window *w, const char *path, unsigned rounds, size_t most);
/* Of the first prefix[i] touches each, in rising order, into known[i]; all in one pass. */
void window_know(const struct window *w, const size_t *prefix, size_t n, struct knowledge *const *known);
/* Of all touches, the second time round: the window over and over, without its start. */
void window_know_loop(const struct window *w, struct knowledge *known);

/* A window for the simulator, over and over; `next` begins at 0. */
struct window_stream {
    const struct window *window;
    size_t next;
};
struct corun_stream window_stream(struct window_stream *s);
/* CPI of the paper's machine with the miss ratio `miss` of the shared cache, all else as simulated (eq. 4).
 */
double window_cpi(const struct window *w, const struct corun_result *simulated, double miss);
/* That CPI's relative error, against the simulated miss ratio's. */
double window_error(const struct window *w, const struct corun_result *simulated, double miss);
/* Adds a result's errors to a model's; the one by eq. 4. */
double window_errors(struct errors_of_model *errors, const struct window *w,
                     const struct corun_result *simulated, const struct statcc_result *got);

#endif
