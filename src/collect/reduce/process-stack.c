/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/reduce/process-stack.h"
#include <errno.h>
#include <stdlib.h>
#include "collect/tunables.h"
#include "model/curve.h"

struct process_stack {
    struct stackdist *distances;
    /* Touches that StatStack has not processed yet, fewer than COLLECT_STATSTACK_WINDOW. */
    struct hist reuse;
    uint64_t cold;
};

struct process_stack *process_stack_new(struct error *err)
{
    struct process_stack *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        error_set(err, -ENOMEM, "out of memory for the stack distances of a process");
        return NULL;
    }
    if ((p->distances = stackdist_new(err)) != NULL)
        return p;
    free(p);
    return NULL;
}

void process_stack_free(struct process_stack *p)
{
    if (p == NULL)
        return;
    stackdist_free(p->distances);
    free(p);
}

struct stackdist *process_stack_distances(const struct process_stack *p)
{
    return p->distances;
}

static void end_window(struct process_stack *p, struct hist *run)
{
    curve_statstack_window(&p->reuse, p->cold, &run[PROFILE_HIST_EXPECTED]);
    hist_merge(&run[PROFILE_HIST_REUSE], &p->reuse);
    p->reuse = (struct hist){0};
    p->cold = 0;
}

int process_stack_touch(struct process_stack *p, const struct process_touches *t, struct hist *stack_hist,
                        struct hist *run, uint64_t *cold, struct stackdist_far *far)
{
    size_t done = 0;
    int status = 0;
    if (far != NULL)
        far->n = 0;
    for (size_t i = 0; i <= t->nrepeats && status == 0; i++) {
        const struct stackdist_repeat *repeat = i < t->nrepeats ? &t->repeats[i] : NULL;
        size_t to = repeat != NULL ? repeat->at : t->n;
        uint64_t first = 0;
        status = stackdist_touch_part(p->distances, t->lines, done, to, stack_hist, &p->reuse,
                                      &run[PROFILE_HIST_FIRST], &first, far);
        *cold += first;
        p->cold += first;
        done = to;
        if (status == 0 && repeat != NULL)
            stackdist_repeat(p->distances, t->lines + done - repeat->lines, repeat, stack_hist, &p->reuse);
        if (p->reuse.total + p->cold >= COLLECT_STATSTACK_WINDOW)
            end_window(p, run);
    }
    return status;
}

void process_stack_end(struct process_stack *p, struct hist *run)
{
    stackdist_ages(p->distances, &run[PROFILE_HIST_AGE]);
    end_window(p, run);
}
