/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread-time.c - each thread's CPU time as a function of time: a window's is spread evenly over it.
 *
 *     thread 1  |--- 3 ms ---|--- 2 ms ---|
 *     thread 2        |--- 4 ms ---|
 *
 * From start_ns on, the process' windows are followed until all together have used the CPU time that was
 * asked for; then the thread's part of it is its share.
 */
#include "analysis/thread-time.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/windows.h"

/* Steps to the moment when the process has used the CPU time. Each halves the time in which it may be. */
#define STEPS 40

struct thread_time {
    struct analysis_windows windows;
    size_t *sampled; /* positions in windows.list, by process and time */
    size_t n;
};

static int compare(const void *a, const void *b, void *list)
{
    const struct profile_time_window *windows = list, *x = &windows[*(const size_t *)a],
                                     *y = &windows[*(const size_t *)b];
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

struct thread_time *thread_time_load(struct profile *p, struct error *err)
{
    struct thread_time *t = calloc(1, sizeof *t);
    if (!t) {
        error_set(err, -ENOMEM, "out of memory reading the windows of a profile");
        return NULL;
    }
    if (analysis_windows_load(p, "", &t->windows, NULL) != 0) {
        analysis_windows_clear(&t->windows);
        t->windows = (struct analysis_windows){0};
    }
    if (!(t->sampled = calloc(t->windows.n + 1, sizeof *t->sampled))) {
        thread_time_free(t);
        error_set(err, -ENOMEM, "out of memory reading the windows of a profile");
        return NULL;
    }
    for (size_t i = 0; i < t->windows.n; i++)
        if (!t->windows.list[i].exact)
            t->sampled[t->n++] = i;
    qsort_r(t->sampled, t->n, sizeof *t->sampled, compare, t->windows.list);
    return t;
}

void thread_time_free(struct thread_time *t)
{
    if (t)
        analysis_windows_clear(&t->windows);
    if (t)
        free(t->sampled);
    free(t);
}

/* CPU time of the process' windows between two moments, and the thread's part of it. */
struct use {
    double all, own;
};

static struct use use_between(const struct thread_time *t, size_t first, uint32_t tid, double from, double to)
{
    struct use use = {0};
    uint64_t process = t->windows.list[t->sampled[first]].process;
    for (size_t i = first; i < t->n; i++) {
        const struct profile_time_window *w = &t->windows.list[t->sampled[i]];
        if (w->process != process || (double)w->start_ns >= to)
            break;
        double low = fmax(from, (double)w->start_ns), high = fmin(to, (double)w->end_ns),
               length = (double)w->end_ns - (double)w->start_ns;
        if (!(high > low) || !(length > 0))
            continue;
        double ns = (double)w->cpu_ns * (high - low) / length;
        use.all += ns;
        use.own += w->tid == tid ? ns : 0;
    }
    return use;
}

/* The first window of the process; t->n: it has none. */
static size_t first_of(const struct thread_time *t, uint64_t process)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->windows.list[t->sampled[middle]].process < process)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->n && t->windows.list[t->sampled[low]].process == process ? low : t->n;
}

int thread_time_is_alone(const struct thread_time *t, uint64_t process, uint32_t tid)
{
    for (size_t i = first_of(t, process); i < t->n; i++) {
        const struct profile_time_window *w = &t->windows.list[t->sampled[i]];
        if (w->process != process)
            break;
        if (w->tid != tid)
            return 0;
    }
    return 1;
}

double thread_time_share(const struct thread_time *t, uint64_t process, uint32_t tid, uint64_t start_ns,
                         double cpu_ns)
{
    size_t first = first_of(t, process);
    if (first == t->n)
        return 1;
    double from = (double)start_ns, low = from, high = from;
    for (size_t i = first; i < t->n && t->windows.list[t->sampled[i]].process == process; i++)
        high = fmax(high, (double)t->windows.list[t->sampled[i]].end_ns);
    struct use use = use_between(t, first, tid, from, high);
    for (int i = 0; i < STEPS && use.all > cpu_ns && high - low > 1; i++) {
        double middle = (low + high) / 2;
        struct use half = use_between(t, first, tid, from, middle);
        if (half.all > cpu_ns) {
            high = middle;
            use = half;
        } else {
            low = middle;
        }
    }
    if (!(use.all > 0)) /* its windows are over: as before */
        use = use_between(t, first, tid, 0, from);
    return use.all > 0 ? use.own / use.all : 1;
}
