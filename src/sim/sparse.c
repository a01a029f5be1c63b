/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse.c - several samplers on one stream. A sampler only acts when a window or hibernation ends and when a
 * sample is due. Between such events of any sampler, each access looks up in one hash table, shared by all
 * samplers, whether its line is watched. The table is at least three quarters empty, so that nearly always
 * one look at an empty entry suffices, however many samplers there are. A line has at most one watch of each
 * sampler: an access that could begin another one ends the first.
 */
#include "sim/sparse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/random.h"

const struct sparse_config sparse_s1 = {1000000, 14e6, 1500, 1};
const struct sparse_config sparse_s2 = {1000000, 74e6, 1500, 1};

#define FAR (UINT64_MAX / 2)

struct sampler {
    struct sparse_config config;
    struct random_state random;
    double log_miss; /* log(1 - probability of a sample) */
    int awake;
    uint64_t until;       /* the window or hibernation ends before this access */
    uint64_t next_sample; /* the next access to sample, if before `until` */
    struct sparse_sample *samples;
    size_t nsamples, sample_capacity;
    struct sparse_window *windows;
    size_t nwindows, window_capacity;
};

struct watch {
    uint64_t line;
    uint32_t sampler, sample;
    uint32_t next; /* of the same line, or the next free one: index + 1; 0 none */
};

struct sparse {
    uint64_t now;        /* accesses so far */
    uint64_t next_event; /* before this, accesses only end watches */
    struct sampler *samplers;
    size_t nsamplers;
    struct watch *watches;
    uint32_t nwatches, free_watch; /* free_watch: index + 1; 0 none */
    size_t watch_capacity;
    uint32_t *table; /* by hash of the line: the first of its watches, index + 1; 0 empty */
    uint64_t table_mask, watched_lines;
};

/* Accesses up to and including the next sample: at least 1. */
static uint64_t gap(struct sampler *s)
{
    if (s->log_miss == -INFINITY)
        return 1;
    double g = floor(log1p(-random_unit(&s->random)) / s->log_miss);
    return g < 0x1p62 ? (uint64_t)g + 1 : FAR;
}

static uint64_t hibernation(struct sampler *s)
{
    double t = floor(-log1p(-random_unit(&s->random)) * s->config.hibernate + 0.5);
    return t < 0x1p62 ? (uint64_t)t : FAR;
}

static int open_window(struct sampler *s, uint64_t now, uint64_t length)
{
    if (ARRAY_GROW(s->windows, s->nwindows, s->window_capacity) < 0)
        return -ENOMEM;
    s->windows[s->nwindows++] = (struct sparse_window){now, 0};
    s->awake = 1;
    s->until = now + length;
    s->next_sample = now + gap(s) - 1;
    return 0;
}

static void sleep_for(struct sampler *s, uint64_t now, uint64_t length)
{
    s->awake = 0;
    s->until = now + length;
}

/* An open window extends to the current end of the stream. */
static void measure_window(struct sampler *s, uint64_t now)
{
    if (s->awake)
        s->windows[s->nwindows - 1].length = now - s->windows[s->nwindows - 1].start;
}

/* --- creation and removal --- */

static int check(const struct sparse_config *config, struct error *err)
{
    if (config->window < 1 || config->window > FAR / 4)
        return error_set(err, -EINVAL, "a window must have at least one reference");
    if (!(config->hibernate >= 0 && config->hibernate < 0x1p62))
        return error_set(err, -EINVAL, "hibernation must not be negative");
    if (!(config->samples > 0 && config->samples <= (double)config->window))
        return error_set(err, -EINVAL, "samples per window must be above 0 and at most %llu, its references",
                         (unsigned long long)config->window);
    return 0;
}

/* Begins at a random point of a window or of hibernation; the rest of it is as long as a whole one on
 * average. */
static int begin(struct sampler *s, const struct sparse_config *config)
{
    double all = (double)config->window + config->hibernate;
    s->config = *config;
    s->log_miss = log1p(-config->samples / (double)config->window);
    random_seed(&s->random, config->seed);
    if (random_unit(&s->random) * all >= config->hibernate)
        return open_window(s, 0, 1 + random_below(&s->random, config->window));
    sleep_for(s, 0, hibernation(s));
    return 0;
}

static uint64_t event_of(const struct sampler *s)
{
    return s->awake && s->next_sample < s->until ? s->next_sample : s->until;
}

static void find_next_event(struct sparse *s)
{
    s->next_event = UINT64_MAX;
    for (size_t i = 0; i < s->nsamplers; i++) {
        uint64_t event = event_of(&s->samplers[i]);
        s->next_event = event < s->next_event ? event : s->next_event;
    }
}

int sparse_new_set(const struct sparse_config *configs, size_t n, struct sparse **result, struct error *err)
{
    int code = n >= 1 && n < UINT32_MAX ? 0 : error_set(err, -EINVAL, "there must be at least one sampler");
    for (size_t i = 0; i < n && code == 0; i++)
        code = check(&configs[i], err);
    if (code != 0)
        return code;
    struct sparse *s = calloc(1, sizeof *s);
    if (s) {
        s->table_mask = 4095;
        s->table = calloc(s->table_mask + 1, sizeof *s->table);
        s->samplers = calloc(n, sizeof *s->samplers);
        s->nsamplers = s->samplers ? n : 0;
    }
    if (!s || !s->table || !s->samplers)
        code = -ENOMEM;
    for (size_t i = 0; i < n && code == 0; i++)
        code = begin(&s->samplers[i], &configs[i]);
    if (code != 0) {
        sparse_free(s);
        return error_set(err, code, "out of memory for the sampler");
    }
    find_next_event(s);
    *result = s;
    return 0;
}

int sparse_new(const struct sparse_config *config, struct sparse **result, struct error *err)
{
    return sparse_new_set(config, 1, result, err);
}

void sparse_free(struct sparse *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->nsamplers; i++) {
        free(s->samplers[i].samples);
        free(s->samplers[i].windows);
    }
    free(s->samplers);
    free(s->watches);
    free(s->table);
    free(s);
}

/* --- watches --- */

static uint64_t home_of(const struct sparse *s, uint64_t line)
{
    uint64_t hash = line * UINT64_C(0x9e3779b97f4a7c15);
    return (hash >> 32) & s->table_mask;
}

static uint64_t find(const struct sparse *s, uint64_t line)
{
    uint64_t at = home_of(s, line);
    while (s->table[at] && s->watches[s->table[at] - 1].line != line)
        at = (at + 1) & s->table_mask;
    return at;
}

static int grow_table(struct sparse *s)
{
    uint64_t old_mask = s->table_mask;
    uint32_t *old = s->table, *more = calloc((old_mask + 1) * 2, sizeof *more);
    if (!more)
        return -ENOMEM;
    s->table = more;
    s->table_mask = old_mask * 2 + 1;
    for (uint64_t i = 0; i <= old_mask; i++)
        if (old[i])
            s->table[find(s, s->watches[old[i] - 1].line)] = old[i];
    free(old);
    return 0;
}

/* Removes a line and moves later entries back where possible (no tombstones). */
static void remove_line(struct sparse *s, uint64_t hole)
{
    for (uint64_t at = hole;;) {
        at = (at + 1) & s->table_mask;
        if (!s->table[at])
            break;
        uint64_t home = home_of(s, s->watches[s->table[at] - 1].line);
        if (((at - home) & s->table_mask) >= ((at - hole) & s->table_mask)) {
            s->table[hole] = s->table[at];
            hole = at;
        }
    }
    s->table[hole] = 0;
    s->watched_lines--;
}

/* Index + 1 of a free watch, or 0 if memory is short. */
static uint32_t new_watch(struct sparse *s)
{
    uint32_t watch = s->free_watch;
    if (watch) {
        s->free_watch = s->watches[watch - 1].next;
        return watch;
    }
    if (s->nwatches > UINT32_MAX / 4 || ARRAY_GROW(s->watches, s->nwatches, s->watch_capacity) < 0)
        return 0;
    return ++s->nwatches;
}

static int start_watch(struct sparse *s, uint64_t line, uint32_t sampler, uint32_t sample)
{
    if (4 * (s->watched_lines + 1) > s->table_mask && grow_table(s) != 0)
        return -ENOMEM;
    uint32_t watch = new_watch(s);
    if (!watch)
        return -ENOMEM;
    uint64_t at = find(s, line);
    s->watched_lines += s->table[at] == 0;
    s->watches[watch - 1] = (struct watch){line, sampler, sample, s->table[at]};
    s->table[at] = watch;
    return 0;
}

static int start_sample(struct sparse *s, size_t which, uint64_t line)
{
    struct sampler *sampler = &s->samplers[which];
    if (sampler->nsamples > UINT32_MAX / 2 ||
        ARRAY_GROW(sampler->samples, sampler->nsamples, sampler->sample_capacity) < 0)
        return -ENOMEM;
    sampler->samples[sampler->nsamples] =
        (struct sparse_sample){sampler->nwindows - 1, s->now, SPARSE_DANGLING, line};
    return start_watch(s, line, (uint32_t)which, (uint32_t)sampler->nsamples++);
}

/* Access number `now` to the line ends all watches of it. */
static void check_watch(struct sparse *s, uint64_t line, uint64_t now)
{
    uint64_t at = find(s, line);
    uint32_t next = s->table[at];
    if (!next)
        return;
    remove_line(s, at);
    while (next) {
        uint32_t watch = next;
        struct watch *w = &s->watches[watch - 1];
        struct sparse_sample *sample = &s->samplers[w->sampler].samples[w->sample];
        sample->distance = now - sample->start - 1;
        next = w->next;
        w->next = s->free_watch;
        s->free_watch = watch;
    }
}

/* --- the stream --- */

/* Processes accesses that start no sample. */
static void pass(struct sparse *s, const uint64_t *accesses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t line = accesses[i] >> SIM_LINE_SHIFT;
        if (__builtin_expect(s->table[home_of(s, line)] != 0, 0))
            check_watch(s, line, s->now + i);
    }
    s->now += n;
}

/* Processes the ends of windows and hibernations before the next access; they may have length 0. */
static int end_periods(struct sampler *s, uint64_t now)
{
    int code = 0;
    while (now == s->until && code == 0) {
        measure_window(s, now);
        if (s->awake)
            sleep_for(s, now, hibernation(s));
        else
            code = open_window(s, now, s->config.window);
    }
    return code;
}

/* Processes the events at access `now`. *sampled: whether a sampler sampled it. */
static int event(struct sparse *s, uint64_t line, int *sampled)
{
    *sampled = 0;
    for (size_t i = 0; i < s->nsamplers; i++) {
        struct sampler *sampler = &s->samplers[i];
        int code = end_periods(sampler, s->now);
        if (code != 0)
            return code;
        if (!sampler->awake || sampler->next_sample != s->now)
            continue;
        if (!*sampled)
            check_watch(s, line, s->now);
        *sampled = 1;
        if ((code = start_sample(s, i, line)) != 0)
            return code;
        sampler->next_sample = s->now + gap(sampler);
    }
    s->now += (uint64_t)*sampled;
    find_next_event(s);
    return 0;
}

int sparse_run(struct sparse *s, const uint64_t *accesses, size_t n, struct error *err)
{
    int code = 0, sampled;
    for (size_t i = 0; i < n && code == 0;) {
        if (s->now == s->next_event) {
            code = event(s, accesses[i] >> SIM_LINE_SHIFT, &sampled);
            i += (size_t)sampled;
        } else {
            uint64_t ahead = s->next_event - s->now;
            size_t stretch = ahead < n - i ? (size_t)ahead : n - i;
            pass(s, accesses + i, stretch);
            i += stretch;
        }
    }
    for (size_t i = 0; i < s->nsamplers; i++)
        measure_window(&s->samplers[i], s->now);
    return code == 0 ? 0 : error_set(err, code, "out of memory for more samples");
}

const struct sparse_sample *sparse_samples(const struct sparse *s, size_t which, size_t *n)
{
    *n = s->samplers[which].nsamples;
    return s->samplers[which].samples;
}

const struct sparse_window *sparse_windows(const struct sparse *s, size_t which, size_t *n)
{
    *n = s->samplers[which].nwindows;
    return s->samplers[which].windows;
}

uint64_t sparse_seen(const struct sparse *s)
{
    return s->now;
}
