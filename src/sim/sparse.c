/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse.c - each access asks a hash table whether its line is watched. The table is kept three quarters
 * empty, so the answer is nearly always a single look at an empty entry. A line has at most one watch: the
 * access that could begin another ends the first.
 */
#include "sim/sparse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

const struct sparse_config sparse_s1 = {1000000, 14e6, 1500, 1};
const struct sparse_config sparse_s2 = {1000000, 74e6, 1500, 1};

#define FAR (UINT64_MAX / 2)

struct sparse {
    struct sparse_config config;
    struct random_state random;
    double log_miss; /* log(1 - probability of a sample) */
    uint64_t now;    /* accesses so far */
    int awake;
    uint64_t until;       /* the window, or hibernation, ends before this access */
    uint64_t next_sample; /* the next access to sample, if before `until` */
    struct sparse_sample *samples;
    size_t nsamples, sample_room;
    struct sparse_window *windows;
    size_t nwindows, window_room;
    uint32_t *watch; /* by hash of the line: sample + 1; 0 empty */
    uint64_t watch_mask, watched;
};

/* Up to the next sample, itself included: at least 1. */
static uint64_t gap(struct sparse *s)
{
    if (s->log_miss == -INFINITY)
        return 1;
    double g = floor(log1p(-random_unit(&s->random)) / s->log_miss);
    return g < 0x1p62 ? (uint64_t)g + 1 : FAR;
}

static uint64_t hibernation(struct sparse *s)
{
    double t = floor(-log1p(-random_unit(&s->random)) * s->config.hibernate + 0.5);
    return t < 0x1p62 ? (uint64_t)t : FAR;
}

static int open_window(struct sparse *s, uint64_t length)
{
    if (s->nwindows == s->window_room) {
        size_t room = s->window_room ? 2 * s->window_room : 64;
        struct sparse_window *more = reallocarray(s->windows, room, sizeof *more);
        if (!more)
            return -ENOMEM;
        s->windows = more;
        s->window_room = room;
    }
    s->windows[s->nwindows++] = (struct sparse_window){s->now, 0};
    s->awake = 1;
    s->until = s->now + length;
    s->next_sample = s->now + gap(s) - 1;
    return 0;
}

static void sleep_for(struct sparse *s, uint64_t length)
{
    s->awake = 0;
    s->until = s->now + length;
}

int sparse_new(const struct sparse_config *config, struct sparse **result, struct error *err)
{
    if (config->window < 1 || config->window > FAR / 4)
        return error_set(err, -EINVAL, "a window has at least one reference");
    if (!(config->hibernate >= 0 && config->hibernate < 0x1p62))
        return error_set(err, -EINVAL, "hibernation must not be negative");
    if (!(config->samples > 0 && config->samples <= (double)config->window))
        return error_set(err, -EINVAL, "samples a window: more than none, and at most its %llu references",
                         (unsigned long long)config->window);
    struct sparse *s = calloc(1, sizeof *s);
    if (s) {
        s->config = *config;
        s->log_miss = log1p(-config->samples / (double)config->window);
        s->watch_mask = 4095;
        s->watch = calloc(s->watch_mask + 1, sizeof *s->watch);
        random_seed(&s->random, config->seed);
    }
    if (!s || !s->watch) {
        sparse_free(s);
        return error_set(err, -ENOMEM, "no memory for the sampler");
    }
    /* Somewhere in a window, or in hibernation, whose rest is as long as a whole one on average. */
    double all = (double)config->window + config->hibernate;
    if (random_unit(&s->random) * all < config->hibernate) {
        sleep_for(s, hibernation(s));
    } else if (open_window(s, 1 + random_below(&s->random, config->window)) != 0) {
        sparse_free(s);
        return error_set(err, -ENOMEM, "no memory for the sampler");
    }
    *result = s;
    return 0;
}

void sparse_free(struct sparse *s)
{
    if (!s)
        return;
    free(s->samples);
    free(s->windows);
    free(s->watch);
    free(s);
}

static uint64_t home_of(const struct sparse *s, uint64_t line)
{
    uint64_t hash = line * UINT64_C(0x9e3779b97f4a7c15);
    return (hash >> 32) & s->watch_mask;
}

static uint64_t find(const struct sparse *s, uint64_t line)
{
    uint64_t at = home_of(s, line);
    while (s->watch[at] && s->samples[s->watch[at] - 1].line != line)
        at = (at + 1) & s->watch_mask;
    return at;
}

static int grow_watch(struct sparse *s)
{
    uint64_t old_mask = s->watch_mask;
    uint32_t *old = s->watch, *more = calloc((old_mask + 1) * 2, sizeof *more);
    if (!more)
        return -ENOMEM;
    s->watch = more;
    s->watch_mask = old_mask * 2 + 1;
    for (uint64_t i = 0; i <= old_mask; i++)
        if (old[i])
            s->watch[find(s, s->samples[old[i] - 1].line)] = old[i];
    free(old);
    return 0;
}

/* Removes an entry; those behind it that may move up do (no tombstones). */
static void unwatch(struct sparse *s, uint64_t hole)
{
    for (uint64_t at = hole;;) {
        at = (at + 1) & s->watch_mask;
        if (!s->watch[at])
            break;
        uint64_t home = home_of(s, s->samples[s->watch[at] - 1].line);
        if (((at - home) & s->watch_mask) >= ((at - hole) & s->watch_mask)) {
            s->watch[hole] = s->watch[at];
            hole = at;
        }
    }
    s->watch[hole] = 0;
    s->watched--;
}

static int start_sample(struct sparse *s, uint64_t line)
{
    if (s->nsamples == s->sample_room) {
        size_t room = s->sample_room ? 2 * s->sample_room : 4096;
        if (room >= UINT32_MAX)
            return -ENOMEM;
        struct sparse_sample *more = reallocarray(s->samples, room, sizeof *more);
        if (!more)
            return -ENOMEM;
        s->samples = more;
        s->sample_room = room;
    }
    if (4 * (s->watched + 1) > s->watch_mask && grow_watch(s) != 0)
        return -ENOMEM;
    uint64_t at = find(s, line);
    s->samples[s->nsamples++] = (struct sparse_sample){s->nwindows - 1, s->now, SPARSE_DANGLING, line};
    s->watch[at] = (uint32_t)s->nsamples;
    s->watched++;
    return 0;
}

static void check_watch(struct sparse *s, uint64_t line, uint64_t now)
{
    uint64_t at = find(s, line);
    if (!s->watch[at])
        return;
    struct sparse_sample *sample = &s->samples[s->watch[at] - 1];
    sample->distance = now - sample->start - 1;
    unwatch(s, at);
}

/* Accesses that start no sample. */
static void pass(struct sparse *s, const uint64_t *accesses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t line = accesses[i] >> SIM_LINE_SHIFT;
        if (__builtin_expect(s->watch[home_of(s, line)] != 0, 0))
            check_watch(s, line, s->now + i);
    }
    s->now += n;
    if (s->awake)
        s->windows[s->nwindows - 1].length += n;
}

int sparse_run(struct sparse *s, const uint64_t *accesses, size_t n, struct error *err)
{
    size_t i = 0;
    while (i < n) {
        int code = 0;
        while (s->now == s->until && code == 0) { /* hibernation may be of no length */
            if (s->awake)
                sleep_for(s, hibernation(s));
            else
                code = open_window(s, s->config.window);
        }
        uint64_t stop = s->awake && s->next_sample < s->until ? s->next_sample : s->until;
        uint64_t stretch = stop - s->now < n - i ? stop - s->now : n - i;
        if (code == 0) {
            pass(s, accesses + i, stretch);
            i += stretch;
            if (i < n && s->awake && s->now == s->next_sample && s->now < s->until) {
                uint64_t line = accesses[i] >> SIM_LINE_SHIFT;
                check_watch(s, line, s->now);
                code = start_sample(s, line);
                s->next_sample = s->now + gap(s);
                s->now++;
                s->windows[s->nwindows - 1].length++;
                i++;
            }
        }
        if (code != 0)
            return error_set(err, code, "no memory for more samples");
    }
    return 0;
}

const struct sparse_sample *sparse_samples(const struct sparse *s, size_t *n)
{
    *n = s->nsamples;
    return s->samples;
}

const struct sparse_window *sparse_windows(const struct sparse *s, size_t *n)
{
    *n = s->nwindows;
    return s->windows;
}

uint64_t sparse_seen(const struct sparse *s)
{
    return s->now;
}
