/* SPDX-License-Identifier: Apache-2.0 */
/* window-refs.h - how many references were made in each window that was sampled. */
#ifndef CACHEGRAM_ANALYSIS_WINDOW_REFS_H
#define CACHEGRAM_ANALYSIS_WINDOW_REFS_H

#include <stddef.h>

#include "analysis/burst-weights.h"
#include "analysis/windows.h"
#include "base/error.h"

/*
 * Sets refs[] and cpu_ns[] of windows->n windows. A sampled window gets its references, such that all windows
 * together have as many as the bursts represent, and its native CPU time. The refs[] of an exact one must be
 * set; its cpu_ns[] is the time that it would have taken natively, at the rate of its phase, or NaN if no
 * rate is known at all. bursts[nbursts] have their window and their group, which is the window's phase, below
 * `phases`. 0 or -ENOMEM with err.
 */
int analysis_window_refs(const struct analysis_windows *windows, const struct analysis_burst *bursts,
                         size_t nbursts, size_t phases, double *refs, double *cpu_ns, struct error *err);

#endif
