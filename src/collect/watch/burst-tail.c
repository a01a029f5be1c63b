/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/watch/burst-tail.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/pages.h"

#define FILTER_BITS 4096u
#define PLACES (2 * TAIL_MOST_LINES)

struct place {
    uint64_t line;
    int used, touched;
    struct tail_touch touch;
};

struct burst_tail {
    uint64_t filter[FILTER_BITS / 64]; /* bit: some followed line has that hash */
    struct place places[PLACES];       /* open addressing */
    size_t n;
    uint64_t touches, references, steps, most;
    struct distinct *distinct;
    struct distinct_touched touched[DISTINCT_LISTED];
    struct decoder *decoder; /* of the current process */
    struct decode_sites sites;
    uint32_t executions[WIRE_MAX_BLOCKS], executed[WIRE_MAX_BLOCKS + 1];
};

static void no_more(void *ctx, uint32_t site, uint64_t touches)
{
    (void)ctx, (void)site, (void)touches;
}

struct burst_tail *burst_tail_new(void)
{
    struct burst_tail *t = pages_sparse_new(sizeof(*t));
    if (t == NULL)
        return NULL;
    t->sites = (struct decode_sites){.executions = t->executions, .executed = t->executed, .more = no_more};
    if ((t->distinct = distinct_new()) == NULL) {
        burst_tail_free(t);
        return NULL;
    }
    return t;
}

void burst_tail_free(struct burst_tail *t)
{
    if (t != NULL)
        distinct_free(t->distinct);
    pages_sparse_free(t, sizeof(*t));
}

void burst_tail_begin(struct burst_tail *t, const struct stackdist_survivor *survivors, size_t n)
{
    distinct_reset(t->distinct);
    for (size_t i = 0; i < n; i++)
        distinct_survivor(t->distinct, survivors[i].line, survivors[i].age);
    memset(t->filter, 0, sizeof(t->filter));
    memset(t->places, 0, sizeof(t->places));
    t->n = 0;
    t->touches = t->references = t->steps = 0;
}

static inline unsigned hash(uint64_t line)
{
    return (unsigned)(line * UINT64_C(0x9e3779b97f4a7c15) >> 32) % FILTER_BITS;
}

/* The place of that line, or the free one that it would take. */
static size_t place_of(const struct burst_tail *t, uint64_t line)
{
    size_t i = hash(line) % PLACES;
    while (t->places[i].used && t->places[i].line != line)
        i = (i + 1) % PLACES;
    return i;
}

void burst_tail_follow(struct burst_tail *t, uint64_t line)
{
    struct place *place = &t->places[place_of(t, line)];
    if (place->used || t->n == TAIL_MOST_LINES)
        return;
    *place = (struct place){.line = line, .used = 1};
    t->n++;
    t->filter[hash(line) / 64] |= UINT64_C(1) << hash(line) % 64;
}

static void found(struct burst_tail *t, uint64_t line, size_t i)
{
    struct place *place = &t->places[place_of(t, line)];
    uint32_t module;
    if (!place->used || place->touched)
        return;
    place->touched = 1;
    place->touch = (struct tail_touch){.before = t->touches + i};
    uint32_t site = decode_touch_site(decoder_touches(t->decoder)[i]);
    if (decoder_site_code(t->decoder, site, &place->touch.pc, &module) != 0)
        place->touch.pc = 0;
}

static int take_lines(void *ctx, const uint64_t *lines, size_t n)
{
    struct burst_tail *t = ctx;
    const uint32_t *touched = decoder_touches(t->decoder);
    for (size_t i = 0; i < n; i++) {
        unsigned h = hash(lines[i]);
        if (__builtin_expect(t->filter[h / 64] >> h % 64 & 1, 0))
            found(t, lines[i], i);
        distinct_touch(t->distinct, lines[i], t->touches + i, touched[i]);
    }
    t->touches += n;
    return t->touches > t->most ? -ECANCELED : 0;
}

int burst_tail_decode(struct burst_tail *t, struct decoder *d, const struct wire_desc *desc,
                      const uint64_t *words, uint64_t n, uint64_t most)
{
    struct decode_counts counts = {0};
    t->decoder = d;
    t->most = most;
    decoder_note_sites(d, &t->sites);
    int status = decode_buffer(d, desc, words, n, take_lines, t, &counts);
    decoder_note_sites(d, NULL);
    for (size_t i = 0; i < t->sites.nexecuted; i++)
        t->executions[t->executed[i]] = 0;
    t->sites.nexecuted = 0;
    t->references = counts.references;
    t->steps = counts.steps;
    return status == -ECANCELED ? 0 : status;
}

uint64_t burst_tail_touches(const struct burst_tail *t)
{
    return t->touches;
}

uint64_t burst_tail_references(const struct burst_tail *t)
{
    return t->references;
}

uint64_t burst_tail_steps(const struct burst_tail *t)
{
    return t->steps;
}

double burst_tail_growth(const struct burst_tail *t, uint64_t age, uint64_t touches)
{
    return distinct_growth(t->distinct, age, touches);
}

const struct tail_touch *burst_tail_find(const struct burst_tail *t, uint64_t line)
{
    const struct place *place = &t->places[place_of(t, line)];
    return place->used && place->touched ? &place->touch : NULL;
}

const struct distinct_touched *burst_tail_touched(struct burst_tail *t, unsigned *n, uint64_t *represented)
{
    *n = distinct_touched(t->distinct, t->touched, represented);
    return t->touched;
}
