/* SPDX-License-Identifier: Apache-2.0 */
/*
 * corun_window.c - lines are kept as 31 bits and a store flag, 4 bytes a touch: the low 20 bits as they are,
 * since sets of caches are chosen by them; above, the number of the 64 MB region, in the order of first use.
 */
#include "corun_window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/stackdist.h"
#include "trace/trace.h"

#define REGION_BITS 20u
#define MB_LINES 16384.0

void window_die(const char *what, const struct error *err)
{
    fprintf(stderr, "bench_corun: %s: %s\n", what, err ? err->text : "failed");
    exit(1);
}

void *window_need(void *memory)
{
    if (!memory)
        window_die("memory", NULL);
    return memory;
}

/* --- loading --- */

static uint32_t pack(struct window *w, uint64_t line, int store)
{
    uint64_t region = line >> REGION_BITS;
    uint32_t i = 0;
    while (i < w->regions && w->region[i] != region)
        i++;
    if (i == w->regions) {
        if (i == WINDOW_REGIONS)
            window_die(w->name, NULL);
        w->region[w->regions++] = region;
    }
    return (i << REGION_BITS | (uint32_t)(line & ((1u << REGION_BITS) - 1))) << 1 | (store != 0);
}

static void take(struct window *w, const struct trace_batch *batch, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        uint64_t line = batch->address[i] / 64, last = (batch->address[i] + batch->size[i] - 1) / 64;
        for (; line <= last; line++) {
            if (w->n == w->capacity) {
                w->capacity += w->capacity / 8 + 1024;
                w->touch = window_need(realloc(w->touch, w->capacity * sizeof *w->touch));
            }
            w->touch[w->n++] = pack(w, line, batch->rw[i] == TRACE_STORE);
        }
    }
}

void window_load(struct window *w, const char *path, unsigned rounds, size_t most)
{
    const char *slash = strrchr(path, '/');
    struct trace_batch batch;
    struct error err;
    int status;
    memset(w, 0, sizeof *w);
    snprintf(w->name, sizeof w->name, "%s", slash ? slash + 1 : path);
    w->name[strcspn(w->name, ".")] = 0;
    struct trace_reader *r = trace_open(path, NULL, &err);
    if (!r)
        window_die(path, &err);
    uint64_t all = trace_info(r)->references, seen = 0;
    if (all == TRACE_UNKNOWN)
        window_die(path, NULL);
    uint64_t begin = all / rounds * (rounds / 2), end = begin + all / rounds;
    if (most && end - begin > most) {
        begin += (end - begin - most) / 2;
        end = begin + most;
    }
    w->capacity = (size_t)(end - begin);
    w->touch = window_need(malloc(w->capacity * sizeof *w->touch));
    while ((status = trace_next(r, &batch, &err)) > 0) {
        uint64_t from = begin > seen ? begin - seen : 0, to = end > seen ? end - seen : 0;
        take(w, &batch, from < batch.n ? (size_t)from : batch.n, to < batch.n ? (size_t)to : batch.n);
        seen += batch.n;
    }
    if (status < 0)
        window_die(path, &err);
    uint64_t instructions = trace_info(r)->instructions;
    trace_close(r);
    if (!instructions || !w->n)
        window_die("a trace that does not tell its instructions, or is empty", NULL);
    w->references_per_instruction =
        (double)seen / (double)instructions * (double)w->n / (double)(end - begin);

    struct knowledge *whole = window_need(calloc(1, sizeof *whole));
    window_know(w, &w->n, 1, &whole);
    w->rise = statcc_curve_miss(&whole->exact, MB_LINES) - statcc_curve_miss(&whole->exact, 2 * MB_LINES);
    fprintf(stderr, "%-12s %zu touches, rise %.5f at 2M %.5f cold %.5f\n", w->name, w->n, w->rise,
            statcc_curve_miss(&whole->exact, 2 * MB_LINES), (double)whole->cold / (double)w->n);
    free(whole);
}

/* --- distances --- */

static void feed(struct stackdist *sd, const struct window *w, size_t from, size_t to, struct knowledge *k)
{
    enum { BATCH = 4096 };
    uint64_t lines[BATCH];
    while (from < to) {
        size_t m = 0;
        while (m < BATCH && from < to)
            lines[m++] = w->touch[from++] >> 1;
        if (stackdist_touch_many(sd, lines, m, &k->stack, &k->reuse, NULL, &k->cold, NULL) != 0)
            window_die("memory", NULL);
    }
}

static void make_curves(const struct window *w, struct knowledge *k)
{
    struct error err;
    if (statcc_curve_statstack(&k->reuse, k->cold, &k->statstack, &err) != 0 ||
        statcc_curve_exact(&k->stack, &k->reuse, k->cold, &k->exact, &err) != 0)
        window_die(w->name, &err);
}

void window_know(const struct window *w, const size_t *prefix, size_t n, struct knowledge *const *known)
{
    struct error err;
    struct stackdist *sd = window_need(stackdist_new(&err));
    struct knowledge *sum = window_need(calloc(1, sizeof *sum));
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        feed(sd, w, at, prefix[i], sum);
        at = prefix[i];
        *known[i] = *sum;
        make_curves(w, known[i]);
    }
    free(sum);
    stackdist_free(sd);
}

void window_know_loop(const struct window *w, struct knowledge *known)
{
    struct error err;
    struct stackdist *sd = window_need(stackdist_new(&err));
    feed(sd, w, 0, w->n, known);
    memset(known, 0, sizeof *known);
    feed(sd, w, 0, w->n, known);
    make_curves(w, known);
    stackdist_free(sd);
}

/* --- for the simulator --- */

static int64_t read_touches(void *context, uint64_t *accesses, size_t capacity, struct error *err)
{
    struct window_stream *s = context;
    (void)err;
    size_t left = s->window->n - s->next, n = left < capacity ? left : capacity;
    for (size_t i = 0; i < n; i++) {
        uint64_t touch = s->window->touch[s->next + i];
        accesses[i] = touch >> 1 << SIM_LINE_SHIFT | (touch & 1 ? SIM_STORE : 0);
    }
    s->next += n;
    return (int64_t)n;
}

static int restart(void *context, struct error *err)
{
    (void)err;
    ((struct window_stream *)context)->next = 0;
    return 0;
}

struct corun_stream window_stream(struct window_stream *s)
{
    return (struct corun_stream){read_touches, restart, s, s->window->references_per_instruction};
}

double window_cpi(const struct window *w, const struct corun_result *simulated, double miss)
{
    double first = (double)simulated->hits[0] / (double)simulated->references;
    return 1 + w->references_per_instruction * (first + 10 * (1 - first - miss) + 130 * miss);
}

double window_error(const struct window *w, const struct corun_result *simulated, double miss)
{
    return 1 - window_cpi(w, simulated, miss) / window_cpi(w, simulated, simulated->miss_ratio);
}

double window_errors(struct errors_of_model *errors, const struct window *w,
                     const struct corun_result *simulated, const struct statcc_result *got)
{
    double error = window_error(w, simulated, got->miss_ratio);
    errors_add(&errors->equation4, error);
    errors_add(&errors->outright, 1 - got->cpi / simulated->cpi);
    errors_add(&errors->miss, got->miss_ratio - simulated->miss_ratio);
    return error;
}
