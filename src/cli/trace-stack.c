/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace-stack.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/progress.h"

/* Processes in order of appearance; each has its own memory. */
struct spaces {
    uint32_t *pid;
    uint32_t n;
    size_t capacity;
    uint32_t newest;
};

static int64_t space_of(struct spaces *s, uint32_t pid)
{
    for (uint32_t i = s->newest, tried = 0; tried < s->n; tried++, i = i + 1 == s->n ? 0 : i + 1)
        if (s->pid[i] == pid)
            return s->newest = i;
    if (ARRAY_GROW(s->pid, s->n, s->capacity) < 0)
        return -ENOMEM;
    s->pid[s->n] = pid;
    return s->newest = s->n++;
}

/* Passes a batch on in stretches of one thread, or of one process if threads are not separate. */
static int add_batch(struct stackset *set, const struct trace_reader *r, struct spaces *spaces, int separate,
                     const struct trace_batch *batch, struct error *err)
{
    for (size_t i = 0; i < batch->nsegments;) {
        uint32_t thread = batch->segment[i].thread, begin = batch->segment[i].begin;
        uint32_t pid = trace_thread(r, thread).pid;
        int64_t space = space_of(spaces, pid);
        if (space < 0)
            return error_set(err, (int)space, "out of memory for processes");
        for (i++; i < batch->nsegments; i++)
            if (separate ? batch->segment[i].thread != thread
                         : trace_thread(r, batch->segment[i].thread).pid != pid)
                break;
        int status = stackset_add(set, separate ? thread : 0, (uint32_t)space, batch->address + begin,
                                  batch->size + begin, batch->segment[i - 1].end - begin, err);
        if (status < 0)
            return status;
    }
    return 0;
}

int trace_stack_read(const char *what, struct stackset *set, struct trace_reader *r, int separate,
                     uint64_t *references, struct error *err)
{
    struct progress progress = progress_begin(what);
    struct spaces spaces = {0};
    struct trace_batch batch;
    int status = 0;
    cli_catch_interrupts();
    while (!cli_interrupted() && (status = trace_next(r, &batch, err)) > 0) {
        status = add_batch(set, r, &spaces, separate, &batch, err);
        if (status < 0)
            break;
        *references += batch.n;
        progress_show(&progress, trace_progress(r), *references);
    }
    if (status >= 0)
        status = stackset_wait(set, err);
    progress_end(&progress);
    free(spaces.pid);
    return status;
}
