/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/phase-variation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A window of a phase. */
struct member {
    uint64_t process, start_ns;
    uint32_t tid;
    size_t window;
    size_t instance; /* stays in the phase before it */
};

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->window < y->window ? -1 : 1;
}

/* Windows of all phases, by thread and time, with the number of the stay that each belongs to. */
static struct member *find_members(const struct analysis_timeline *t)
{
    struct member *list = calloc(t->n + 1, sizeof *list);
    size_t instance = 0;
    for (size_t i = 0; list && i < t->n; i++)
        list[i] = (struct member){t->windows[i].process, t->windows[i].start_ns, t->windows[i].tid, i, 0};
    if (list)
        qsort(list, t->n, sizeof *list, compare_members);
    for (size_t i = 0; list && i < t->n; i++) {
        const struct analysis_time_window *x = &t->windows[list[i].window],
                                          *before = i > 0 ? &t->windows[list[i - 1].window] : NULL;
        instance +=
            before && (before->phase != x->phase || before->tid != x->tid || before->process != x->process);
        list[i].instance = instance;
    }
    return list;
}

static size_t nearest_size(const struct analysis_timeline *t, double bytes)
{
    size_t best = 0;
    for (size_t k = 1; k < t->nsizes; k++)
        if (fabs(log(t->sizes[k] / bytes)) < fabs(log(t->sizes[best] / bytes)))
            best = k;
    return best;
}

static int find_variation(const struct analysis_timeline *t, const struct member *members, double *values,
                          uint32_t *instances, struct analysis_phase *phase)
{
    static const double sizes[] = {32 << 10, 256 << 10, 2 << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t size = nearest_size(t, sizes[s]), n = 0;
        for (size_t i = 0; i < t->n; i++) {
            const struct analysis_time_window *x = &t->windows[members[i].window];
            double value = t->miss_ratio[members[i].window * t->nsizes + size];
            if (x->phase != phase->phase || (!x->exact && x->bursts == 0) || isnan(value))
                continue;
            values[n] = value;
            instances[n++] = (uint32_t)members[i].instance;
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
    struct member *members = find_members(timeline);
    double *values = calloc(timeline->n + 1, sizeof *values);
    uint32_t *instances = calloc(timeline->n + 1, sizeof *instances);
    int code = members && values && instances ? 0 : -ENOMEM;
    for (size_t i = 0; i < timeline->nphases && code == 0 && timeline->nsizes > 0; i++)
        code = find_variation(timeline, members, values, instances, &timeline->phases[i]);
    free(members);
    free(values);
    free(instances);
    return code == 0 ? 0 : error_set(err, code, "out of memory computing the timeline");
}
