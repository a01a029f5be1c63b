/* SPDX-License-Identifier: Apache-2.0 */
/* phase-variation.h - how the windows of each phase differ from each other. */
#ifndef CACHEGRAM_ANALYSIS_PHASE_VARIATION_H
#define CACHEGRAM_ANALYSIS_PHASE_VARIATION_H

#include "analysis/timeline.h"

/*
 * Sets `variation` and `variation_size` of all phases, from windows that are exact or had bursts of their
 * own, at those of the timeline's sizes which are nearest to 32K, 256K and 2M: the first at which anything is
 * significant. 0, or -ENOMEM with err.
 */
int analysis_phase_variations(struct analysis_timeline *timeline, struct error *err);

#endif
