/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/extent.h"
#include "analysis/windows.h"

#include <errno.h>
#include <stdlib.h>

static int compare(const void *a, const void *b, void *list)
{
    const struct profile_time_window *windows = list, *x = &windows[*(const size_t *)a],
                                     *y = &windows[*(const size_t *)b];
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

int analysis_windows_load(struct profile *p, const char *name, struct analysis_windows *w, struct error *err)
{
    *w = (struct analysis_windows){0};
    int code = profile_time_windows(p, &w->list, &w->n, err);
    if (code != 0)
        return code;
    if (w->n == 0 && (code = analysis_refuse_unprofiled(p, name, err)) != 0)
        return code;
    if (w->n == 0)
        return error_set(
            err, -ENODATA,
            "the profile '%s' has no windows: it was recorded by an older cachegram, with --lines, or "
            "its program was too short to be sampled",
            name);
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].phase > w->n)
            return error_set(err, -EINVAL, "the profile '%s' is damaged: window %zu has phase %u", name,
                             i + 1, w->list[i].phase);
    if (!(w->by_thread = calloc(w->n, sizeof *w->by_thread)))
        return error_set(err, -ENOMEM, "out of memory reading the windows of '%s'", name);
    for (size_t i = 0; i < w->n; i++)
        w->by_thread[i] = i;
    qsort_r(w->by_thread, w->n, sizeof *w->by_thread, compare, w->list);
    return 0;
}

int analysis_windows_phase(const struct analysis_windows *w, const char *name, uint32_t phase,
                           uint64_t *exact_references, struct error *err)
{
    uint32_t phases = 0;
    *exact_references = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct profile_time_window *x = &w->list[i];
        phases = x->phase > phases ? x->phase : phases;
        *exact_references += x->exact && x->phase == phase ? x->references : 0;
    }
    if (phase > phases)
        return error_set(err, -EINVAL, "the profile '%s' has no phase %u; it has %u of them", name, phase,
                         phases);
    return 0;
}

void analysis_windows_clear(struct analysis_windows *w)
{
    free(w->list);
    free(w->by_thread);
    *w = (struct analysis_windows){0};
}

size_t analysis_windows_find(const struct analysis_windows *w, const struct profile_burst *burst)
{
    size_t low = 0, high = w->n; /* the last window of the thread that begins when the burst did, or before */
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct profile_time_window *x = &w->list[w->by_thread[middle]];
        int later = x->process != burst->process ? x->process > burst->process
                    : x->tid != burst->tid       ? x->tid > burst->tid
                                                 : x->start_ns > burst->start_ns;
        if (later)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == 0)
        return w->n;
    size_t i = w->by_thread[low - 1];
    const struct profile_time_window *x = &w->list[i];
    return x->process == burst->process && x->tid == burst->tid && !x->exact ? i : w->n;
}
