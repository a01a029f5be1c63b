/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "collect/records/filter.h"
#include "collect/reduce/code-use.h"
#include "collect/reduce/reduce.h"
#include "collect/tunables.h"
#include "profile/sites.h"

/* Counts of a process' sites by time, one after the other. */
struct reduce_parts {
    uint8_t *bytes;
    size_t size, capacity;
    uint32_t block;              /* the last one */
    uint64_t nblocks;            /* so far */
    uint64_t begin_ns, since_ns; /* of the first part, and of the one that is counted now */
    uint64_t now_ns;             /* end of the last buffer */
};

struct reducer {
    enum reduce_mode mode;
    int full_over; /* REDUCE_FULL_FIRST: bursts have begun */
    int finishing; /* nothing more will be stored */
    int news;      /* in `hist`, since it was stored */
    int distances;
    double lines_rate;  /* full mode: share of the lines whose distances are measured */
    uint64_t threshold; /* of the hash of lines that pass the filter, if there is one */
    int filters;
    struct filter filter;
    struct linesample *sample; /* NULL: all lines */
    unsigned line_bytes;
    uint64_t start_ns;
    uint64_t gap_ns, longest_gap_ns; /* 0: not known */
    struct burst *burst;             /* burst mode */
    struct sites *sites;             /* likewise */
    unsigned sites_every;            /* likewise: sites are counted in one of so many bursts */
    uint64_t sites_bytes;            /* stored so far */
    struct code *code;
    struct object_table *objects;
    struct call_tree *paths;              /* NULL: not known */
    struct sampled_table *causes;         /* of struct symbols_cause */
    struct code_use *use;                 /* of processes that have ended; NULL: not looked at */
    struct hist hist[PROFILE_HIST_KINDS]; /* full mode */
    struct hist buffer_stack;             /* full mode: stack distances of the buffer that is reduced */
    struct thread_buffer own;             /* likewise, in the thread's own stack */
    struct ahead *ahead;                  /* full mode: NULL until it is needed, or if it cannot be had */
    int in_turn;                          /* buffers are not decoded ahead */
    struct jit_watch jit;
    struct symbols_slice *slices;
    size_t nslices, slices_capacity;
    uint64_t slices_bytes;
    struct windows *windows; /* NULL: none */
    uint32_t *touched;       /* decoder_touches of a burst's touches */
    size_t ntouched, touched_capacity;
    struct shape_piece *shape_piece; /* work space; NULL: nothing is recorded that needs it */
    struct reduce_totals totals;
};

/* Destination of a buffer's lines. */
struct sink {
    struct reducer *reducer;
    struct process_stack *stack;   /* full mode, else NULL */
    struct thread_stacks *threads; /* full mode of all lines */
    uint32_t tid;
    struct decoder *decoder;
    struct sites *sites; /* NULL: not counted */
    struct objects *objects;
    struct call_paths *paths; /* NULL: not known */
    uint64_t process;
    uint64_t cold;
    uint64_t touches_left; /* burst mode: touches that are still analysed */
};

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

static void parts_free(struct reduce_parts *parts)
{
    if (parts != NULL)
        free(parts->bytes);
    free(parts);
}

static void process_free(struct reduce_process *process)
{
    parts_free(process->parts);
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

/* How the process' decoder treats string instructions, in full mode or in a burst. 0 or -ENOMEM. */
static int set_strings(const struct reducer *r, struct reduce_process *process, int full)
{
    return decoder_strings(process->decoder, !full               ? DECODE_STRINGS_LINES
                                             : r->sample == NULL ? DECODE_STRINGS_REPEAT
                                                                 : DECODE_STRINGS_ALL);
}

/* One stack per process, so that equal addresses of two processes are two lines. */
static int make_stack(const struct reducer *r, struct reduce_process *process, struct error *err)
{
    if ((process->stack = process_stack_new(err)) == NULL)
        return -ENOMEM;
    if (set_strings(r, process, 1) < 0) {
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
    process->paths = call_paths_new(r->paths, r->objects, modules, nmodules, pid);
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

static int take_sites(struct sink *s, const struct ahead_batch *batch)
{
    if (s->paths != NULL)
        call_paths_batch(s->paths, batch->turns, batch->nturns);
    int status = sites_take(s->sites, &batch->touches, batch->sites, &batch->far,
                            batch->has_own ? &batch->own : NULL, s->objects, s->paths);
    if (s->paths != NULL)
        call_paths_batch_over(s->paths);
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
    struct ahead_batch batch = {.touches = {.lines = lines, .n = n}, .sites = decoder_touches(s->decoder)};
    int status;
    if (s->sites != NULL && (far = sites_far(s->sites, n, 0)) == NULL)
        return -ENOMEM;
    if (s->stack == NULL) {
        status = burst_touch_far(r->burst, lines, n, far);
    } else if (r->sample != NULL) { /* equal addresses of two processes are two lines, also for the hash */
        return linesample_touch(r->sample, process_stack_distances(s->stack), r->threshold, s->process << 48,
                                lines, n);
    } else {
        batch.touches.repeats = decoder_repeats(s->decoder, &batch.touches.nrepeats);
        if ((own = sites_far(s->sites, n, 1)) == NULL)
            return -ENOMEM;
        status = thread_stacks_touch(s->threads, s->tid, process_stack_distances(s->stack), &batch.touches,
                                     &r->own, own, &batch.has_own);
        if (status == 0)
            status = process_stack_touch(s->stack, &batch.touches, &r->buffer_stack, r->hist, &s->cold, far);
    }
    if (status == 0 && far != NULL) {
        batch.far = *far;
        if (batch.has_own)
            batch.own = *own;
        batch.turns = s->paths != NULL ? decoder_turns(s->decoder, &batch.nturns) : NULL;
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
static int take_ahead(struct sink *s, const struct ahead_buffer *ahead, struct decode_counts *counts)
{
    int status = ahead->status;
    *counts = ahead->counts;
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
static int add_to_window(struct reducer *r, struct reduce_process *process, const struct wire_desc *desc,
                         const struct sink *sink, const struct ahead_buffer *ahead,
                         const struct decode_counts *counts, const struct burst_summary *summary)
{
    const struct decode_sites *executed = sink->sites != NULL ? sites_noted(sink->sites) : NULL;
    if (r->windows == NULL)
        return 0;
    if (sink->stack == NULL)
        return counts->references > 0 ? windows_burst(r->windows, process->id, process->places, desc,
                                                      &summary->hist[PROFILE_HIST_STACK], summary->lines,
                                                      process->decoder, executed)
                                      : 0;
    uint32_t bins =
        ahead != NULL ? ahead->bins : hist_bin(stackdist_lines(process_stack_distances(sink->stack))) + 1;
    const struct hist *stack = ahead != NULL ? &ahead->stack : &r->buffer_stack;
    const struct thread_buffer *own = ahead != NULL ? &ahead->own : &r->own;
    if (ahead == NULL)
        thread_stacks_buffer(sink->threads, stack, bins, sink->cold, &r->own);
    const struct windows_distances shared = {stack, bins, sink->cold},
                                   of_thread = {&own->stack, own->bins, own->cold};
    int status = windows_buffer(r->windows, process->id, process->places, desc, counts->references, &shared,
                                own->bins > 0 ? &of_thread : NULL, process->decoder, executed);
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

static int make_row(const struct reducer *r, struct reduce_process *process, const struct wire_desc *desc,
                    const struct decode_counts *counts, uint64_t words, struct profile_burst *row,
                    struct error *err)
{
    struct refclock_burst clock;
    if (refclock_burst(process->clock, desc, counts->steps, &clock) < 0)
        return error_set(err, -ENOMEM, "out of memory for a process' threads");
    *row = (struct profile_burst){
        .process = process->id,
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
        .words = words,
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

/* 0, or -ENOMEM with err. */
static int look_at_lines(const struct reduce_process *process, const struct shape_buffer *buffer,
                         struct error *err)
{
    if (process->shape == NULL || shape_buffer(process->shape, buffer, process->objects) == 0)
        return 0;
    return error_set(err, -ENOMEM, "out of memory for the use of lines");
}

static void add_totals(struct reducer *r, const struct wire_desc *desc, int full,
                       const struct decode_counts *counts, uint64_t cold)
{
    struct reduce_totals *t = &r->totals;
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
    if (!full)
        return;
    t->full_references += counts->references;
    t->full_cold += cold;
    r->news = 1;
}

static int out_of_memory(struct reducer *r, const struct sink *sink, int status, struct error *err)
{
    if (r->ahead != NULL)
        ahead_wait(r->ahead);
    uint64_t memory = sink->stack != NULL ? stackdist_memory_bytes(process_stack_distances(sink->stack))
                      : r->burst != NULL  ? burst_memory_bytes(r->burst)
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
    if (process->stack == NULL && make_stack(r, process, err) < 0)
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

size_t reduce_ahead_waiting(const struct reducer *r)
{
    return r->ahead != NULL ? ahead_waiting(r->ahead) : 0;
}

void reducer_gap(struct reducer *r, uint64_t gap_ns)
{
    r->gap_ns = gap_ns;
    r->longest_gap_ns = gap_ns > r->longest_gap_ns ? gap_ns : r->longest_gap_ns;
}

/* The description with a gap that can be. */
static struct wire_desc with_bounded_gap(const struct reducer *r, const struct wire_desc *desc)
{
    struct wire_desc bounded = *desc;
    if (r->longest_gap_ns != 0 && desc->gap_ns > r->longest_gap_ns)
        bounded.gap_ns = r->gap_ns;
    return bounded;
}

/* --- full mode: counts by time, if code may change --- */

/* Adds what was counted since the last part. */
static int add_part(struct reducer *r, struct reduce_process *process)
{
    struct reduce_parts *parts = process->parts;
    const uint8_t *bytes;
    size_t size;
    int status =
        sites_part(process->sites, process->site_blocks, &parts->block, &parts->nblocks, &bytes, &size);
    if (status < 0 || size == 0)
        return status;
    if (ARRAY_GROW_BY(parts->bytes, parts->size, size, parts->capacity) < 0 ||
        ARRAY_GROW(r->slices, r->nslices, r->slices_capacity) < 0)
        return -ENOMEM;
    memcpy(parts->bytes + parts->size, bytes, size);
    parts->size += size;
    r->slices_bytes += size;
    r->slices[r->nslices++] =
        (struct symbols_slice){process->id, parts->nblocks, parts->since_ns, parts->now_ns};
    parts->since_ns = parts->now_ns;
    return 0;
}

static int end_slice(struct reducer *r, struct reduce_process *process, const struct wire_desc *desc)
{
    if (process->parts == NULL) {
        if ((process->parts = calloc(1, sizeof(*process->parts))) == NULL)
            return -ENOMEM;
        process->parts->begin_ns = process->parts->since_ns = desc->start_ns;
    }
    struct reduce_parts *parts = process->parts;
    uint64_t now_ns = parts->now_ns = desc->end_ns;
    uint64_t coarser = r->slices_bytes / COLLECT_SLICES_BYTES;
    uint64_t part = coarser < 32 ? COLLECT_SLICE_PART >> coarser : 0;
    if (now_ns <= parts->since_ns ||
        now_ns - parts->since_ns < (now_ns - parts->begin_ns) / (part > 0 ? part : 1))
        return 0;
    return add_part(r, process);
}

int reduce_buffer(struct reducer *r, struct reduce_process *process, const struct wire_desc *given,
                  const struct wire_stack *stack, const uint64_t *words, uint64_t n, struct reduced *reduced,
                  struct error *err)
{
    const struct wire_desc bounded = with_bounded_gap(r, given), *desc = &bounded;
    int full = r->mode == REDUCE_FULL || (r->mode == REDUCE_FULL_FIRST && desc->full);
    int in_burst = !full && r->distances, status = 0;
    struct decode_counts counts = {0};

    *reduced = (struct reduced){0};
    if (full && r->distances && process->stack == NULL && make_stack(r, process, err) < 0)
        return -ENOMEM;
    struct sink sink = {.reducer = r,
                        .stack = full ? process->stack : NULL,
                        .threads = full ? process->threads : NULL,
                        .tid = desc->tid,
                        .decoder = process->decoder,
                        .process = process->id,
                        .sites = full ? process->sites : NULL,
                        .objects = process->objects,
                        .paths = process->paths};
    sink.touches_left = COLLECT_BURST_WORD_TOUCHES * n + COLLECT_BURST_MORE_TOUCHES;
    if (in_burst)
        status = burst_begin(r->burst, r->totals.bursts % COLLECT_SETS_EVERY == 0, err);
    if (status < 0)
        return status;
    r->ntouched = 0;
    if (in_burst && r->totals.bursts % r->sites_every == 0) {
        sink.sites = r->sites;
        sites_forget(r->sites); /* of a burst without references */
    }
    if (sink.sites != NULL)
        sites_note_causes(sink.sites, r->causes, process->id);
    if (process->objects != NULL)
        objects_buffer(process->objects, desc);
    if (process->paths != NULL && (status = call_paths_buffer(process->paths, desc, stack)) < 0)
        return error_set(err, status, "out of memory for call paths");
    const struct ahead_buffer *ahead = find_ahead(r, process, desc);
    if (ahead != NULL) {
        status = take_ahead(&sink, ahead, &counts);
    } else if ((status = set_strings(r, process, full)) == 0) {
        decoder_note_sites(process->decoder, sink.sites != NULL ? sites_noted(sink.sites) : NULL);
        status =
            decode_buffer(process->decoder, desc, words, n, r->distances ? take_lines : NULL, &sink, &counts);
    }
    if (status == -ECANCELED) /* the burst ends within a string instruction of very many elements */
        status = 0;
    if (process->sharing != NULL && status >= 0 && sink.sites != NULL)
        status = sharing_buffer(process->sharing, desc, words, n, counts.references, process->objects);
    if (in_burst && status >= 0)
        status = burst_end(r->burst, &reduced->summary);
    if (in_burst && status >= 0 && r->ntouched == reduced->summary.touches)
        reduced->summary.touched = r->touched;
    struct shape_buffer looked_at = {.desc = desc,
                                     .words = words,
                                     .n = n,
                                     .steps = counts.steps,
                                     .represents = (double)counts.steps,
                                     .in_burst = in_burst};
    if (full && process->shape != NULL)
        looked_at.misses = count_misses(ahead != NULL ? &ahead->stack : &r->buffer_stack, sink.cold);
    if (status >= 0)
        status = add_to_window(r, process, desc, &sink, ahead, &counts, &reduced->summary);
    if (ahead != NULL)
        ahead_take(r->ahead);
    if (in_burst && sink.sites != NULL)
        reduced->has_sites = 1;
    else if (sink.sites != NULL && status >= 0)
        sites_next_buffer(sink.sites);
    if (r->code != NULL)
        jit_watch_look(&r->jit, &process->jit);
    if (full && process->jit.is && sink.sites != NULL && status >= 0)
        status = end_slice(r, process, desc);
    sink.cold += reduced->summary.lines;
    if (status < 0)
        return out_of_memory(r, &sink, status, err);
    process->bad_records += counts.bad_records;
    process->ended[desc->end < WIRE_END_COUNT ? desc->end : WIRE_END_MORE]++;
    add_totals(r, desc, full, &counts, sink.cold);
    if (full)
        return look_at_lines(process, &looked_at, err);
    if (counts.references == 0)
        return 0;
    r->totals.bursts++;
    if (desc->count_gap != 0)
        r->totals.counted_references += counts.references;
    else
        r->totals.represented_ns += desc->gap_ns;
    reduced->is_burst = 1;
    status = make_row(r, process, desc, &counts, n, &reduced->row, err);
    if (status < 0 || !reduced->has_sites)
        return status;
    looked_at.represents = r->sites_every * represented(&reduced->row, desc);
    looked_at.misses = count_misses(&reduced->summary.hist[PROFILE_HIST_STACK], reduced->summary.lines);
    return look_at_lines(process, &looked_at, err);
}

/* Keeps sites of fewer and fewer bursts, to bound the profile's size. */
static int thin_sites(struct reducer *r, struct profile *p, struct error *err)
{
    r->sites_every *= 2;
    return profile_thin_sites(p, r->sites_every, &r->sites_bytes, err);
}

int reduce_tail_touch(struct reducer *r, struct reduce_process *process, uint64_t line,
                      const struct sites_tail_touch *touch, struct error *err)
{
    struct sites_tail_touch of_object = *touch;
    of_object.object =
        process->objects != NULL ? objects_find(process->objects, line, touch->part, touch->site) : 0;
    return sites_take_tail(r->sites, &of_object) == 0
               ? 0
               : error_set(err, -ENOMEM, "out of memory for the sites of a process");
}

int reduce_store_sites(struct reducer *r, struct reduce_process *process, const struct reduced *reduced,
                       struct profile *p, struct error *err)
{
    const uint8_t *bytes;
    size_t size;
    if (!reduced->has_sites)
        return 0;
    if (sites_end(r->sites, process->site_blocks, &bytes, &size) < 0)
        return error_set(err, -ENOMEM, "out of memory for the sites of a process");
    r->sites_bytes += size;
    int status = profile_put_sites_counts(p, reduced->row.id, reduced->row.process, bytes, size, err);
    return status == 0 && r->sites_bytes > COLLECT_SITES_BYTES ? thin_sites(r, p, err) : status;
}

/* Watched lines are touched again by native code, where only the address of the instruction is known. */
static int name_hits(struct reducer *r, const struct reduce_process *process, struct profile *p,
                     const struct code_process *code, struct error *err)
{
    struct profile_hit *hits = NULL;
    size_t n = 0;
    int status = profile_hits(p, process->id, &hits, &n, err);
    for (size_t i = 0; i < n && status == 0; i++) {
        int64_t site = code_add_place(r->code, code, hits[i].pc);
        if (site >= 0)
            status = profile_set_hit_site(p, hits[i].watch, (uint64_t)site, err);
        else if (site != -ENOENT)
            status = error_set(err, -ENOMEM, "out of memory for the code of a process");
    }
    free(hits);
    return status;
}

int reduce_process_code(struct reducer *r, struct reduce_process *process, struct profile *p,
                        const struct code_process *code, struct error *err)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int status = 0;
    if (process->site_blocks == NULL)
        return 0;
    jit_watch_end(&r->jit, &process->jit);
    if (process->sites != NULL) {
        status = process->parts != NULL ? add_part(r, process)
                                        : sites_end(process->sites, process->site_blocks, &bytes, &size);
        if (status < 0)
            return error_set(err, -ENOMEM, "out of memory for the sites of a process");
        if (process->parts != NULL) {
            bytes = process->parts->bytes;
            size = process->parts->size;
        }
        status = size > 0 ? profile_put_sites_counts(p, 0, process->id, bytes, size, err) : 0;
    }
    if (status == 0 && process->threads != NULL)
        status = thread_stacks_store(process->threads, p, process->id,
                                     r->full_over ? process_stack_distances(process->stack) : NULL, err);
    if (status == 0 &&
        (status = code_add_process(r->code, process->decoder, process->site_blocks, code, &bytes, &size)) < 0)
        error_set(err, status, "out of memory for the code of a process");
    if (status == 0 && process->shape != NULL &&
        (status = code_use_add(r->use, process->shape, process->sharing, code)) < 0)
        error_set(err, status, "out of memory for the code of a process");
    if (status == 0 && process->shape != NULL)
        status = code_use_store(r->use, p, err);
    if (status == 0 && size > 0)
        status = profile_put_blocks(p, process->id, bytes, size, err);
    return status == 0 && r->mode != REDUCE_FULL ? name_hits(r, process, p, code, err) : status;
}

const struct code *reduce_code(const struct reducer *r)
{
    return r->code;
}

void reduce_describe(const struct reducer *r, struct symbols_code *code)
{
    code->causes = sampled_table_all(r->causes, &code->ncauses);
    code->start_ns = r->start_ns;
    code->growth = r->jit.list;
    code->ngrowth = r->jit.n;
    code->slices = r->slices;
    code->nslices = r->nslices;
    if (r->paths != NULL)
        call_tree_describe(r->paths, code);
    if (r->use != NULL)
        code_use_describe(r->use, code);
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

struct object_table *reduce_objects(const struct reducer *r)
{
    return r->objects;
}

/* First touches of a sampled line count as distances larger than any cache. */
static int store_sample(const struct reducer *r, struct profile *p, struct error *err)
{
    const struct linesample *sample = r->sample;
    struct hist *h = malloc(sizeof(*h));
    int status = h != NULL ? 0 : error_set(err, -ENOMEM, "out of memory for the histograms");
    if (status == 0)
        status = profile_put_hist(p, 0, PROFILE_HIST_STACK, &sample->stack, err);
    for (unsigned g = 0; g < LINESAMPLE_GROUPS && status == 0; g++) {
        *h = sample->groups[g].stack;
        hist_add(h, UINT64_MAX, sample->groups[g].cold);
        status = profile_put_group(p, g, h, err);
    }
    if (status == 0)
        status = profile_set_number(p, "touches", (double)r->totals.decoded.touches, err);
    free(h);
    return status;
}

void reduce_finishing(struct reducer *r)
{
    r->finishing = 1;
}

void reduce_full_over(struct reducer *r)
{
    r->full_over = 1;
}

int reduce_tick(struct reducer *r, struct reduce_process *process, const struct wire_tick *tick,
                struct error *err)
{
    if (r->windows == NULL || windows_tick(r->windows, process->id, process->places, tick) == 0)
        return 0;
    return error_set(err, -ENOMEM, "out of memory for the windows of the run");
}

int reduce_store(struct reducer *r, struct profile *p, struct error *err)
{
    int status = r->windows != NULL ? windows_store(r->windows, r->finishing, p, err) : 0;
    if (status < 0 || r->mode == REDUCE_BURSTS || !r->distances || !r->news)
        return status;
    r->news = 0;
    if (r->sample != NULL)
        return store_sample(r, p, err);
    for (int kind = 0; kind < PROFILE_HIST_KINDS && status == 0; kind++)
        status = profile_put_hist(p, 0, (enum profile_hist)kind, &r->hist[kind], err);
    return status;
}
