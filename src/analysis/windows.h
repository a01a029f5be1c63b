/* SPDX-License-Identifier: Apache-2.0 */
/* windows.h - the windows of a profile, and which of them a burst began in. */
#ifndef CACHEGRAM_ANALYSIS_WINDOWS_H
#define CACHEGRAM_ANALYSIS_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hist.h"
#include "profile/windows.h"

struct analysis_windows {
    struct profile_time_window *list;
    size_t n;
    size_t *by_thread; /* positions in list[], by process, thread and time */
};

/* 0, or negative with err; the caller clears it in any case. -ENODATA: the profile `name` has none. */
int analysis_windows_load(struct profile *p, const char *name, struct analysis_windows *w, struct error *err);
void analysis_windows_clear(struct analysis_windows *w);
/* References of the phase's exact windows; or -EINVAL with err: there is no such phase. */
int analysis_windows_phase(const struct analysis_windows *w, const char *name, uint32_t phase,
                           uint64_t *exact_references, struct error *err);
/* As profile_time_window_stack, but with the distances spread evenly over the eighth of an octave to whose
 * lower edge they were rounded down. */
int analysis_window_stack(struct profile *p, uint64_t id, int separate, struct hist *stack,
                          struct error *err);
/* The sampled window that a burst began in; w->n if there is none. */
size_t analysis_windows_find(const struct analysis_windows *w, const struct profile_burst *burst);

#endif
