/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the band of `cachegram stack --shards` holds the exact value: many samples of one trace, each by
 * another hash (an address space of another number: its lines have other hashes and the same distances).
 *
 * usage: bench_shards TRACE RATE [SAMPLES [REFERENCES]]     100 samples of the first 6,000,000 references
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/curve.h"
#include "sim/stackset.h"
#include "trace/trace.h"

#define LINE_BYTES 64u
#define SIZES 25u /* 4 KB .. 16 MB in half powers of two */
static_assert(STACKSET_GROUPS == CURVE_SAMPLE_GROUPS, "groups are copied");

static struct error err;

static int fail(void)
{
    fprintf(stderr, "bench_shards: %s\n", err.text);
    return 1;
}

/* The stack distances of the first n references; NULL: see err. */
static struct stackset *distances(const uint64_t *address, const uint16_t *size, size_t n, uint32_t space,
                                  double rate)
{
    const unsigned line = LINE_BYTES;
    struct stackset_options options = {.line_bytes = &line, .nlines = 1, .rate = rate, .workers = 1};
    struct stackset *set = stackset_new(&options, &err);
    for (size_t i = 0; set != NULL && i < n; i += STACKSET_BATCH) {
        size_t part = n - i < STACKSET_BATCH ? n - i : STACKSET_BATCH;
        if (stackset_add(set, 0, space, address + i, size + i, part, &err) < 0) {
            stackset_free(set);
            return NULL;
        }
    }
    if (set != NULL && stackset_wait(set, &err) < 0) {
        stackset_free(set);
        return NULL;
    }
    return set;
}

struct tally {
    unsigned reported, held;
    double error, half; /* sums */
};

static int add_sample(const struct stackset *set, double rate, const struct curve_point *exact,
                      struct tally *tally)
{
    struct curve_point point[SIZES];
    struct stackset_result r = stackset_result(set, 0);
    struct curve_sample sample = {.rate = rate, .touches = r.touches, .stack = r.stack, .cold = r.cold};
    memcpy(sample.group_stack, r.group_stack, sizeof sample.group_stack);
    memcpy(sample.group_cold, r.group_cold, sizeof sample.group_cold);
    memcpy(point, exact, sizeof point);
    if (curve_sampled(&sample, LINE_BYTES, point, SIZES, &err) < 0)
        return -1;
    for (unsigned i = 0; i < SIZES; i++) {
        if (isnan(point[i].miss_ratio))
            continue;
        tally[i].reported++;
        tally[i].held += point[i].low <= exact[i].miss_ratio && exact[i].miss_ratio <= point[i].high;
        tally[i].error += fabs(point[i].miss_ratio - exact[i].miss_ratio);
        tally[i].half += (point[i].high - point[i].low) / 2;
    }
    return 0;
}

static void print(const struct curve_point *exact, const struct tally *tally)
{
    unsigned reported = 0, held = 0;
    printf("   size  exact  held  mean error  half a band  (percent of samples; percentage points)\n");
    for (unsigned i = 0; i < SIZES; i++) {
        const struct tally *t = &tally[i];
        if (t->reported == 0)
            continue;
        printf("%6.0fK %6.3f %5.1f %11.4f %12.4f\n", exact[i].size_bytes / 1024, 100 * exact[i].miss_ratio,
               100.0 * t->held / t->reported, 100 * t->error / t->reported, 100 * t->half / t->reported);
        reported += t->reported;
        held += t->held;
    }
    printf("in all %.1f\n", 100.0 * held / reported);
}

int main(int argc, char **argv)
{
    double rate = argc > 2 ? atof(argv[2]) : 0;
    unsigned samples = argc > 3 ? (unsigned)atoi(argv[3]) : 100;
    size_t most = argc > 4 ? (size_t)atof(argv[4]) : 6000000, n = 0;
    struct curve_point exact[SIZES];
    struct tally tally[SIZES] = {0};
    struct trace_batch batch;
    if (argc < 3 || !(rate > 0 && rate < 1)) {
        fprintf(stderr, "usage: bench_shards TRACE RATE [SAMPLES [REFERENCES]]\n");
        return 2;
    }
    struct trace_reader *r = trace_open(argv[1], NULL, &err);
    uint64_t *address = malloc(most * sizeof *address);
    uint16_t *size = malloc(most * sizeof *size);
    if (r == NULL || address == NULL || size == NULL)
        return fail();
    while (n < most && trace_next(r, &batch, &err) > 0)
        for (size_t i = 0; i < batch.n && n < most; i++, n++) {
            address[n] = batch.address[i];
            size[n] = batch.size[i];
        }
    trace_close(r);
    for (unsigned i = 0; i < SIZES; i++)
        exact[i] = (struct curve_point){.size_bytes = 64 * round(64 * pow(2, i / 2.0))};
    struct stackset *set = distances(address, size, n, 0, 1);
    if (set == NULL)
        return fail();
    struct stackset_result all = stackset_result(set, 0);
    if (curve_exact(all.stack, all.cold, LINE_BYTES, exact, SIZES, &err) < 0)
        return fail();
    stackset_free(set);
    for (unsigned s = 1; s <= samples; s++) {
        set = distances(address, size, n, s, rate);
        if (set == NULL || add_sample(set, rate, exact, tally) < 0)
            return fail();
        stackset_free(set);
    }
    print(exact, tally);
    free(address);
    free(size);
    return 0;
}
