/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/busy-threads.h"

#include <stdlib.h>

#include "analysis/windows.h"

#define BUSY_SHARE 0.1

struct thread {
    uint64_t process, start_ns, end_ns;
    double exact, sampled; /* references; ns */
};

/* A thread's start, or its end. */
struct event {
    uint64_t process, ns;
    int change;
};

/* By process and thread; returns their number. */
static size_t add_up(const struct analysis_windows *w, struct thread *threads)
{
    const struct profile_time_window *before = NULL;
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct profile_time_window *x = &w->list[w->by_thread[i]];
        if (!before || before->process != x->process || before->tid != x->tid)
            threads[n++] = (struct thread){.process = x->process, .start_ns = x->start_ns};
        struct thread *t = &threads[n - 1];
        t->end_ns = x->end_ns > t->end_ns ? x->end_ns : t->end_ns;
        t->exact += x->exact ? (double)x->references : 0;
        t->sampled += x->exact ? 0 : (double)x->cpu_ns;
        before = x;
    }
    return n;
}

/* By process and time; a thread that ends when another one starts did not work with it. */
static int compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->change - y->change;
}

/* Starts and ends of the busy ones, in events[2 * n]; returns their number. */
static size_t events_of_busy(const struct thread *threads, size_t n, struct event *events)
{
    double exact = 0, exact_squares = 0, sampled = 0, sampled_squares = 0;
    size_t count = 0;
    for (const struct thread *t = threads; t < threads + n; t++) {
        exact += t->exact;
        exact_squares += t->exact * t->exact;
        sampled += t->sampled;
        sampled_squares += t->sampled * t->sampled;
    }
    for (const struct thread *t = threads; t < threads + n; t++) {
        if (t->exact * exact <= BUSY_SHARE * exact_squares &&
            t->sampled * sampled <= BUSY_SHARE * sampled_squares)
            continue;
        events[count++] = (struct event){t->process, t->start_ns, 1};
        events[count++] = (struct event){t->process, t->end_ns, -1};
    }
    qsort(events, count, sizeof *events, compare_events);
    return count;
}

/* The work of the process with most, divided by that of its busiest thread. threads[n]: by process. */
static double find_parallel(const struct thread *threads, size_t n)
{
    double sampled = 0, most = 0, parallel = 1;
    for (size_t i = 0; i < n; i++)
        sampled += threads[i].sampled;
    for (size_t i = 0; i < n;) {
        double all = 0, largest = 0;
        uint64_t process = threads[i].process;
        for (; i < n && threads[i].process == process; i++) {
            double work = sampled > 0 ? threads[i].sampled : threads[i].exact;
            all += work;
            largest = work > largest ? work : largest;
        }
        if (all > most) {
            most = all;
            parallel = all / largest;
        }
    }
    return parallel;
}

struct analysis_busy analysis_busy_threads(struct profile *p)
{
    struct analysis_windows w;
    struct analysis_busy busy = {.parallel = 1};
    struct thread *threads = NULL;
    struct event *events = NULL;
    if (analysis_windows_load(p, "", &w, NULL) == 0 && (threads = calloc(w.n, sizeof *threads)) != NULL &&
        (events = calloc(2 * w.n, sizeof *events)) != NULL) {
        size_t n = add_up(&w, threads), nevents = events_of_busy(threads, n, events);
        long now = 0;
        for (size_t i = 0; i < nevents; i++) {
            now += events[i].change;
            busy.threads = now > (long)busy.threads ? (size_t)now : busy.threads;
        }
        double parallel = find_parallel(threads, n);
        if (busy.threads > 1)
            busy.parallel = parallel < (double)busy.threads ? parallel : (double)busy.threads;
    }
    free(events);
    free(threads);
    analysis_windows_clear(&w);
    return busy;
}
