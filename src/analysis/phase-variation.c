/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/phase-variation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* For each window in the order of timeline.by_thread: the number of the instance of its phase, an
 * uninterrupted stay, that it belongs to, ascending. NULL when memory is short. */
static uint32_t *find_instances(const struct analysis_timeline *t)
{
    uint32_t *instances = calloc(t->n + 1, sizeof *instances);
    for (size_t k = 1; instances && k < t->n; k++) {
        const struct analysis_time_window *x = &t->windows[t->by_thread[k]],
                                          *before = &t->windows[t->by_thread[k - 1]];
        instances[k] = instances[k - 1] +
                       (before->phase != x->phase || before->tid != x->tid || before->process != x->process);
    }
    return instances;
}

static size_t nearest_size(const struct analysis_timeline *t, double bytes)
{
    size_t best = 0;
    for (size_t k = 1; k < t->nsizes; k++)
        if (fabs(log(t->sizes[k] / bytes)) < fabs(log(t->sizes[best] / bytes)))
            best = k;
    return best;
}

static int find_variation(const struct analysis_timeline *t, const uint32_t *instance_of, double *values,
                          uint32_t *instances, struct analysis_phase *phase)
{
    static const double sizes[] = {32 << 10, 256 << 10, 2 << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t size = nearest_size(t, sizes[s]), n = 0;
        for (size_t k = 0; k < t->n; k++) {
            const struct analysis_time_window *x = &t->windows[t->by_thread[k]];
            double value = t->miss_ratio[t->by_thread[k] * t->nsizes + size];
            if (x->phase != phase->phase || (!x->exact && x->bursts == 0) || isnan(value))
                continue;
            values[n] = value;
            instances[n++] = instance_of[k];
        }
        if (variation_find(values, instances, n, &phase->variation) < 0)
            return -ENOMEM;
        phase->variation_size = size;
        const struct variation *v = &phase->variation;
        if (v->first != v->others || v->period > 0 || v->instance > 0)
            break;
    }
    return 0;
}

int analysis_phase_variations(struct analysis_timeline *timeline, struct error *err)
{
    uint32_t *instance_of = find_instances(timeline);
    double *values = calloc(timeline->n + 1, sizeof *values);
    uint32_t *instances = calloc(timeline->n + 1, sizeof *instances);
    int code = instance_of && values && instances ? 0 : -ENOMEM;
    for (size_t i = 0; i < timeline->nphases && code == 0 && timeline->nsizes > 0; i++)
        code = find_variation(timeline, instance_of, values, instances, &timeline->phases[i]);
    free(instance_of);
    free(values);
    free(instances);
    return code == 0 ? 0 : error_set(err, code, "out of memory computing the timeline");
}
