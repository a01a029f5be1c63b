/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread-hist.c - the profile has rows for processes with more than one thread: one of the process, and one
 * of each thread. In all other processes a shared cache is the thread's own.
 */
#include "analysis/thread-hist.h"

#include <errno.h>
#include <inttypes.h>

#include "analysis/windows.h"
#include "profile/threads.h"

struct sum {
    struct thread_hist *of;
    uint32_t tid;
    size_t rows, found;
    int damaged;
};

/* Subtracts, never more than there is. */
static uint64_t without(uint64_t from, uint64_t less, int *damaged)
{
    *damaged |= less > from;
    return less > from ? 0 : from - less;
}

static void subtract(struct sum *sum, const struct profile_thread *thread, const struct hist *stack)
{
    struct hist *into = &sum->of->stack;
    into->total = 0;
    for (uint32_t bin = 0; bin < HIST_BINS; bin++) {
        into->count[bin] = without(into->count[bin], stack->count[bin], &sum->damaged);
        into->total += into->count[bin];
    }
    sum->of->cold = without(sum->of->cold, thread->cold, &sum->damaged);
    sum->of->left = without(sum->of->left, thread->left, &sum->damaged);
}

static int add_row(void *ctx, const struct profile_thread *thread, const struct hist *stack)
{
    struct sum *sum = ctx;
    sum->rows++;
    if (thread->tid == 0 && sum->tid == 0) {
        subtract(sum, thread, stack);
    } else if (thread->tid != 0 && (sum->tid == 0 || thread->tid == sum->tid)) {
        sum->found++;
        hist_merge(&sum->of->stack, stack);
        sum->of->cold += thread->cold;
        sum->of->left += thread->left;
    }
    return 0;
}

static int refuse(const char *name, struct error *err)
{
    return error_set(err, -ENODATA,
                     "the profile '%s' does not distinguish threads: no process with several was "
                     "recorded to its end",
                     name);
}

/* Whether more than one thread of a process has windows that were recorded completely. */
static int has_several(struct profile *p)
{
    struct analysis_windows w;
    const struct profile_time_window *before = NULL;
    int several = 0;
    if (analysis_windows_load(p, "", &w, NULL) == 0)
        for (size_t i = 0; i < w.n; i++) {
            const struct profile_time_window *x = &w.list[w.by_thread[i]];
            if (!x->exact)
                continue;
            several |= before && before->process == x->process && before->tid != x->tid;
            before = x;
        }
    analysis_windows_clear(&w);
    return several;
}

static int count_row(void *ctx, const struct profile_thread *thread, const struct hist *stack)
{
    (void)thread, (void)stack;
    ++*(size_t *)ctx;
    return 0;
}

int thread_hist_check(struct profile *p, const char *name, struct error *err)
{
    size_t rows = 0;
    int code = profile_threads(p, count_row, &rows, err);
    return code == 0 && rows == 0 && has_several(p) ? refuse(name, err) : code;
}

int thread_hist_separate(struct profile *p, const char *name, uint32_t tid, struct thread_hist *h,
                         struct error *err)
{
    struct sum sum = {.of = h, .tid = tid};
    if (tid != 0)
        *h = (struct thread_hist){.cold = 0};
    int code = profile_threads(p, add_row, &sum, err);
    if (code != 0)
        return code;
    if (sum.damaged)
        return profile_damaged(p, err, "one process has more references than all together");
    if (sum.rows == 0 && (tid != 0 || has_several(p)))
        return refuse(name, err);
    if (tid != 0 && sum.found == 0)
        return error_set(err, -ENODATA, "the profile '%s' has no references by thread %" PRIu32, name, tid);
    return 0;
}
