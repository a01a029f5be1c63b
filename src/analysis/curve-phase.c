/* SPDX-License-Identifier: Apache-2.0 */
/* curve-phase.c - the curve of those windows of a phase that were recorded in full mode. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/curve-internal.h"
#include "analysis/windows.h"

int analysis_curve_phase_exact(struct profile *p, uint32_t phase, struct analysis_curve *curve,
                               struct error *err)
{
    struct analysis_windows windows;
    struct hist *h = calloc(2, sizeof *h);
    uint64_t cold = 0;
    int code = analysis_windows_load(p, curve->profile, &windows, err), sampled = 0;
    if (code == 0 && !h)
        code = error_set(err, -ENOMEM, "out of memory computing the curve");
    if (code == 0)
        code = analysis_windows_phase(&windows, curve->profile, phase, &curve->references, err);
    for (size_t i = 0; i < windows.n && code == 0; i++) {
        const struct profile_time_window *w = &windows.list[i];
        sampled |= w->phase == phase && !w->exact;
        if (!w->exact || w->phase != phase ||
            (code = analysis_window_stack(p, w->id, curve->separate, &h[1], err)) != 0)
            continue;
        hist_merge(&h[0], &h[1]);
        cold += curve->separate ? w->own_cold : w->cold;
    }
    if (code == 0 && curve->references == 0)
        code = error_set(err, -ENODATA, "the profile '%s' holds no %s of phase %u", curve->profile,
                         sampled ? "bursts" : "references", phase);
    if (code == 0)
        code = curve_exact(&h[0], cold, curve->line_bytes, curve->points, curve->n, err);
    analysis_windows_clear(&windows);
    free(h);
    return code;
}
