/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timesample.c - the cache of a sample starts empty, and its behaviour shows what is known: a hit is a known
 * hit, a miss that replaces a line is a known miss, a miss that fills an empty way is unknown. For LRU this
 * is exact: the lines present are the set's most recent ones in the real cache, too.
 *
 * Example, one set of two ways, sample a b a c b: a and b unknown, a hits, c replaces b (a known miss; the
 * arrival of b is unknown), b replaces a.
 */
#include "sim/sampling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "sim/cache-internal.h"

/* History of a line in the cache. */
struct life {
    uint64_t arrived; /* access number; 0: before the set's state was known */
    uint64_t last_use;
};

struct timesample {
    struct timesample_config config;
    struct random_state random;
    struct cache cache;
    struct life *life;   /* by slot */
    int open;            /* a sample is in progress */
    uint64_t now;        /* accesses so far */
    uint64_t period_end; /* of the current period */
    uint64_t begin, end; /* of its sample */
    uint64_t lines;
    uint64_t touched; /* entries filled, over all samples */
    uint64_t generations, dead_time, generation_time;
    struct timesample_result count;    /* only its integer members */
    struct timesample_result at_begin; /* of the current sample */
    /* Sums over finished samples, of accesses a and misses m with half of the unknown ones. */
    double sum_aa, sum_am, sum_mm;
    uint64_t finished;
};

static void draw_place(struct timesample *t)
{
    uint64_t start = t->period_end;
    t->period_end += t->config.period;
    t->begin = start + random_below(&t->random, t->config.period - t->config.length + 1);
    t->end = t->begin + t->config.length;
}

int timesample_new(const struct timesample_config *config, struct timesample **result, struct error *err)
{
    struct sim_config cache = {.levels = 1,
                               .cores = 1,
                               .line_bytes = config->line_bytes,
                               .level[0] = {config->size_bytes, config->ways, SIM_LRU, SIM_NON_INCLUSIVE, 0}};
    struct sim *sim;
    if ((config->period || config->length) &&
        (config->length < 1 || config->length > config->period || config->period > UINT64_MAX / 4))
        return error_set(err, -EINVAL,
                         "a sample must be at least 1 access long and not longer than the period");
    int code = sim_new(&cache, &sim, err); /* checks the geometry */
    if (code != 0)
        return code;
    sim_free(sim);
    struct timesample *t = calloc(1, sizeof *t);
    if (t) {
        t->config = *config;
        t->lines = config->size_bytes / config->line_bytes;
        t->life = calloc(t->lines, sizeof *t->life);
        random_seed(&t->random, config->seed);
    }
    if (!t || !t->life) {
        timesample_free(t);
        return error_set(err, -ENOMEM, "out of memory for sampling");
    }
    if (config->period)
        draw_place(t);
    *result = t;
    return 0;
}

void timesample_free(struct timesample *t)
{
    if (!t)
        return;
    cache_clear(&t->cache);
    free(t->life);
    free(t);
}

static int begin_sample(struct timesample *t, struct error *err)
{
    const struct sim_level level = {t->config.size_bytes, t->config.ways, SIM_LRU, SIM_NON_INCLUSIVE, 0};
    cache_clear(&t->cache);
    memset(&t->cache, 0, sizeof t->cache);
    if (cache_init(&t->cache, &level, t->config.line_bytes, 0) != 0)
        return error_set(err, -ENOMEM, "out of memory for a cache to sample with");
    t->open = 1;
    t->count.samples++;
    t->at_begin = t->count;
    return 0;
}

static void end_sample(struct timesample *t)
{
    double a = (double)(t->count.accesses - t->at_begin.accesses);
    double m = (double)(t->count.misses - t->at_begin.misses) +
               0.5 * (double)(t->count.unknown - t->at_begin.unknown);
    t->sum_aa += a * a;
    t->sum_am += a * m;
    t->sum_mm += m * m;
    t->finished++;
    t->open = 0;
}

/* now: number of the access, from 1. */
static void sampled_access(struct timesample *t, uint64_t line, uint64_t now)
{
    struct cache *c = &t->cache;
    int64_t slot = c->ops->find(c, line);
    t->count.accesses++;
    if (slot >= 0) {
        c->ops->hit(c, (uint64_t)slot);
        t->life[slot].last_use = now;
        t->count.hits++;
        return;
    }
    int replaces = c->ops->insert(c, line << KEY_SHIFT) != KEY_NONE;
    struct life *life = &t->life[c->ops->find(c, line)];
    if (!replaces) {
        *life = (struct life){0, now};
        t->count.unknown++;
        t->touched++;
        return;
    }
    t->count.misses++;
    if (life->arrived) {
        t->generations++;
        t->dead_time += now - life->last_use;
        t->generation_time += now - life->arrived;
    }
    *life = (struct life){now, now};
}

void timesample_cut(struct timesample *t)
{
    if (t->config.period == 0 && t->open)
        end_sample(t);
}

/* All accesses are in a sample, which timesample_cut ends. */
static int run_uncut(struct timesample *t, const uint64_t *accesses, size_t n, struct error *err)
{
    int code = n > 0 && !t->open ? begin_sample(t, err) : 0;
    for (size_t i = 0; i < n && code == 0; i++)
        sampled_access(t, accesses[i] >> SIM_LINE_SHIFT, ++t->now);
    return code;
}

int timesample_run(struct timesample *t, const uint64_t *accesses, size_t n, struct error *err)
{
    if (t->config.period == 0)
        return run_uncut(t, accesses, n, err);
    for (size_t i = 0; i < n;) {
        if (t->now == t->period_end)
            draw_place(t);
        uint64_t left = n - i;
        if (t->now >= t->begin && t->now < t->end) {
            uint64_t stretch = t->end - t->now < left ? t->end - t->now : left;
            int code = t->now == t->begin ? begin_sample(t, err) : 0;
            if (code != 0)
                return code;
            for (uint64_t k = 0; k < stretch; k++)
                sampled_access(t, accesses[i + k] >> SIM_LINE_SHIFT, ++t->now);
            i += stretch;
            if (t->now == t->end)
                end_sample(t);
        } else {
            uint64_t until = t->now < t->begin ? t->begin : t->period_end;
            uint64_t skip = until - t->now < left ? until - t->now : left;
            t->now += skip;
            i += skip;
        }
    }
    return 0;
}

struct timesample_result timesample_result(const struct timesample *t)
{
    struct timesample_result r = t->count;
    double n = (double)r.accesses, known = (double)r.misses, unknown = (double)r.unknown;
    r.seen = t->now;
    r.low = known / n;
    r.centre = (known + 0.5 * unknown) / n;
    r.high = (known + unknown) / n;
    r.touched_share = (double)t->touched / ((double)r.samples * (double)t->lines);
    r.generations = (double)t->generations / ((double)r.samples * (double)t->lines);
    r.dead_share = (double)t->dead_time / (double)t->generation_time;
    r.mu = r.dead_share * r.touched_share;
    r.miss_ratio = (known + r.mu * unknown) / n;
    /* Of whole samples: a ratio's variance by linearisation (Cochran, Sampling Techniques, 6.4). */
    struct timesample_result whole = t->open ? t->at_begin : t->count;
    double samples = (double)t->finished, a = (double)whole.accesses;
    double ratio = ((double)whole.misses + 0.5 * (double)whole.unknown) / a;
    double spread = t->sum_mm - 2 * ratio * t->sum_am + ratio * ratio * t->sum_aa;
    r.standard_error = t->finished > 1 ? sqrt((spread > 0 ? spread : 0) * samples / (samples - 1)) / a : NAN;
    return r;
}
