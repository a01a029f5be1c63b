/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/busy-threads.h"

#include <stdlib.h>

#include "analysis/windows.h"

#define BUSY_SHARE 0.1

/* A thread, or a process. */
struct worker {
    uint64_t process, start_ns, end_ns;
    double exact, sampled; /* references; ns */
};

/* A worker's start, or its end. */
struct event {
    uint64_t group, ns;
    int change;
};

/* By process and thread; returns their number. */
static size_t add_up(const struct analysis_windows *w, struct worker *threads)
{
    const struct profile_time_window *before = NULL;
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct profile_time_window *x = &w->list[w->by_thread[i]];
        if (!before || before->process != x->process || before->tid != x->tid)
            threads[n++] = (struct worker){.process = x->process, .start_ns = x->start_ns};
        struct worker *t = &threads[n - 1];
        t->end_ns = x->end_ns > t->end_ns ? x->end_ns : t->end_ns;
        t->exact += x->exact ? (double)x->references : 0;
        t->sampled += x->exact ? 0 : (double)x->cpu_ns;
        before = x;
    }
    return n;
}

/* By group and time; a worker that ends when another one starts did not work with it. */
static int compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->change - y->change;
}

/* Starts and ends of the busy ones, in events[2 * n]; returns their number. apart: each process is a group.
 */
static size_t events_of_busy(const struct worker *workers, size_t n, int apart, struct event *events)
{
    double exact = 0, exact_squares = 0, sampled = 0, sampled_squares = 0;
    size_t count = 0;
    for (const struct worker *t = workers; t < workers + n; t++) {
        exact += t->exact;
        exact_squares += t->exact * t->exact;
        sampled += t->sampled;
        sampled_squares += t->sampled * t->sampled;
    }
    for (const struct worker *t = workers; t < workers + n; t++) {
        uint64_t group = apart ? t->process : 0;
        if (t->exact * exact <= BUSY_SHARE * exact_squares &&
            t->sampled * sampled <= BUSY_SHARE * sampled_squares)
            continue;
        events[count++] = (struct event){group, t->start_ns, 1};
        events[count++] = (struct event){group, t->end_ns, -1};
    }
    qsort(events, count, sizeof *events, compare_events);
    return count;
}

/* The largest number of busy ones of a group at one time. */
static size_t most_at_once(const struct worker *workers, size_t n, int apart, struct event *events)
{
    size_t nevents = events_of_busy(workers, n, apart, events);
    long now = 0, most = 0;
    for (size_t i = 0; i < nevents; i++) {
        now += events[i].change;
        most = now > most ? now : most;
    }
    return (size_t)most;
}

/* Joins the threads of each process, in place; returns the number of processes. */
static size_t join_threads(struct worker *workers, size_t n)
{
    size_t processes = 0;
    for (size_t i = 0; i < n; i++) {
        struct worker *p = processes > 0 ? &workers[processes - 1] : NULL;
        if (!p || p->process != workers[i].process) {
            workers[processes++] = workers[i];
            continue;
        }
        p->start_ns = workers[i].start_ns < p->start_ns ? workers[i].start_ns : p->start_ns;
        p->end_ns = workers[i].end_ns > p->end_ns ? workers[i].end_ns : p->end_ns;
        p->exact += workers[i].exact;
        p->sampled += workers[i].sampled;
    }
    return processes;
}

/* The work of the process with most, divided by that of its busiest thread. threads[n]: by process. */
static double find_parallel(const struct worker *threads, size_t n)
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
    struct worker *threads = NULL;
    struct event *events = NULL;
    if (analysis_windows_load(p, "", &w, NULL) == 0 && (threads = calloc(w.n, sizeof *threads)) != NULL &&
        (events = calloc(2 * w.n, sizeof *events)) != NULL) {
        size_t n = add_up(&w, threads);
        busy.threads = most_at_once(threads, n, 1, events);
        double parallel = find_parallel(threads, n);
        if (busy.threads > 1)
            busy.parallel = parallel < (double)busy.threads ? parallel : (double)busy.threads;
        busy.processes = most_at_once(threads, join_threads(threads, n), 0, events);
    }
    free(events);
    free(threads);
    analysis_windows_clear(&w);
    return busy;
}
