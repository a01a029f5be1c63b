/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim-source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache.h"
#include "trace/trace.h"

/* Bits that distinguish address spaces: above all lines of user programs (57-bit addresses, lines of at least
 * 16 bytes). Beyond 511 processes and traces, some share a space. */
#define SPACE_SHIFT 53u
#define SPACES 512u

#define ROOM (2u * TRACE_BATCH + SIM_PACK_MAX)

struct input {
    struct trace_reader *reader;
    struct trace_batch batch;
    size_t at, segment; /* within the batch */
    int ended;
    /* The previous reference, for merge_rmw; last_rw 0: none. */
    uint64_t last_address, last_pc;
    uint32_t last_thread;
    uint16_t last_size;
    uint8_t last_rw;
};

struct space {
    size_t input;
    uint32_t pid;
};

struct sim_source {
    struct sim_source_options options;
    struct input *inputs;
    size_t turn;
    struct space space[SPACES];
    uint32_t nspaces, newest;
    /* References taken from a trace; the first `done` of n were returned. */
    size_t n, done;
    uint32_t core;
    int burst;
    uint64_t memory;         /* added to their accesses */
    const uint64_t *address; /* in the trace's batch, or in kept_ */
    const uint16_t *size;
    uint8_t store[TRACE_BATCH];
    uint64_t kept_address[TRACE_BATCH];
    uint16_t kept_size[TRACE_BATCH];
    uint64_t accesses[ROOM];
};

int sim_source_open(const struct sim_source_options *options, struct sim_source **result, struct error *err)
{
    struct sim_source *s = calloc(1, sizeof *s);
    if (s)
        s->inputs = calloc(options->npaths, sizeof *s->inputs);
    if (!s || !s->inputs) {
        free(s);
        return error_set(err, -ENOMEM, "out of memory for %zu traces", options->npaths);
    }
    s->options = *options;
    for (size_t i = 0; i < options->npaths; i++) {
        s->inputs[i].reader = trace_open(options->paths[i], options->from, err);
        if (!s->inputs[i].reader) {
            sim_source_close(s);
            return -EINVAL;
        }
    }
    *result = s;
    return 0;
}

void sim_source_close(struct sim_source *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->options.npaths; i++)
        trace_close(s->inputs[i].reader);
    free(s->inputs);
    free(s);
}

/* Added to the lines of a process. */
static uint64_t space_of(struct sim_source *s, size_t input, uint32_t pid)
{
    for (uint32_t tried = 0; tried < s->nspaces; tried++) {
        uint32_t i = (s->newest + tried) % s->nspaces;
        if (s->space[i].pid == pid && s->space[i].input == input) {
            s->newest = i;
            return (uint64_t)i << (SPACE_SHIFT + SIM_LINE_SHIFT);
        }
    }
    s->newest = s->nspaces < SPACES ? s->nspaces++ : SPACES - 1;
    s->space[s->newest] = (struct space){input, pid};
    return (uint64_t)s->newest << (SPACE_SHIFT + SIM_LINE_SHIFT);
}

/* Takes the references in->at .. end-1, which are of one segment. */
static void take(struct sim_source *s, const struct input *in, size_t end)
{
    const uint8_t *rw = in->batch.rw + in->at;
    s->address = in->batch.address + in->at;
    s->size = in->batch.size + in->at;
    s->n = end - in->at;
    for (size_t i = 0; i < s->n; i++)
        s->store[i] = rw[i] == TRACE_STORE;
}

/* The same without the stores of read-modify-writes. */
static void take_merged(struct sim_source *s, struct input *in, size_t end)
{
    const struct trace_batch *b = &in->batch;
    uint32_t thread = b->segment[in->segment].thread;
    size_t n = 0;
    for (size_t i = in->at; i < end; i++) {
        int merged = b->rw[i] == TRACE_STORE && in->last_rw == TRACE_LOAD &&
                     b->address[i] == in->last_address && b->size[i] == in->last_size &&
                     b->pc[i] == in->last_pc && thread == in->last_thread;
        in->last_address = b->address[i];
        in->last_pc = b->pc[i];
        in->last_size = b->size[i];
        in->last_rw = b->rw[i];
        in->last_thread = thread;
        s->kept_address[n] = b->address[i];
        s->kept_size[n] = b->size[i];
        s->store[n] = b->rw[i] == TRACE_STORE;
        n += !merged;
    }
    s->address = s->kept_address;
    s->size = s->kept_size;
    s->n = n;
}

/* Fetches the next references of one input. Returns their number, skipped ones included; 0 at its end;
 * negative on errors. */
static int64_t refill(struct sim_source *s, size_t index, struct error *err)
{
    struct input *in = &s->inputs[index];
    if (in->at == in->batch.n) {
        int status = trace_next(in->reader, &in->batch, err);
        if (status <= 0) {
            in->ended = status == 0;
            return status;
        }
        in->at = in->segment = 0;
    }
    const struct trace_segment *segment = &in->batch.segment[in->segment];
    size_t begin = in->at, end = s->options.npaths > 1 ? begin + 1 : segment->end;
    s->core = (uint32_t)((s->options.npaths > 1 ? index : segment->thread) % s->options.cores);
    s->burst = segment->burst && begin == segment->begin;
    s->memory = space_of(s, index, trace_thread(in->reader, segment->thread).pid);
    if (s->options.merge_rmw)
        take_merged(s, in, end);
    else
        take(s, in, end);
    s->done = 0;
    in->at = end;
    if (end == segment->end)
        in->segment++;
    return (int64_t)(end - begin);
}

int sim_source_next(struct sim_source *s, struct sim_stretch *stretch, struct error *err)
{
    int64_t references = 0;
    for (size_t ended = 0; s->done == s->n && references == 0;) {
        size_t index = s->turn;
        if (ended == s->options.npaths)
            return 0;
        s->turn = (index + 1) % s->options.npaths;
        references = s->inputs[index].ended ? 0 : refill(s, index, err);
        if (references < 0)
            return (int)references;
        ended++;
    }
    size_t taken = 0, words = 0;
    if (s->done < s->n)
        words = sim_pack(s->address + s->done, s->size + s->done, s->store + s->done, s->n - s->done,
                         s->options.line_bytes, s->options.straddle_once, s->accesses, ROOM, &taken);
    s->done += taken;
    for (size_t i = 0; s->memory && i < words; i++)
        s->accesses[i] ^= s->memory;
    *stretch = (struct sim_stretch){.core = s->core,
                                    .accesses = s->accesses,
                                    .n = words,
                                    .references = (uint64_t)references,
                                    .burst = references > 0 && s->burst};
    return 1;
}

double sim_source_progress(const struct sim_source *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->options.npaths; i++)
        sum += s->inputs[i].ended ? 1 : trace_progress(s->inputs[i].reader);
    return sum / (double)s->options.npaths;
}

int sim_source_sampled(const struct sim_source *s)
{
    for (size_t i = 0; i < s->options.npaths; i++)
        if (trace_info(s->inputs[i].reader)->sampled)
            return 1;
    return 0;
}

const struct error *sim_source_damage(const struct sim_source *s)
{
    for (size_t i = 0; i < s->options.npaths; i++)
        if (s->inputs[i].ended && trace_damage(s->inputs[i].reader))
            return trace_damage(s->inputs[i].reader);
    return NULL;
}
