/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/busy-threads.h"

#include <stdlib.h>

#include "analysis/windows.h"

#define BUSY_SHARE 0.1

struct thread {
    uint64_t process, start_ns, end_ns;
    double exact, sampled; /* references; ns */
};

/* By process and thread; returns their number. */
static size_t add_up(const struct analysis_windows *w, struct thread *threads, struct thread *all)
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
        all->exact += x->exact ? (double)x->references : 0;
        all->sampled += x->exact ? 0 : (double)x->cpu_ns;
        before = x;
    }
    return n;
}

static int is_busy(const struct thread *t, const struct thread *all)
{
    return t->exact > BUSY_SHARE * all->exact || t->sampled > BUSY_SHARE * all->sampled;
}

size_t analysis_busy_threads(struct profile *p)
{
    struct analysis_windows w;
    struct thread all = {0}, *threads = NULL;
    size_t n = 0, most = 0;
    if (analysis_windows_load(p, "", &w, NULL) == 0 && (threads = calloc(w.n, sizeof *threads)) != NULL)
        n = add_up(&w, threads, &all);
    for (size_t i = 0; i < n; i++) {
        size_t together = 1;
        for (size_t k = 0; k < n && is_busy(&threads[i], &all); k++)
            together += k != i && threads[k].process == threads[i].process && is_busy(&threads[k], &all) &&
                        threads[k].start_ns < threads[i].end_ns && threads[i].start_ns < threads[k].end_ns;
        most = is_busy(&threads[i], &all) && together > most ? together : most;
    }
    free(threads);
    analysis_windows_clear(&w);
    return most;
}
