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
            return profile_damaged(p, err, "window %zu has phase %u", i + 1, w->list[i].phase);
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

/* Lower edges of the steps to which distances are rounded down: floor(2^(k / 8)), from 16 on. */
#define STEPS 8u
#define FIRST_STEP (4 * STEPS)
#define LAST_STEP ((HIST_LAST_OCTAVE + 1) * STEPS)

static uint32_t step_bin(unsigned step)
{
    return step == LAST_STEP ? HIST_BINS
                             : hist_bin(hist_octave[step % STEPS * (HIST_SUB / STEPS)] >>
                                        (HIST_LAST_OCTAVE - step / STEPS));
}

/* What lies at or above an edge stays there. */
static void spread(struct hist *h)
{
    for (unsigned step = FIRST_STEP; step < LAST_STEP; step++) {
        uint32_t low = step_bin(step), high = step_bin(step + 1);
        uint64_t count = h->count[low], width = hist_edge(high) - hist_edge(low), done = 0;
        h->count[low] = 0;
        for (uint32_t bin = low; bin < high && count > 0; bin++) {
            unsigned __int128 below = hist_edge(bin + 1) - hist_edge(low);
            uint64_t upto = (uint64_t)(below * count / width);
            h->count[bin] += upto - done;
            done = upto;
        }
    }
}

int analysis_window_stack(struct profile *p, uint64_t id, int separate, struct hist *stack, struct error *err)
{
    int code = profile_time_window_stack(p, id, separate, stack, err);
    if (code == 0)
        spread(stack);
    return code;
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
