/* SPDX-License-Identifier: Apache-2.0 */
/* curve-sparse.c - the curve of a profile of sparse reuse distances, window by window. */
#include "analysis/curve-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "model/windows.h"

/* Distributes the samples, sorted by window, to windows, sorted by id; distances: space for all. */
static int assign_samples(struct profile *p, const struct profile_window *windows, size_t nwindows,
                          const struct profile_sample *samples, size_t nsamples, struct curve_window *curves,
                          uint64_t *distances, struct error *err)
{
    size_t at = 0;
    for (size_t w = 0; w < nwindows; w++) {
        curves[w].weight = (double)windows[w].references;
        curves[w].distances = distances;
        for (; at < nsamples && samples[at].window == windows[w].id; at++) {
            if (samples[at].distance == PROFILE_DANGLING)
                curves[w].dangling++;
            else
                distances[curves[w].n++] = samples[at].distance;
        }
        distances += curves[w].n;
    }
    if (at < nsamples)
        return profile_damaged(p, err, "a sample is in window %llu, which is not there",
                               (unsigned long long)samples[at].window);
    return 0;
}

int analysis_curve_sparse(struct profile *p, enum analysis_model model, struct analysis_curve *curve,
                          struct error *err)
{
    struct profile_window *windows = NULL;
    struct profile_sample *samples = NULL;
    struct curve_window *curves = NULL;
    uint64_t *distances = NULL;
    size_t nwindows = 0, nsamples = 0;
    int code = profile_windows(p, &windows, &nwindows, err);
    if (code == 0)
        code = profile_samples(p, &samples, &nsamples, err);
    if (code == 0 && nsamples == 0)
        code =
            error_set(err, -ENODATA, "the profile '%s' holds no samples: sample more windows, or longer ones",
                      curve->profile);
    if (code == 0) {
        curves = calloc(nwindows + 1, sizeof *curves);
        distances = malloc(nsamples * sizeof *distances);
        if (!curves || !distances)
            code = error_set(err, -ENOMEM, "out of memory computing the curve");
    }
    if (code == 0)
        code = assign_samples(p, windows, nwindows, samples, nsamples, curves, distances, err);
    if (code == 0)
        code =
            curve_windows(curves, nwindows,
                          model == ANALYSIS_MODEL_RANDOM ? CURVE_WINDOWS_STATCACHE : CURVE_WINDOWS_STATSTACK,
                          curve->line_bytes, curve->points, curve->n, err);
    curve->windows = nwindows;
    curve->samples = nsamples;
    for (size_t w = 0; code == 0 && w < nwindows; w++)
        curve->references += windows[w].references;
    free(windows);
    free(samples);
    free(curves);
    free(distances);
    return code;
}
