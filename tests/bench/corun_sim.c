/* SPDX-License-Identifier: Apache-2.0 */
/* corun_sim.c - the loop over cores, by their clocks. */
#include "bench/corun_sim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BUFFER 4096u

const struct corun_config corun_statcc = {
    .level = {{32 << 10, 8, SIM_LRU, SIM_NON_INCLUSIVE, 0}, {2 << 20, 16, SIM_LRU, SIM_INCLUSIVE, 1}},
    .levels = 2,
    .line_bytes = 64,
    .cpi_base = 1,
    .latency_cycles = {1, 10, 130},
};

struct core {
    const struct corun_stream *stream;
    uint64_t buffer[BUFFER];
    size_t next, filled;
    double now_cycles, start_cycles; /* start: of what is counted */
    double instruction_cycles;       /* between two references */
    uint64_t warm;                   /* references before counting */
    int finished;
};

struct corun {
    const struct corun_config *config;
    struct sim *sim;
    struct core *cores;
    struct corun_result *results;
    uint32_t n;
};

/* Sees to it that a core has a next access. */
static int refill(struct corun *run, uint32_t i, int counting, struct error *err)
{
    struct core *core = &run->cores[i];
    for (int again = 0; core->next == core->filled; again++) {
        int64_t got = core->stream->read(core->stream->context, core->buffer, BUFFER, err);
        if (got < 0)
            return (int)got;
        core->next = 0;
        core->filled = (size_t)got;
        if (got > 0)
            break;
        if (again)
            return error_set(err, -EINVAL, "program %u has no references", i + 1);
        /* It ran to its end; whatever it does from here on is to keep the others company. */
        if (run->config->references == 0 && counting)
            core->finished = 1;
        run->results[i].restarts++;
        int code = core->stream->restart(core->stream->context, err);
        if (code != 0)
            return code;
    }
    return 0;
}

static uint32_t behind(const struct corun *run)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < run->n; i++)
        if (run->cores[i].now_cycles < run->cores[first].now_cycles)
            first = i;
    return first;
}

static int all_warm(const struct corun *run)
{
    for (uint32_t i = 0; i < run->n; i++)
        if (run->cores[i].warm < run->config->warm_up)
            return 0;
    return 1;
}

static int is_over(const struct corun *run)
{
    uint32_t finished = 0;
    for (uint32_t i = 0; i < run->n; i++)
        finished += run->cores[i].finished != 0;
    return run->config->until_all ? finished == run->n : finished > 0;
}

/* Resets all counts. Clocks are kept, since they determine the order. */
static void start_counting(struct corun *run)
{
    for (uint32_t i = 0; i < run->n; i++) {
        run->results[i] = (struct corun_result){0};
        run->cores[i].start_cycles = run->cores[i].now_cycles;
    }
}

static int step(struct corun *run, uint32_t i, int counting, struct error *err)
{
    struct core *core = &run->cores[i];
    struct corun_result *result = &run->results[i];
    uint64_t access = core->buffer[core->next++];
    uint64_t line = access >> SIM_LINE_SHIFT;
    if (line >> CORUN_LINE_BITS || access & SIM_STRADDLE)
        return error_set(err, -EINVAL, "program %u: an access is not a line below 2^%u", i + 1,
                         CORUN_LINE_BITS);
    access |= (uint64_t)i << (CORUN_LINE_BITS + SIM_LINE_SHIFT);
    int from = sim_access(run->sim, i, access, err);
    if (from < 0)
        return from;
    core->now_cycles += core->instruction_cycles + run->config->latency_cycles[from];
    result->hits[from]++;
    result->references++;
    core->warm += !counting;
    if (run->config->references && result->references >= run->config->references && counting)
        core->finished = 1;
    return 0;
}

static int loop(struct corun *run, const volatile int *interrupted, struct error *err)
{
    int counting = 0;
    for (uint64_t steps = 0;; steps++) {
        if (!counting && all_warm(run)) {
            start_counting(run);
            counting = 1;
        }
        uint32_t i = behind(run);
        int code = refill(run, i, counting, err);
        if (code != 0)
            return code;
        /* A program that has just come to its end has not begun again yet. */
        if (counting && is_over(run))
            return 0;
        code = step(run, i, counting, err);
        if (code != 0)
            return code;
        if (counting && is_over(run))
            return 0;
        if (steps % BUFFER == 0 && interrupted && *interrupted)
            return error_set(err, -EINTR, "interrupted");
    }
}

static int check(const struct corun_config *config, const struct corun_stream *streams, uint32_t n,
                 struct error *err)
{
    if (n < 1 || n > SIM_CORES)
        return error_set(err, -EINVAL, "1 to %u programs can run together", SIM_CORES);
    if (config->warm_up && !config->references)
        return error_set(err, -EINVAL, "after a warm-up the number of references must be given");
    if (!(config->cpi_base >= 0) || !isfinite(config->cpi_base))
        return error_set(err, -EINVAL, "the base CPI must not be negative");
    for (uint32_t l = 0; l <= config->levels && l <= SIM_LEVELS; l++)
        if (!(config->latency_cycles[l] > 0) || !isfinite(config->latency_cycles[l]))
            return error_set(err, -EINVAL, "latencies must be above zero");
    for (uint32_t i = 0; i < n; i++)
        if (!(streams[i].references_per_instruction > 0) || !isfinite(streams[i].references_per_instruction))
            return error_set(err, -EINVAL, "program %u: references per instruction must be above zero",
                             i + 1);
    return 0;
}

int corun_run(const struct corun_config *config, const struct corun_stream *streams, uint32_t n,
              const volatile int *interrupted, struct corun_result *results, struct error *err)
{
    struct corun run = {.config = config, .n = n, .results = results};
    struct sim_config caches = {.levels = config->levels,
                                .cores = n,
                                .line_bytes = config->line_bytes,
                                .seed = config->seed,
                                .incoherent = 1};
    int code = check(config, streams, n, err);
    if (code != 0)
        return code;
    for (uint32_t l = 0; l < SIM_LEVELS; l++)
        caches.level[l] = config->level[l];
    code = sim_new(&caches, &run.sim, err);
    if (code != 0)
        return code;
    run.cores = calloc(n, sizeof *run.cores);
    if (!run.cores) {
        sim_free(run.sim);
        return error_set(err, -ENOMEM, "out of memory for %u cores", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        run.cores[i].stream = &streams[i];
        run.cores[i].instruction_cycles = config->cpi_base / streams[i].references_per_instruction;
        results[i] = (struct corun_result){0};
    }
    code = loop(&run, interrupted, err);
    for (uint32_t i = 0; i < n; i++) {
        struct corun_result *r = &results[i];
        r->cycles = run.cores[i].now_cycles - run.cores[i].start_cycles;
        r->instructions = (double)r->references / streams[i].references_per_instruction;
        r->cpi = r->references ? r->cycles / r->instructions : NAN;
        r->miss_ratio = r->references ? (double)r->hits[config->levels] / (double)r->references : NAN;
    }
    sim_free(run.sim);
    free(run.cores);
    return code;
}
