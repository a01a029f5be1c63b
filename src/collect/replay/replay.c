/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - several samplers process one stream side by side.
 *
 * Between its bursts, a sampler only waits for its watched lines. The watched lines of all samplers are in
 * one hash table. A bit for every used bucket, in an array that stays in the cache, makes a reference cost
 * one look-up, however many samplers there are.
 */
#include "collect/replay/replay.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "base/array.h"
#include "base/random.h"
#include "collect/reduce/burst.h"
#include "collect/watch/watch.h"

#define BUCKET_BITS 18u
#define BUCKETS (1u << BUCKET_BITS)
#define NOBODY UINT32_MAX
#define NEVER UINT64_MAX

struct watched {
    uint64_t line, id, from; /* from: reference number of the burst's end */
    uint64_t drop_at;        /* reference number, or NEVER */
    uint32_t sampler, next;
};

struct sampler {
    struct replay *replay;
    struct replay_options options;
    struct profile *profile;
    struct burst *burst;
    struct watches *watches;
    struct random_state random;
    uint64_t process;
    double phase;    /* of the clock error's waves */
    uint64_t *start; /* of every burst */
    uint64_t index;  /* of the current burst, or the next one */
    int active;
    uint64_t loads;
};

struct replay {
    struct sampler **sampler;
    uint32_t nsamplers;
    unsigned line_shift;
    uint64_t now; /* number of the next reference */
    struct watched *watched;
    uint32_t nwatched, free_list;
    size_t capacity;
    uint64_t bits[BUCKETS / 64];
    uint32_t bucket[BUCKETS];
    uint64_t lines[3 * REPLAY_BATCH];
    uint16_t
        of[3 * REPLAY_BATCH]; /* number, within the current call, of the reference that touched lines[i] */
};

struct replay *replay_new(struct error *err)
{
    struct replay *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        error_set(err, -ENOMEM, "out of memory for a replay");
        return NULL;
    }
    r->free_list = NOBODY;
    for (uint32_t i = 0; i < BUCKETS; i++)
        r->bucket[i] = NOBODY;
    return r;
}

static void sampler_free(struct sampler *s)
{
    if (s == NULL)
        return;
    burst_free(s->burst);
    watches_free(s->watches);
    free(s->start);
    free(s);
}

void replay_free(struct replay *r)
{
    if (r == NULL)
        return;
    for (uint32_t i = 0; i < r->nsamplers; i++)
        sampler_free(r->sampler[i]);
    free(r->sampler);
    free(r->watched);
    free(r);
}

/* Reading of the sampler's clock at a reference: its error varies in three waves over the run. */
static double clock_at(const struct sampler *s, uint64_t reference)
{
    double wave = (double)s->options.references / (6 * acos(-1)); /* a third of the run, over 2 pi */
    double t = (double)reference;
    return t + s->options.clock_error * wave * (cos(s->phase) - cos(t / wave + s->phase));
}

/* --- watched lines --- */

static uint32_t bucket_of(uint64_t line)
{
    return (uint32_t)(line * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BUCKET_BITS));
}

static uint32_t new_watched(struct replay *r)
{
    uint32_t i = r->free_list;
    if (i != NOBODY) {
        r->free_list = r->watched[i].next;
        return i;
    }
    if (ARRAY_GROW(r->watched, r->nwatched, r->capacity) < 0)
        return NOBODY;
    return r->nwatched++;
}

/* Draws the burst in which the line will be dropped; returns its first reference. */
static uint64_t draw_drop(struct sampler *s)
{
    if (s->options.drop_rate <= 0)
        return NEVER;
    for (uint64_t i = s->index + 1; i < s->options.bursts; i++)
        if (random_unit(&s->random) < s->options.drop_rate)
            return s->start[i];
    return NEVER;
}

static int take_request(struct sampler *s, const struct watch_request *request, struct error *err)
{
    struct replay *r = s->replay;
    uint32_t i = new_watched(r);
    if (i == NOBODY)
        return error_set(err, -ENOMEM, "out of memory for watched lines");
    uint64_t line = request->address >> r->line_shift;
    uint32_t bucket = bucket_of(line), number = 0;
    while (r->sampler[number] != s)
        number++;
    r->watched[i] = (struct watched){
        .line = line,
        .id = request->id,
        .from = s->start[s->index] + s->options.burst_refs,
        .drop_at = draw_drop(s),
        .sampler = number,
        .next = r->bucket[bucket],
    };
    r->bucket[bucket] = i;
    r->bits[bucket / 64] |= UINT64_C(1) << bucket % 64;
    return 0;
}

static int report_outcome(struct replay *r, const struct watched *w, uint64_t now,
                          enum profile_outcome outcome, struct error *err)
{
    struct sampler *s = r->sampler[w->sampler];
    if (w->drop_at <= now) {
        outcome = PROFILE_DROPPED;
        now = w->drop_at;
    }
    double refs = clock_at(s, now) - clock_at(s, w->from);
    const struct profile_watch watch = {.id = w->id,
                                        .own_cpu_ns = NAN,
                                        .outcome = outcome,
                                        .tail_refs = NAN,
                                        .tail_lines = NAN,
                                        .refs = fmax(0, refs),
                                        .cpu_ns = NAN,
                                        .translated_refs = NAN,
                                        .clock_error = s->options.clock_error};
    return watches_outcome(s->watches, &watch, err);
}

/* Ends all watches of the line, which reference number `now` touched. */
static int touch_watched(struct replay *r, uint64_t line, uint64_t now, struct error *err)
{
    uint32_t bucket = bucket_of(line), *link = &r->bucket[bucket];
    while (*link != NOBODY) {
        uint32_t i = *link;
        struct watched *w = &r->watched[i];
        if (w->line != line) {
            link = &w->next;
            continue;
        }
        int status = report_outcome(r, w, now, PROFILE_REUSED, err);
        if (status < 0)
            return status;
        *link = w->next;
        w->next = r->free_list;
        r->free_list = i;
    }
    if (r->bucket[bucket] == NOBODY)
        r->bits[bucket / 64] &= ~(UINT64_C(1) << bucket % 64);
    return 0;
}

/* --- samplers --- */

static int check(const struct replay *r, const struct replay_options *o, struct error *err)
{
    if (o->references == 0 || o->bursts == 0 || o->burst_refs == 0)
        return error_set(err, -EINVAL, "a stream, its bursts and their length must be at least 1");
    if (o->burst_refs > o->references / o->bursts)
        return error_set(err, -EINVAL,
                         "%llu bursts of %llu references do not fit into %llu references: ask for fewer or "
                         "shorter ones",
                         (unsigned long long)o->bursts, (unsigned long long)o->burst_refs,
                         (unsigned long long)o->references);
    if (!(o->drop_rate >= 0 && o->drop_rate <= 1) || !(o->clock_error >= 0 && o->clock_error < 1))
        return error_set(err, -EINVAL, "the drop rate must be 0 to 1, the clock's error 0 to below 1");
    if (o->line_bytes == 0 || (o->line_bytes & (o->line_bytes - 1)) != 0 ||
        (r->nsamplers > 0 && o->line_bytes != 1u << r->line_shift))
        return error_set(err, -EINVAL, "the line size must be a power of two, the same for all samplers");
    return 0;
}

int replay_add(struct replay *r, const struct replay_options *o, struct profile *p, struct error *err)
{
    int status = check(r, o, err);
    if (status < 0)
        return status;
    struct sampler **larger = realloc(r->sampler, (r->nsamplers + 1) * sizeof(struct sampler *));
    struct sampler *s = calloc(1, sizeof(*s));
    if (larger != NULL)
        r->sampler = larger;
    uint64_t *start = s != NULL ? calloc(o->bursts, sizeof(*start)) : NULL;
    if (larger == NULL || start == NULL) {
        free(s);
        return error_set(err, -ENOMEM, "out of memory for a sampler");
    }
    *s = (struct sampler){.replay = r, .options = *o, .profile = p, .start = start};
    random_seed(&s->random, o->seed);
    s->phase = random_unit(&s->random) * 2 * acos(-1);
    for (uint64_t i = 0; i < o->bursts; i++) {
        /* Part i of the stream, to the exact reference. */
        uint64_t begin = (uint64_t)((unsigned __int128)o->references * i / o->bursts);
        uint64_t end = (uint64_t)((unsigned __int128)o->references * (i + 1) / o->bursts);
        s->start[i] = begin + random_below(&s->random, end - begin - o->burst_refs + 1);
    }
    s->burst = burst_new(err);
    s->watches = watches_new(p, o->watch, o->line_bytes, random_next(&s->random), err);
    if (s->burst == NULL || s->watches == NULL)
        status = -ENOMEM;
    if (status == 0)
        status = profile_add_process(p, 0, 0, "", 0, &s->process, err);
    if (status < 0) {
        sampler_free(s);
        return status;
    }
    r->line_shift = (unsigned)__builtin_ctz(o->line_bytes);
    r->sampler[r->nsamplers++] = s;
    return 0;
}

static int end_burst(struct sampler *s, struct error *err)
{
    const struct replay_options *o = &s->options;
    struct profile_burst row = {
        .process = s->process,
        .references = o->burst_refs,
        .loads = s->loads,
        .stores = o->burst_refs - s->loads,
        .end = 1, /* full length */
        .weight = (double)o->references / (double)o->bursts,
        .start_refs = clock_at(s, s->start[s->index]),
        .refs_per_ns = NAN, /* a trace has no time */
        .near_per_ns = NAN,
        .string_hits = NAN,
        .gap_ns = NAN,
    };
    struct burst_summary summary;
    const struct watch_request *requests;
    if (burst_end(s->burst, &summary) < 0)
        return error_set(err, -ENOMEM, "out of memory for the survivors of a burst");
    int status = burst_store(&summary, s->profile, &row, err);
    if (status < 0)
        return status;
    const struct watch_burst burst = {.burst = row.id, .survivors = summary.survivors, .n = summary.lines};
    long n = watches_choose(s->watches, &burst, &requests, err);
    if (n < 0)
        return (int)n;
    for (long i = 0; i < n && status == 0; i++)
        status = take_request(s, &requests[i], err);
    s->active = 0;
    s->index++;
    s->loads = 0;
    return status;
}

/* Begins and ends bursts at the current reference. *until: lowered to the next begin or end. */
static int begin_and_end_bursts(struct sampler *s, uint64_t now, uint64_t *until, struct error *err)
{
    int status = 0;
    if (s->active && now == s->start[s->index] + s->options.burst_refs)
        status = end_burst(s, err);
    if (status == 0 && !s->active && s->index < s->options.bursts && now == s->start[s->index]) {
        s->active = 1;
        status = burst_begin(s->burst, s->options.sets, err);
    }
    if (status == 0 && s->index < s->options.bursts) {
        uint64_t event = s->start[s->index] + (s->active ? s->options.burst_refs : 0);
        if (event < *until)
            *until = event;
    }
    return status;
}

/* Lists the lines of references [0, n); returns their number. */
static size_t list_lines(struct replay *r, uint32_t space, const uint64_t *address, const uint16_t *size,
                         size_t *n)
{
    uint64_t high = (uint64_t)space << 53;
    size_t used = 0, i;
    for (i = 0; i < *n; i++) {
        uint64_t first = address[i] >> r->line_shift;
        uint64_t last = (address[i] + size[i] - 1) >> r->line_shift;
        if (last < first) /* wraps around the end of the address space */
            last = first;
        if (used + (last - first) >= sizeof(r->lines) / sizeof(r->lines[0])) {
            if (i > 0)
                break;
            last = first + sizeof(r->lines) / sizeof(r->lines[0]) - 1;
        }
        for (uint64_t line = first; line <= last; line++) {
            r->of[used] = (uint16_t)i;
            r->lines[used++] = line | high;
        }
    }
    *n = i;
    return used;
}

/* References between two begins or ends of bursts. */
static int stretch(struct replay *r, size_t nlines, const uint8_t *rw, size_t n, struct error *err)
{
    for (uint32_t k = 0; k < r->nsamplers; k++) {
        struct sampler *s = r->sampler[k];
        if (!s->active)
            continue;
        if (burst_touch(s->burst, r->lines, nlines) < 0)
            return error_set(err, -ENOMEM, "out of memory for stack distances");
        for (size_t i = 0; i < n; i++)
            s->loads += rw[i] & 1u;
    }
    for (size_t i = 0; i < nlines; i++) {
        uint32_t bucket = bucket_of(r->lines[i]);
        if (r->bits[bucket / 64] >> bucket % 64 & 1) {
            int status = touch_watched(r, r->lines[i], r->now + r->of[i], err);
            if (status < 0)
                return status;
        }
    }
    return 0;
}

int replay_references(struct replay *r, uint32_t space, const uint64_t *address, const uint16_t *size,
                      const uint8_t *rw, size_t n, struct error *err)
{
    for (size_t done = 0; done < n;) {
        uint64_t until = r->now + (n - done);
        for (uint32_t k = 0; k < r->nsamplers; k++) {
            int status = begin_and_end_bursts(r->sampler[k], r->now, &until, err);
            if (status < 0)
                return status;
        }
        size_t count = (size_t)(until - r->now);
        size_t nlines = list_lines(r, space, address + done, size + done, &count);
        int status = stretch(r, nlines, rw + done, count, err);
        if (status < 0)
            return status;
        r->now += count;
        done += count;
    }
    return 0;
}

int replay_finish(struct replay *r, struct error *err)
{
    uint64_t until = NEVER;
    for (uint32_t k = 0; k < r->nsamplers; k++) {
        int status = begin_and_end_bursts(r->sampler[k], r->now, &until, err);
        if (status < 0)
            return status;
    }
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        for (uint32_t i = r->bucket[bucket]; i != NOBODY; i = r->watched[i].next) {
            int status = report_outcome(r, &r->watched[i], r->now, PROFILE_ENDED, err);
            if (status < 0)
                return status;
        }
        r->bucket[bucket] = NOBODY;
    }
    return 0;
}
