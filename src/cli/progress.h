/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - progress display of long work, and its interruption.
 *
 *     cli_catch_interrupts();
 *     struct progress p = progress_begin("stack");
 *     while (... && !cli_interrupted())
 *         progress_show(&p, trace_progress(r), references);
 *     progress_end(&p);
 *     ... print the results of what was read ...
 *     return cli_interrupted() ? cli_interrupt_status() : 0;
 */
#ifndef CACHEGRAM_PROGRESS_H
#define CACHEGRAM_PROGRESS_H

#include <stdint.h>

struct progress {
    const char *what; /* not owned */
    int shown;        /* stderr is a terminal */
    uint64_t start_ns, next_ns;
};

struct progress progress_begin(const char *what);
/*
 * Draws a bar at most a few times per second, and only on a terminal. share: part that is done, 0..1, NaN if
 * unknown; references: done so far.
 */
void progress_show(struct progress *p, double share, uint64_t references);
/* Removes the bar. */
void progress_end(struct progress *p);

/*
 * From now on the first SIGINT or SIGTERM only sets what cli_interrupted returns, so that the work can be
 * ended properly; the second one kills as usual.
 */
void cli_catch_interrupts(void);
int cli_interrupted(void);
/* The same as a flag, which library code can poll. */
const volatile int *cli_interrupt_flag(void);
/* The exit status for the shell, 128 + the signal's number. */
int cli_interrupt_status(void);

#endif
