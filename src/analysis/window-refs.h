/* SPDX-License-Identifier: Apache-2.0 */
/* window-refs.h - how many references were made in each window that was sampled. */
#ifndef CACHEGRAM_ANALYSIS_WINDOW_REFS_H
#define CACHEGRAM_ANALYSIS_WINDOW_REFS_H

#include <stddef.h>

#include "analysis/burst-weights.h"
#include "analysis/windows.h"
#include "base/error.h"

/*
 * Sets refs[] and cpu_ns[] of windows->n windows: of sampled ones, references, all together what the bursts
 * represent, and native CPU time. Of exact ones refs[] must be set; cpu_ns[] is what they would have taken
 * natively, at the rate of their phase; NaN if no rate is known at all. bursts[nbursts] have their window and
 * their group, which is the window's phase, below `phases`. 0 or -ENOMEM with err.
 */
int analysis_window_refs(const struct analysis_windows *windows, const struct analysis_burst *bursts,
                         size_t nbursts, size_t phases, double *refs, double *cpu_ns, struct error *err);

#endif
