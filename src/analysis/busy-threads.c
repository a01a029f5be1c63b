/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/busy-threads.h"

#include <stdlib.h>

#include "analysis/windows.h"

/* A thread or process is busy if it does at least this part of the work that others do at that time. */
#define BUSY_SHARE 0.1
/* A number of busy ones counts if at least this part of all work was done while so many were busy. */
#define LEAST_WORK 0.1

/* Of work: references, and ns of CPU time; and CPU time in windows of any kind, by which work of both kinds
 * at one time is compared. */
enum { EXACT, SAMPLED, CPU, KINDS };

/* A thread, or a process. */
struct worker {
    size_t process;
    double rate[KINDS]; /* work for each ns of elapsed time, of the windows that it is in */
    size_t windows, at; /* how many these are; place among those that are in any */
    double work[CPU];
};

/* A window begins or ends. */
struct event {
    size_t group, worker;
    uint64_t ns;
    int change;
    double rate[KINDS];
};

/* Which workers are in windows at the time that the sweep has reached, and the work up to it. */
struct sweep {
    struct worker *workers;
    size_t *active, nactive;
    double *work[CPU]; /* by the number of workers that were busy when it was done */
};

/* By group and time; a window that ends when another one begins does not overlap it. */
static int compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->change - y->change;
}

/* The threads with their work, by process; their number. thread_of[i]: that of window i of by_thread. */
static size_t list_threads(const struct analysis_windows *w, struct worker *threads, size_t *thread_of)
{
    const struct profile_time_window *before = NULL;
    size_t n = 0, process = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct profile_time_window *x = &w->list[w->by_thread[i]];
        process += before && before->process != x->process;
        if (!before || before->process != x->process || before->tid != x->tid)
            threads[n++] = (struct worker){.process = process};
        threads[n - 1].work[EXACT] += x->exact ? (double)x->references : 0;
        threads[n - 1].work[SAMPLED] += x->exact ? 0 : (double)x->cpu_ns;
        thread_of[i] = n - 1;
        before = x;
    }
    return n;
}

/* Of all windows; apart: workers are threads, each process a group of them; otherwise workers are processes.
 */
static size_t list_events(const struct analysis_windows *w, const struct worker *threads,
                          const size_t *thread_of, int apart, struct event *events)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct profile_time_window *x = &w->list[w->by_thread[i]];
        size_t process = threads[thread_of[i]].process;
        uint64_t end_ns = x->end_ns > x->start_ns ? x->end_ns : x->start_ns + 1;
        struct event e = {.group = apart ? process : 0,
                          .worker = apart ? thread_of[i] : process,
                          .ns = x->start_ns,
                          .change = 1};
        e.rate[x->exact ? EXACT : SAMPLED] =
            (double)(x->exact ? x->references : x->cpu_ns) / (double)(end_ns - x->start_ns);
        e.rate[CPU] = (double)x->cpu_ns / (double)(end_ns - x->start_ns);
        events[n++] = e;
        e.ns = end_ns;
        e.change = -1;
        events[n++] = e;
    }
    qsort(events, n, sizeof *events, compare_events);
    return n;
}

static void apply(struct sweep *s, const struct event *e)
{
    struct worker *worker = &s->workers[e->worker];
    if (e->change > 0 && worker->windows++ == 0) {
        worker->at = s->nactive;
        s->active[s->nactive++] = e->worker;
    }
    for (int kind = 0; kind < KINDS; kind++)
        worker->rate[kind] += e->change * e->rate[kind];
    if (e->change < 0 && --worker->windows == 0) {
        size_t last = s->active[--s->nactive];
        s->active[worker->at] = last;
        s->workers[last].at = worker->at;
        worker->rate[EXACT] = worker->rate[SAMPLED] = worker->rate[CPU] = 0;
    }
}

/* The work of so many ns in which no window begins or ends. */
static void add_work(struct sweep *s, double ns)
{
    double sum[KINDS] = {0}, squares[KINDS] = {0};
    size_t busy = 0;
    for (size_t i = 0; i < s->nactive; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            double rate = s->workers[s->active[i]].rate[kind];
            sum[kind] += rate;
            squares[kind] += rate * rate;
        }
    int mixed = sum[EXACT] > 0 && sum[SAMPLED] > 0 && sum[CPU] > 0;
    for (size_t i = 0; i < s->nactive; i++) {
        const double *rate = s->workers[s->active[i]].rate;
        int first = mixed ? CPU : EXACT, last = mixed ? CPU : SAMPLED, is_busy = 0;
        for (int kind = first; kind <= last; kind++)
            is_busy |= rate[kind] * sum[kind] > BUSY_SHARE * squares[kind];
        busy += (size_t)is_busy;
    }
    for (int kind = 0; kind < CPU; kind++)
        s->work[kind][busy] += sum[kind] * ns;
}

/* The largest number that were busy during enough of the work. */
static size_t most_busy(const struct sweep *s, size_t nworkers)
{
    size_t most = 0;
    for (int kind = 0; kind < CPU; kind++) {
        double all = 0, above = 0;
        for (size_t i = 0; i <= nworkers; i++)
            all += s->work[kind][i];
        for (size_t i = nworkers; i > most; i--)
            if ((above += s->work[kind][i]) > 0 && above >= LEAST_WORK * all)
                most = i;
    }
    return most;
}

/* workers[]: in no window. 0 if memory is short. */
static size_t most_at_once(struct worker *workers, size_t nworkers, const struct event *events, size_t n)
{
    struct sweep s = {
        .workers = workers,
        .active = calloc(nworkers, sizeof *s.active),
        .work = {calloc(nworkers + 1, sizeof *s.work[0]), calloc(nworkers + 1, sizeof *s.work[0])}};
    size_t most = 0;
    if (s.active && s.work[EXACT] && s.work[SAMPLED]) {
        for (size_t i = 0; i < n; i++) {
            if (s.nactive > 0 && events[i].ns > events[i - 1].ns)
                add_work(&s, (double)(events[i].ns - events[i - 1].ns));
            apply(&s, &events[i]);
        }
        most = most_busy(&s, nworkers);
    }
    free(s.active);
    free(s.work[EXACT]);
    free(s.work[SAMPLED]);
    return most;
}

/* The work of the process with most, divided by that of its busiest thread. threads[n]: by process. */
static double find_parallel(const struct worker *threads, size_t n)
{
    double sampled = 0, most = 0, parallel = 1;
    for (size_t i = 0; i < n; i++)
        sampled += threads[i].work[SAMPLED];
    for (size_t i = 0; i < n;) {
        double all = 0, largest = 0;
        size_t process = threads[i].process;
        for (; i < n && threads[i].process == process; i++) {
            double work = threads[i].work[sampled > 0 ? SAMPLED : EXACT];
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
    struct worker *threads = NULL, *processes = NULL;
    struct event *events = NULL;
    size_t *thread_of = NULL;
    if (analysis_windows_load(p, "", &w, NULL) == 0 && w.n > 0 &&
        (threads = calloc(w.n, sizeof *threads)) != NULL &&
        (processes = calloc(w.n, sizeof *processes)) != NULL &&
        (thread_of = calloc(w.n, sizeof *thread_of)) != NULL &&
        (events = calloc(2 * w.n, sizeof *events)) != NULL) {
        size_t n = list_threads(&w, threads, thread_of);
        busy.threads = most_at_once(threads, n, events, list_events(&w, threads, thread_of, 1, events));
        double parallel = find_parallel(threads, n);
        if (busy.threads > 1)
            busy.parallel = parallel < (double)busy.threads ? parallel : (double)busy.threads;
        busy.processes = most_at_once(processes, threads[n - 1].process + 1, events,
                                      list_events(&w, threads, thread_of, 0, events));
    }
    free(events);
    free(thread_of);
    free(processes);
    free(threads);
    analysis_windows_clear(&w);
    return busy;
}
