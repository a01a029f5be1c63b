/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - what happens to a buffer of records. It is decoded, and its lines come in batches to take_lines,
 * which finds their distances and counts them by site (or a helper thread has done the first part already,
 * ahead.h). Then the buffer is added to its window, and, of a burst, the row for the profile is made.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include "base/array.h"
#include "collect/reduce/reduce-internal.h"
#include "collect/tunables.h"

/* A buffer while it is reduced; the destination of its lines. */
struct sink {
    struct reducer *reducer;
    struct reduce_process *process;
    const struct wire_desc *desc;
    const uint64_t *words;
    uint64_t n;
    int full, in_burst;            /* neither: references are only counted */
    struct process_stack *stack;   /* full mode, else NULL */
    struct thread_stacks *threads; /* full mode of all lines */
    struct sites *sites;           /* NULL: not counted */
    struct decode_counts counts;
    uint64_t cold;
    uint64_t touches_left; /* burst mode: touches that are still analysed */
    uint64_t misses;       /* full mode: those of count_misses */
};

static int take_sites(struct sink *s, const struct ahead_batch *batch)
{
    if (s->process->paths != NULL)
        call_paths_batch(s->process->paths, batch->turns, batch->nturns);
    if (s->process->paths != NULL && s->process->objects != NULL)
        call_paths_note_frames(s->process->paths, objects_frames(s->process->objects));
    int status = sites_take(s->sites, &batch->touches, batch->sites, &batch->far,
                            batch->has_own ? &batch->own : NULL, s->process->objects, s->process->paths);
    if (s->process->paths != NULL)
        call_paths_batch_over(s->process->paths);
    return status;
}

/* The touches of a burst, for burst_summary.touched. 0 or -ENOMEM. */
static int keep_touched(struct reducer *r, const uint32_t *touched, size_t n)
{
    if (ARRAY_GROW_BY(r->touched, r->ntouched, n, r->touched_capacity) < 0)
        return -ENOMEM;
    memcpy(r->touched + r->ntouched, touched, n * sizeof(*touched));
    r->ntouched += n;
    return 0;
}

static int take_lines(void *ctx, const uint64_t *lines, size_t n)
{
    struct sink *s = ctx;
    struct reducer *r = s->reducer;
    struct stackdist_far *far = NULL, *own = NULL;
    struct ahead_batch batch = {.touches = {.lines = lines, .n = n},
                                .sites = decoder_touches(s->process->decoder)};
    int status;
    if (s->sites != NULL && (far = sites_far(s->sites, n, 0)) == NULL)
        return -ENOMEM;
    if (s->stack == NULL) {
        status = burst_touch_far(r->burst, lines, n, far);
    } else if (r->sample != NULL) { /* equal addresses of two processes are two lines, also for the hash */
        return linesample_touch(r->sample, process_stack_distances(s->stack), r->threshold,
                                s->process->id << 48, lines, n);
    } else {
        batch.touches.repeats = decoder_repeats(s->process->decoder, &batch.touches.nrepeats);
        if ((own = sites_far(s->sites, n, 1)) == NULL)
            return -ENOMEM;
        status = thread_stacks_touch(s->threads, s->desc->tid, process_stack_distances(s->stack),
                                     &batch.touches, &r->own, own, &batch.has_own);
        if (status == 0)
            status = process_stack_touch(s->stack, &batch.touches, &r->buffer_stack, r->hist, &s->cold, far);
    }
    if (status == 0 && far != NULL) {
        batch.far = *far;
        if (batch.has_own)
            batch.own = *own;
        batch.turns = s->process->paths != NULL ? decoder_turns(s->process->decoder, &batch.nturns) : NULL;
        status = take_sites(s, &batch);
        if (s->stack == NULL && status == 0)
            status = keep_touched(r, batch.sites, n);
    }
    if (s->stack != NULL)
        return status;
    s->touches_left -= n < s->touches_left ? n : s->touches_left;
    return status == 0 && s->touches_left == 0 ? -ECANCELED : status;
}

/* The first buffer that was decoded ahead, if it is this one. Others are discarded: the program has
 * overwritten what it shares with the recorder. NULL: it is decoded now, by this thread alone. */
static const struct ahead_buffer *find_ahead(struct reducer *r, const struct reduce_process *process,
                                             const struct wire_desc *desc)
{
    const struct ahead_buffer *first = r->ahead != NULL ? ahead_first(r->ahead) : NULL;
    if (first == NULL || (first->process == process->id && first->seq == desc->seq))
        return first;
    ahead_discard(r->ahead);
    return NULL;
}

/* Does with a buffer that was decoded ahead what decode_buffer does with take_lines. */
static int take_ahead(struct sink *s, const struct ahead_buffer *ahead)
{
    int status = ahead->status;
    s->counts = ahead->counts;
    s->cold += ahead->cold;
    ahead_note_sites(s->reducer->ahead, sites_noted(s->sites));
    for (size_t i = 0; i < ahead->nbatches && status == 0; i++)
        status = take_sites(s, &ahead->batches[i]);
    return status;
}

/* Adds the buffer's stack distances, which are smaller than the number of lines, to the run's. */
static void merge_stack(struct reducer *r, const struct hist *stack, uint32_t bins)
{
    struct hist *all = &r->hist[PROFILE_HIST_STACK];
    for (uint32_t bin = 0; bin < bins; bin++)
        all->count[bin] += stack->count[bin];
    all->total += stack->total;
}

/* A buffer or a burst was decoded, and the counts of its sites are not reset yet. ahead: NULL if it was not
 * decoded ahead. */
static int add_to_window(struct sink *s, const struct ahead_buffer *ahead,
                         const struct burst_summary *summary)
{
    struct reducer *r = s->reducer;
    const struct reduce_process *process = s->process;
    const struct decode_sites *executed = s->sites != NULL ? sites_noted(s->sites) : NULL;
    if (r->windows == NULL)
        return 0;
    if (s->stack == NULL)
        return s->counts.references > 0 ? windows_burst(r->windows, process->id, process->places, s->desc,
                                                        &summary->hist[PROFILE_HIST_STACK], summary->lines,
                                                        process->decoder, executed)
                                        : 0;
    uint32_t bins =
        ahead != NULL ? ahead->bins : hist_bin(stackdist_lines(process_stack_distances(s->stack))) + 1;
    const struct hist *stack = ahead != NULL ? &ahead->stack : &r->buffer_stack;
    const struct thread_buffer *own = ahead != NULL ? &ahead->own : &r->own;
    if (ahead == NULL)
        thread_stacks_buffer(s->threads, stack, bins, s->cold, &r->own);
    const struct windows_distances shared = {stack, bins, s->cold},
                                   of_thread = {&own->stack, own->bins, own->cold};
    int status = windows_buffer(r->windows, process->id, process->places, s->desc, s->counts.references,
                                &shared, own->bins > 0 ? &of_thread : NULL, process->decoder, executed);
    merge_stack(r, stack, bins);
    if (ahead == NULL) {
        memset(r->buffer_stack.count, 0, bins * sizeof(r->buffer_stack.count[0]));
        r->buffer_stack.total = 0;
        thread_buffer_clear(&r->own);
    }
    return status;
}

static uint64_t since(uint64_t start_ns, uint64_t ns)
{
    return ns > start_ns ? ns - start_ns : 0;
}

/*
 * References between bursts are unknown; but where the budget chose a longer gap, each reference represents
 * more. Counted in steps, so that a burst that was cut short counts for less, and a string instruction of
 * millions of elements does not outweigh all other bursts.
 */
static double weight_of(const struct decode_counts *counts, uint64_t gap_ns)
{
    return (double)counts->steps * (double)gap_ns / (COLLECT_GAP_US * 1e3);
}

static int make_row(const struct sink *s, struct profile_burst *row, struct error *err)
{
    const struct reducer *r = s->reducer;
    const struct wire_desc *desc = s->desc;
    const struct decode_counts *counts = &s->counts;
    struct refclock_burst clock;
    if (refclock_burst(s->process->clock, desc, counts->steps, &clock) < 0)
        return error_set(err, -ENOMEM, "out of memory for a process' threads");
    *row = (struct profile_burst){
        .process = s->process->id,
        .tid = desc->tid,
        .start_ns = since(r->start_ns, desc->start_ns),
        .end_ns = since(r->start_ns, desc->end_ns),
        .cpu_start_ns = desc->cpu_start_ns,
        .cpu_end_ns = desc->cpu_end_ns,
        .references = counts->references,
        .loads = counts->loads,
        .stores = counts->stores,
        .instructions = counts->instructions,
        .blocks = counts->records,
        .words = s->n,
        .new_blocks = desc->new_blocks,
        .pc = desc->pc,
        .end = desc->end < WIRE_END_COUNT ? desc->end : WIRE_END_FULL,
        .end_detail = desc->end_detail,
        .weight = isnan(clock.stratum_refs) ? weight_of(counts, desc->gap_ns) : clock.stratum_refs,
        .start_refs = clock.start_refs,
        .refs_per_ns = clock.refs_per_ns,
        .near_per_ns = clock.near_per_ns,
        .steps = counts->steps,
        .gap_ns = desc->count_gap != 0 ? NAN : (double)desc->gap_ns,
        .string_hits = desc->string_steps > 0 ? (double)desc->string_hits / (double)desc->string_steps : NAN,
    };
    return 0;
}

/* Steps of the program that the burst represents. */
static double represented(const struct profile_burst *row, const struct wire_desc *desc)
{
    return desc->count_gap != 0 ? row->weight : row->gap_ns * (row->refs_per_ns > 0 ? row->refs_per_ns : 1);
}

/* Touches of a buffer or burst that a cache of SYMBOLS_USE_LINES does not hold, first ones included. */
static uint64_t count_misses(const struct hist *stack, uint64_t first)
{
    uint64_t near = 0;
    for (uint32_t lines = 0; lines < SYMBOLS_USE_LINES; lines++)
        near += stack->count[lines];
    return stack->total - near + first;
}

/* represents: steps of the program. misses: see count_misses. 0, or -ENOMEM with err. */
static int look_at_lines(const struct sink *s, double represents, uint64_t misses, struct error *err)
{
    const struct shape_buffer buffer = {.desc = s->desc,
                                        .words = s->words,
                                        .n = s->n,
                                        .steps = s->counts.steps,
                                        .represents = represents,
                                        .misses = misses,
                                        .in_burst = s->in_burst};
    if (s->process->shape == NULL || shape_buffer(s->process->shape, &buffer, s->process->objects) == 0)
        return 0;
    return error_set(err, -ENOMEM, "out of memory for the use of lines");
}

static void add_totals(const struct sink *s, uint64_t cold)
{
    struct reducer *r = s->reducer;
    struct reduce_totals *t = &r->totals;
    const struct wire_desc *desc = s->desc;
    const struct decode_counts *counts = &s->counts;
    t->decoded.references += counts->references;
    t->decoded.loads += counts->loads;
    t->decoded.stores += counts->stores;
    t->decoded.touches += counts->touches;
    t->decoded.instructions += counts->instructions;
    t->decoded.records += counts->records;
    t->decoded.bad_records += counts->bad_records;
    t->cold = r->sample != NULL ? r->sample->cold : t->cold + cold;
    /* Bounded, since an invalid pair of times must not spoil the sum: no burst takes an hour. */
    uint64_t cpu_ns = desc->cpu_end_ns - desc->cpu_start_ns;
    if (desc->cpu_end_ns > desc->cpu_start_ns && cpu_ns < UINT64_C(3600000000000))
        t->burst_cpu_ns += cpu_ns;
    if (!s->full)
        return;
    t->full_references += counts->references;
    t->full_cold += cold;
    r->news = 1;
}

static int out_of_memory(const struct sink *s, int status, struct error *err)
{
    const struct reducer *r = s->reducer;
    if (r->ahead != NULL)
        ahead_wait(r->ahead);
    uint64_t memory = s->stack != NULL   ? stackdist_memory_bytes(process_stack_distances(s->stack))
                      : r->burst != NULL ? burst_memory_bytes(r->burst)
                                         : 0;
    return error_set(err, status, "out of memory for stack distances (%llu MB in use)",
                     (unsigned long long)memory >> 20);
}

int reduce_ahead(struct reducer *r, struct reduce_process *process, const struct wire_desc *desc,
                 const uint64_t *words, uint64_t n, struct error *err)
{
    if (r->mode != REDUCE_FULL || !r->distances || r->sample != NULL || r->in_turn)
        return 0;
    if (process->objects != NULL)
        objects_look_again(process->objects);
    jit_watch_look(&r->jit, &process->jit);
    if (r->ahead == NULL && (r->ahead = ahead_new()) == NULL) {
        r->in_turn = 1;
        return 0;
    }
    if (process->stack == NULL && reduce_make_stack(r, process, err) < 0)
        return -ENOMEM;
    const struct ahead_source source = {.process = process->id,
                                        .decoder = process->decoder,
                                        .stack = process->stack,
                                        .threads = process->threads,
                                        .run = r->hist,
                                        .desc = desc,
                                        .words = words,
                                        .n = n};
    return ahead_begin(r->ahead, &source);
}

/* The description with a gap that can be. */
static struct wire_desc with_bounded_gap(const struct reducer *r, const struct wire_desc *desc)
{
    struct wire_desc bounded = *desc;
    if (r->longest_gap_ns != 0 && desc->gap_ns > r->longest_gap_ns)
        bounded.gap_ns = r->gap_ns;
    return bounded;
}

/* Prepares what is counted of the buffer. 0, or negative with err. */
static int begin(struct sink *s, const struct wire_stack *stack, struct error *err)
{
    struct reducer *r = s->reducer;
    struct reduce_process *process = s->process;
    int status = 0;
    if (s->in_burst)
        status = burst_begin(r->burst, r->totals.bursts % COLLECT_SETS_EVERY == 0, err);
    if (status < 0)
        return status;
    r->ntouched = 0;
    if (s->in_burst && r->totals.bursts % r->sites_every == 0) {
        s->sites = r->sites;
        sites_forget(r->sites); /* of a burst without references */
    }
    if (s->sites != NULL)
        sites_note_causes(s->sites, r->causes, process->id);
    if (process->objects != NULL)
        objects_buffer(process->objects, s->desc);
    if (process->paths != NULL && (status = call_paths_buffer(process->paths, s->desc, stack)) < 0)
        return error_set(err, status, "out of memory for call paths");
    return 0;
}

static int decode(struct sink *s, const struct ahead_buffer *ahead)
{
    struct decoder *decoder = s->process->decoder;
    if (ahead != NULL)
        return take_ahead(s, ahead);
    if (reduce_set_strings(s->reducer, s->process, s->full) < 0)
        return -ENOMEM;
    decoder_note_sites(decoder, s->sites != NULL ? sites_noted(s->sites) : NULL);
    int status = decode_buffer(decoder, s->desc, s->words, s->n, s->reducer->distances ? take_lines : NULL, s,
                               &s->counts);
    return status == -ECANCELED ? 0 : status; /* it ends within a string instruction of very many elements */
}

/* All of its references have been counted. */
static int end(struct sink *s, const struct ahead_buffer *ahead, struct reduced *reduced)
{
    struct reducer *r = s->reducer;
    struct reduce_process *process = s->process;
    int status = 0;
    if (process->sharing != NULL && s->sites != NULL)
        status =
            sharing_buffer(process->sharing, s->desc, s->words, s->n, s->counts.references, process->objects);
    if (s->in_burst && status >= 0)
        status = burst_end(r->burst, &reduced->summary);
    if (status < 0)
        return status;
    if (s->in_burst && r->ntouched == reduced->summary.touches)
        reduced->summary.touched = r->touched;
    if (s->full && process->shape != NULL)
        s->misses = count_misses(ahead != NULL ? &ahead->stack : &r->buffer_stack, s->cold);
    if ((status = add_to_window(s, ahead, &reduced->summary)) < 0)
        return status;
    if (s->in_burst)
        reduced->has_sites = s->sites != NULL;
    else if (s->sites != NULL)
        sites_next_buffer(s->sites);
    if (r->code != NULL)
        jit_watch_look(&r->jit, &process->jit);
    return s->full && process->jit.is && s->sites != NULL ? reduce_slices_buffer(r, process, s->desc) : 0;
}

/* A burst, or references that are only counted. */
static int finish_burst(const struct sink *s, struct reduced *reduced, struct error *err)
{
    struct reducer *r = s->reducer;
    const struct burst_summary *summary = &reduced->summary;
    if (s->counts.references == 0)
        return 0;
    r->totals.bursts++;
    if (s->desc->count_gap != 0)
        r->totals.counted_references += s->counts.references;
    else
        r->totals.represented_ns += s->desc->gap_ns;
    reduced->is_burst = 1;
    int status = make_row(s, &reduced->row, err);
    if (status < 0 || !reduced->has_sites)
        return status;
    return look_at_lines(s, r->sites_every * represented(&reduced->row, s->desc),
                         count_misses(&summary->hist[PROFILE_HIST_STACK], summary->lines), err);
}

int reduce_buffer(struct reducer *r, struct reduce_process *process, const struct wire_desc *given,
                  const struct wire_stack *stack, const uint64_t *words, uint64_t n, struct reduced *reduced,
                  struct error *err)
{
    const struct wire_desc bounded = with_bounded_gap(r, given), *desc = &bounded;
    const int full = r->mode == REDUCE_FULL || (r->mode == REDUCE_FULL_FIRST && desc->full);
    *reduced = (struct reduced){0};
    if (full && r->distances && process->stack == NULL && reduce_make_stack(r, process, err) < 0)
        return -ENOMEM;
    struct sink s = {.reducer = r,
                     .process = process,
                     .desc = desc,
                     .words = words,
                     .n = n,
                     .full = full,
                     .in_burst = !full && r->distances,
                     .stack = full ? process->stack : NULL,
                     .threads = full ? process->threads : NULL,
                     .sites = full ? process->sites : NULL,
                     .touches_left = COLLECT_BURST_WORD_TOUCHES * n + COLLECT_BURST_MORE_TOUCHES};
    int status = begin(&s, stack, err);
    if (status < 0)
        return status;
    const struct ahead_buffer *ahead = find_ahead(r, process, desc);
    if ((status = decode(&s, ahead)) >= 0)
        status = end(&s, ahead, reduced);
    if (ahead != NULL)
        ahead_take(r->ahead);
    if (status < 0)
        return out_of_memory(&s, status, err);
    process->bad_records += s.counts.bad_records;
    process->ended[desc->end < WIRE_END_COUNT ? desc->end : WIRE_END_MORE]++;
    add_totals(&s, s.cold + reduced->summary.lines);
    return full ? look_at_lines(&s, (double)s.counts.steps, s.misses, err) : finish_burst(&s, reduced, err);
}

int reduce_tick(struct reducer *r, struct reduce_process *process, const struct wire_tick *tick,
                struct error *err)
{
    if (r->windows == NULL || windows_tick(r->windows, process->id, process->places, tick) == 0)
        return 0;
    return error_set(err, -ENOMEM, "out of memory for the windows of the run");
}

uint32_t reduce_object_of(void *ctx, const struct stackdist_survivor *survivor)
{
    const struct reduce_survivors *of = ctx;
    struct objects *objects = of->process->objects;
    const struct burst_summary *summary = of->summary;
    if (objects == NULL)
        return 0;
    if (summary->touched == NULL || survivor->age >= summary->touches)
        return objects_find(objects, survivor->line, OBJECTS_WHOLE_LINE, OBJECTS_NO_SITE);
    uint32_t touch = summary->touched[summary->touches - 1 - survivor->age];
    return objects_find(objects, survivor->line, decode_touch_part(touch), decode_touch_site(touch));
}
