/* SPDX-License-Identifier: Apache-2.0 */
#include "model/clock.h"
#include <math.h>
#include <stdlib.h>

struct clock {
    size_t n;
    struct point {
        uint32_t thread;
        double ns, rate, refs; /* refs: of the thread, since its first point */
    } points[];
};

static int compare(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

struct clock *clock_new(const struct clock_knot *knots, size_t n)
{
    struct clock *c = malloc(sizeof(*c) + n * sizeof(c->points[0]));
    if (c == NULL)
        return NULL;
    c->n = 0;
    for (size_t i = 0; i < n; i++)
        if (knots[i].refs_per_ns > 0 && !isnan(knots[i].cpu_ns))
            c->points[c->n++] = (struct point){knots[i].thread, knots[i].cpu_ns, knots[i].refs_per_ns, 0};
    qsort(c->points, c->n, sizeof(c->points[0]), compare);
    for (size_t i = 1; i < c->n; i++) {
        const struct point *before = &c->points[i - 1];
        struct point *p = &c->points[i];
        if (p->thread == before->thread)
            p->refs = before->refs + (p->ns - before->ns) * (p->rate + before->rate) / 2;
    }
    return c;
}

void clock_free(struct clock *c)
{
    free(c);
}

/* References since the thread's first point; negative before it. */
static double reading(const struct clock *c, uint32_t thread, double ns)
{
    size_t low = 0, high = c->n;
    while (low < high) { /* the first point after (thread, ns) */
        size_t middle = low + (high - low) / 2;
        const struct point *p = &c->points[middle];
        if (p->thread < thread || (p->thread == thread && p->ns <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    const struct point *before = low > 0 && c->points[low - 1].thread == thread ? &c->points[low - 1] : NULL;
    const struct point *after = low < c->n && c->points[low].thread == thread ? &c->points[low] : NULL;
    if (before == NULL && after == NULL)
        return ns * CLOCK_NOMINAL_RATE;
    if (before == NULL)
        return after->refs - (after->ns - ns) * after->rate;
    double past = ns - before->ns, refs = before->refs + past * before->rate;
    if (after != NULL)
        refs += past * past / (after->ns - before->ns) * (after->rate - before->rate) / 2;
    return refs;
}

double clock_refs(const struct clock *c, uint32_t thread, double from_ns, double to_ns)
{
    return fmax(0, reading(c, thread, to_ns) - reading(c, thread, from_ns));
}
