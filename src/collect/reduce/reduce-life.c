/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce-life.c - how the reducer and the processes that it knows begin and end. What is made depends on what
 * is recorded: nothing but counts; bursts with their sites; or, in full mode, stack distances of a process's
 * whole life, of all lines or of a sample of them.
 */
#include <errno.h>
#include <stdlib.h>
#include "collect/clock/agent-time.h"
#include "collect/reduce/reduce-internal.h"
#include "collect/tunables.h"

struct reducer *reducer_new(enum reduce_mode mode, double lines_rate, int distances, unsigned line_bytes,
                            uint64_t start_ns, struct error *err)
{
    struct reducer *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        error_set(err, -ENOMEM, "out of memory for the histograms");
        return NULL;
    }
    r->mode = mode;
    r->distances = distances;
    r->lines_rate = mode == REDUCE_FULL && distances ? lines_rate : 1;
    r->line_bytes = line_bytes;
    r->start_ns = start_ns;
    r->sites_every = 1;
    int failed =
        distances && ((r->code = code_new(err)) == NULL || (r->objects = object_table_new(err)) == NULL ||
                      (r->causes = sampled_table_new(COLLECT_CAUSES, SYMBOLS_CAUSE_KEY, err)) == NULL);
    if (!failed && mode != REDUCE_FULL && distances)
        failed = (r->burst = burst_new(err)) == NULL || (r->sites = sites_new(1, err)) == NULL;
    if (!failed && r->lines_rate < 1) {
        r->threshold = linesample_threshold(r->lines_rate);
        if ((failed = (r->sample = calloc(1, sizeof(*r->sample))) == NULL))
            error_set(err, -ENOMEM, "out of memory for the histograms");
    }
    if (!failed && distances && r->sample == NULL)
        failed = (r->windows = windows_new(line_bytes, start_ns, err)) == NULL;
    if (!failed && distances && r->sample == NULL &&
        (failed = (r->shape_piece = shape_piece_new()) == NULL || (r->use = code_use_new(r->code)) == NULL))
        error_set(err, -ENOMEM, "out of memory for the use of lines");
    if (failed) {
        reducer_free(r);
        return NULL;
    }
    return r;
}

void reducer_filter(struct reducer *r, const uint8_t passes[WIRE_FILTER_CLASSES], double share)
{
    filter_init(&r->filter, passes);
    r->filters = 1;
    r->threshold = r->lines_rate < share ? linesample_threshold(r->lines_rate / share) : LINESAMPLE_ALL;
}

void reducer_free(struct reducer *r)
{
    if (r == NULL)
        return;
    ahead_free(r->ahead);
    free(r->sample);
    burst_free(r->burst);
    free(r->touched);
    sites_free(r->sites);
    code_use_free(r->use);
    jit_watch_clear(&r->jit);
    free(r->slices);
    code_free(r->code);
    object_table_free(r->objects);
    call_tree_free(r->paths);
    windows_free(r->windows);
    shape_piece_free(r->shape_piece);
    sampled_table_free(r->causes);
    free(r);
}

const struct reduce_totals *reduce_totals(const struct reducer *r)
{
    static const struct reduce_totals nothing;
    return r != NULL ? &r->totals : &nothing;
}

static void process_free(struct reduce_process *process)
{
    reduce_slices_free(process->parts);
    process_stack_free(process->stack);
    thread_stacks_free(process->threads);
    refclock_free(process->clock);
    decoder_free(process->decoder);
    sites_free(process->sites);
    objects_free(process->objects);
    call_paths_free(process->paths);
    free(process->site_blocks);
    windows_code_free(process->places);
    shape_free(process->shape);
    sharing_free(process->sharing);
    *process = (struct reduce_process){0};
}

int reduce_process_init(struct reducer *r, struct reduce_process *process, const struct decode_source *source,
                        const struct wire_module *modules, const uint32_t *nmodules, uint32_t pid,
                        struct error *err)
{
    *process = (struct reduce_process){.jit = {.modules = modules, .nmodules = nmodules, .pid = pid}};
    process->decoder = decoder_new(r->line_bytes, source, err);
    if (process->decoder == NULL)
        return -ENOMEM;
    if (r->filters && decoder_filter(process->decoder, &r->filter) < 0) {
        process_free(process);
        return error_set(err, -ENOMEM, "out of memory for the decoder of a process");
    }
    if ((process->clock = refclock_new()) == NULL) {
        process_free(process);
        return error_set(err, -ENOMEM, "out of memory for the clock of a process");
    }
    if (!r->distances)
        return 0;
    process->site_blocks = calloc(1, WIRE_MAX_BLOCKS / 8);
    process->places = windows_code_new(modules, nmodules, err);
    if (r->sample == NULL) {
        process->shape = shape_new(source, r->line_bytes, r->shape_piece, err);
        process->sharing = sharing_new(source, r->line_bytes, err);
    }
    if (process->site_blocks != NULL && process->places != NULL &&
        ((process->shape != NULL && process->sharing != NULL) || r->sample != NULL))
        return 0;
    process_free(process);
    return error_set(err, -ENOMEM, "out of memory for the code of a process");
}

int reduce_set_strings(const struct reducer *r, struct reduce_process *process, int full)
{
    return decoder_strings(process->decoder, !full               ? DECODE_STRINGS_LINES
                                             : r->sample == NULL ? DECODE_STRINGS_REPEAT
                                                                 : DECODE_STRINGS_ALL);
}

int reduce_make_stack(const struct reducer *r, struct reduce_process *process, struct error *err)
{
    if ((process->stack = process_stack_new(err)) == NULL)
        return -ENOMEM;
    if (reduce_set_strings(r, process, 1) < 0) {
        process_stack_free(process->stack);
        process->stack = NULL;
        return error_set(err, -ENOMEM, "out of memory for the references of a process");
    }
    if (r->sample != NULL || ((process->sites = sites_new(COLLECT_NEAR_EVERY, err)) != NULL &&
                              (process->threads = thread_stacks_new(process->jit.pid, err)) != NULL))
        return 0;
    sites_free(process->sites);
    process->sites = NULL;
    process_stack_free(process->stack);
    process->stack = NULL;
    return -ENOMEM;
}

int reduce_process_began(struct reducer *r, const struct reduce_process *process, uint32_t pid,
                         uint64_t start_ns, uint64_t cpu_ns)
{
    return r->windows != NULL ? windows_process(r->windows, process->id, pid, start_ns, cpu_ns) : 0;
}

int reduce_process_objects(struct reducer *r, struct reduce_process *process, struct wire_proc *proc,
                           uint32_t pid, const struct reduce_process *copied, struct error *err)
{
    if (r->objects == NULL || r->sample != NULL) /* then no sites are counted */
        return 0;
    if ((process->objects = objects_new(r->objects, proc, pid, r->line_bytes, err)) == NULL)
        return -ENOMEM;
    if (agent_there(proc, (pid_t)pid) == 0)
        objects_replaced(process->objects);
    if (copied != NULL && copied->objects != NULL && objects_inherit(process->objects, copied->objects) < 0)
        return error_set(err, -ENOMEM, "out of memory for the data objects of a process");
    /* In full mode no thread waits for an answer: the process may end before its first buffer arrives. */
    if (r->mode != REDUCE_BURSTS)
        objects_look(process->objects);
    return 0;
}

int reduce_process_paths(struct reducer *r, struct reduce_process *process, const struct wire_module *modules,
                         const uint32_t *nmodules, uint32_t pid, struct error *err)
{
    if (r->objects == NULL || r->sample != NULL) /* then no sites are counted */
        return 0;
    if (r->paths == NULL && (r->paths = call_tree_new(r->code, err)) == NULL)
        return -ENOMEM;
    process->paths = call_paths_new(r->paths, r->objects, process->decoder, modules, nmodules, pid);
    if (process->paths == NULL || decoder_note_turns(process->decoder) < 0)
        return error_set(err, -ENOMEM, "out of memory for the call paths of a process");
    return 0;
}

void reduce_process_clear(struct reducer *r, struct reduce_process *process)
{
    if (r->ahead != NULL)
        ahead_wait(r->ahead);
    if (process->stack != NULL && r->sample == NULL) {
        process_stack_end(process->stack, r->hist);
        r->totals.full_left += r->full_over ? stackdist_lines(process_stack_distances(process->stack)) : 0;
        r->news = 1;
    }
    process_free(process);
}

size_t reduce_ahead_waiting(const struct reducer *r)
{
    return r->ahead != NULL ? ahead_waiting(r->ahead) : 0;
}

void reducer_gap(struct reducer *r, uint64_t gap_ns)
{
    r->gap_ns = gap_ns;
    r->longest_gap_ns = gap_ns > r->longest_gap_ns ? gap_ns : r->longest_gap_ns;
}

const struct code *reduce_code(const struct reducer *r)
{
    return r->code;
}

struct object_table *reduce_objects(const struct reducer *r)
{
    return r->objects;
}

void reduce_finishing(struct reducer *r)
{
    r->finishing = 1;
}

void reduce_full_over(struct reducer *r)
{
    r->full_over = 1;
}
