/* SPDX-License-Identifier: Apache-2.0 */
/* curve-internal.h - parts of analysis_curve_compute. */
#ifndef CACHEGRAM_ANALYSIS_CURVE_INTERNAL_H
#define CACHEGRAM_ANALYSIS_CURVE_INTERNAL_H

#include "analysis/curve.h"

/* Mode "sparse": random by StatCache, the others by StatStack. line_bytes and profile are set. */
int analysis_curve_sparse(struct profile *p, enum analysis_model model, struct analysis_curve *curve,
                          struct error *err);
/* Mode "burst". line_bytes and profile are set, counts are 0. */
int analysis_curve_bursts(struct profile *p, const struct analysis_question *question,
                          struct analysis_curve *curve, struct error *err);
/* The windows of a phase that were recorded in full mode: sets points and references, of caches that threads
 * share or have for themselves (curve->separate). -ENODATA if there are none. */
int analysis_curve_phase_exact(struct profile *p, uint32_t phase, struct analysis_curve *curve,
                               struct error *err);

#endif
