/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.h - curves from sparse reuse distances, window by window, as in the StatCache and StatStack papers:
 * each window is modelled by its own samples, and the run is the mean of its windows, weighted by their
 * references (docs/methods.md, sections 2 to 4).
 */
#ifndef CACHEGRAM_WINDOWS_H
#define CACHEGRAM_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

#include "model/curve.h"

struct curve_window {
    const uint64_t *distances; /* reuse distances of the samples started in it, finite ones */
    size_t n;
    uint64_t dangling; /* samples whose line was never touched again: cold misses */
    double weight;     /* references, at least 0 */
};

enum curve_window_model { CURVE_WINDOWS_STATSTACK, CURVE_WINDOWS_STATCACHE };

/*
 * Windows without samples are ignored. low and high are two standard errors away, from the differences
 * between windows (type II sampling error, not the error of the model); NaN for fewer than two windows.
 * miss_ratio is NaN if no window has samples. 0, -EINVAL or -ENOMEM.
 */
int curve_windows(const struct curve_window *windows, size_t nwindows, enum curve_window_model model,
                  unsigned line_bytes, struct curve_point *points, size_t n, struct error *err);

#endif
