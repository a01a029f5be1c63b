/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_papers.c - the StatStack paper's experiment on one trace, in one pass: the exact LRU curve, and
 * StatStack's curves from sparse samples, many times over with each of the papers' two settings (Eklov's
 * thesis, I.6; docs/methods.md, sections 3, 4 and 12). A third setting never hibernates: with a sample each
 * 667 references its error is the model's, not the sampling's. scripts/bench-papers.py makes the traces and
 * judges the figures; this prints JSON.
 *
 * usage: bench_papers TRACE LEAST REPEATS [SEED]    the trace must be of one process; its first REFERENCES
 * are used
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/sizes.h"
#include "model/curve.h"
#include "model/windows.h"
#include "sim/cache.h"
#include "sim/sparse.h"
#include "sim/stackset.h"
#include "trace/trace.h"

#define LINE_BYTES 64u
#define SIZES "32K..8M"
#define ACCESSES 16384u

enum { S1, S2, EVERY_WINDOW, SETTINGS };
static const char *const setting_name[SETTINGS] = {"s1", "s2", "every_window"};

struct experiment {
    uint64_t least, repeats, seed;
    struct sparse *sparse; /* S1 `repeats` times, S2 as often, EVERY_WINDOW once */
    struct stackset *exact;
    uint64_t seen;
    uint64_t *sizes;
    size_t nsizes;
    struct curve_point *points;
};

static uint64_t repeats_of(const struct experiment *x, int setting)
{
    return setting == EVERY_WINDOW ? 1 : x->repeats;
}

static struct sparse_config config_of(int setting)
{
    struct sparse_config config = setting == S2 ? sparse_s2 : sparse_s1;
    if (setting == EVERY_WINDOW)
        config.hibernate = 0;
    return config;
}

static int prepare(struct experiment *x, struct error *err)
{
    static const unsigned line_bytes[] = {LINE_BYTES};
    struct stackset_options options = {.line_bytes = line_bytes, .nlines = 1, .rate = 1, .workers = 1};
    size_t n = 2 * (size_t)x->repeats + 1, at = 0;
    struct sparse_config *configs = calloc(n, sizeof *configs);
    int code = configs ? 0 : error_set(err, -ENOMEM, "out of memory for %zu samplers", n);
    for (int setting = 0; setting < SETTINGS && code == 0; setting++) {
        for (uint64_t i = 0; i < repeats_of(x, setting); i++, at++) {
            configs[at] = config_of(setting);
            configs[at].seed = x->seed + at;
        }
    }
    if (code == 0)
        code = size_parse_list(SIZES, &x->sizes, &x->nsizes, err);
    if (code == 0 && !(x->points = calloc(x->nsizes, sizeof *x->points)))
        code = error_set(err, -ENOMEM, "out of memory for a curve");
    for (size_t i = 0; i < x->nsizes && code == 0; i++)
        x->points[i].size_bytes = (double)x->sizes[i];
    if (code == 0)
        code = sparse_new_set(configs, n, &x->sparse, err);
    if (code == 0 && !(x->exact = stackset_new(&options, err)))
        code = -ENOMEM;
    free(configs);
    return code;
}

/* --- the pass --- */

static int sample(struct experiment *x, const struct trace_batch *batch, struct error *err)
{
    static uint64_t accesses[ACCESSES];
    static const uint8_t loads[TRACE_BATCH];
    int code = 0;
    for (size_t i = 0, taken; i < batch->n && code == 0; i += taken) {
        size_t words = sim_pack(batch->address + i, batch->size + i, loads, batch->n - i, LINE_BYTES, 0,
                                accesses, ACCESSES, &taken);
        code = sparse_run(x->sparse, accesses, words, err);
    }
    return code;
}

static int read_trace(struct experiment *x, struct trace_reader *r, struct error *err)
{
    struct trace_batch batch;
    int code = 0;
    while ((code = trace_next(r, &batch, err)) > 0) {
        for (uint32_t i = 1; i < trace_threads(r); i++)
            if (trace_thread(r, i).pid != trace_thread(r, 0).pid)
                return error_set(err, -EINVAL, "the trace is of more than one process");
        code = stackset_add(x->exact, 0, 0, batch.address, batch.size, batch.n, err);
        if (code == 0)
            code = sample(x, &batch, err);
        if (code != 0)
            return code;
        x->seen += batch.n;
    }
    if (code < 0 || (code = stackset_wait(x->exact, err)) < 0)
        return code;
    if (trace_damage(r))
        return error_set(err, -EBADMSG, "%s", trace_damage(r)->text);
    if (x->seen < x->least)
        return error_set(err, -ENODATA, "the trace holds only %" PRIu64 " references", x->seen);
    if (stackset_result(x->exact, 0).touches != sparse_seen(x->sparse))
        return error_set(err, -EINVAL, "%" PRIu64 " accesses were sampled, %" PRIu64 " measured",
                         sparse_seen(x->sparse), stackset_result(x->exact, 0).touches);
    return 0;
}

/* --- curves --- */

static void print_points(const struct experiment *x)
{
    putchar('[');
    for (size_t i = 0; i < x->nsizes; i++) {
        if (i > 0)
            printf(", ");
        if (isnan(x->points[i].miss_ratio))
            printf("null");
        else
            printf("%.9f", x->points[i].miss_ratio);
    }
    putchar(']');
}

static int print_exact(struct experiment *x, struct error *err)
{
    struct stackset_result exact = stackset_result(x->exact, 0);
    int code = curve_exact(exact.stack, exact.cold, LINE_BYTES, x->points, x->nsizes, err);
    if (code != 0)
        return code;
    printf("{\"references\": %" PRIu64 ", \"accesses\": %" PRIu64 ", \"lines\": %" PRIu64 ",\n \"sizes\": [",
           x->seen, exact.touches, exact.lines);
    for (size_t i = 0; i < x->nsizes; i++)
        printf("%s%" PRIu64, i ? ", " : "", x->sizes[i]);
    printf("],\n \"exact\": ");
    print_points(x);
    return 0;
}

/* The curve of one sampler, its samples dealt out to their windows. */
static int print_sampler(struct experiment *x, size_t which, struct error *err)
{
    size_t nsamples, nwindows, at = 0, finite = 0;
    const struct sparse_sample *samples = sparse_samples(x->sparse, which, &nsamples);
    const struct sparse_window *windows = sparse_windows(x->sparse, which, &nwindows);
    struct curve_window *curves = calloc(nwindows + 1, sizeof *curves);
    uint64_t *distances = calloc(nsamples + 1, sizeof *distances), awake = 0;
    int code = curves && distances ? 0 : error_set(err, -ENOMEM, "out of memory for the samples");
    for (size_t w = 0; w < nwindows && code == 0; w++) {
        curves[w] =
            (struct curve_window){.distances = distances + finite, .weight = (double)windows[w].length};
        awake += windows[w].length;
        for (; at < nsamples && samples[at].window == w; at++) {
            if (samples[at].distance == SPARSE_DANGLING) {
                curves[w].dangling++;
            } else {
                distances[finite++] = samples[at].distance;
                curves[w].n++;
            }
        }
    }
    if (code == 0)
        code =
            curve_windows(curves, nwindows, CURVE_WINDOWS_STATSTACK, LINE_BYTES, x->points, x->nsizes, err);
    if (code == 0) {
        printf("{\"samples\": %zu, \"dangling\": %zu, \"windows\": %zu, \"window_accesses\": %" PRIu64
               ", \"miss_ratios\": ",
               nsamples, nsamples - finite, nwindows, awake);
        print_points(x);
        putchar('}');
    }
    free(curves);
    free(distances);
    return code;
}

static int print_all(struct experiment *x, double start, struct error *err)
{
    size_t which = 0;
    int code = print_exact(x, err);
    for (int setting = 0; setting < SETTINGS && code == 0; setting++) {
        struct sparse_config config = config_of(setting);
        printf(",\n \"%s\": {\"window\": %" PRIu64 ", \"hibernate\": %.0f, \"samples\": %.0f, \"repeats\": [",
               setting_name[setting], config.window, config.hibernate, config.samples);
        for (uint64_t i = 0; i < repeats_of(x, setting) && code == 0; i++) {
            printf("%s\n  ", i ? "," : "");
            code = print_sampler(x, which++, err);
        }
        printf("]}");
    }
    printf(",\n \"cpu_seconds\": %.2f}\n", (double)clock() / CLOCKS_PER_SEC - start);
    return code;
}

int main(int argc, char **argv)
{
    struct error err = {.text = "usage: bench_papers TRACE LEAST REPEATS [SEED]"};
    struct experiment x = {.seed = 1};
    struct trace_reader *r = NULL;
    double start = (double)clock() / CLOCKS_PER_SEC;
    int code = -EINVAL;
    if (argc == 4 || argc == 5) {
        x.least = strtoull(argv[2], NULL, 10);
        x.repeats = strtoull(argv[3], NULL, 10);
        x.seed = argc == 5 ? strtoull(argv[4], NULL, 10) : x.seed;
    }
    if (x.repeats > 0 && x.repeats <= 1000)
        code = prepare(&x, &err);
    if (code == 0 && !(r = trace_open(argv[1], NULL, &err)))
        code = -EIO;
    if (code == 0)
        code = read_trace(&x, r, &err);
    if (code == 0)
        code = print_all(&x, start, &err);
    if (code != 0)
        fprintf(stderr, "bench_papers: %s\n", err.text);
    trace_close(r);
    stackset_free(x.exact);
    sparse_free(x.sparse);
    free(x.points);
    free(x.sizes);
    return code == 0 ? 0 : 1;
}
