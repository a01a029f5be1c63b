/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problem. A reference is 8 bytes of address, 8 of program counter, size, and direction; a trace has
 * billions of them. They are far from random: code runs in loops, data is walked in strides.
 *
 * Method. A site is one (pc, size, direction) of the block, numbered from 1 in order of appearance. Two
 * predictions are made for every reference:
 *  - its site: the one that last followed the site of the previous reference, next[0];
 *  - its address, in one of three ways, namely the one that last worked at this site ("way"): by stride, the
 *    site's last address plus the difference of its last two; by distance, the address of the previous
 *    reference (of any site) plus the difference to it last time, which is right for stack frames and
 *    structures whose base has moved; or the site's last address again.
 *
 * If both are right, nothing is written except the count of a run. Otherwise there is an event: a byte that
 * says what was mispredicted and which streams hold the rest. The streams are then compressed with zstd,
 * which finds repetitions in them. Encoder and decoder maintain the same tables.
 *
 * Event = site code + 4 * address code.
 *   site code      0 as predicted, 1 next[1] (the successor before next[0]), 2 its number is in SITE,
 *                  3 a new site, in NEW
 *   address code   0 as predicted, 1 the next way, 2 the one after that (in circular order); else
 *                  3 + log2(width) + 4 * base: a signed difference of 1, 2, 4 or 8 bytes in the DELTA stream
 *                  of that width, to the site's last address (base 0) or that of the reference before (1)
 *
 * Example: site 1 loads addresses 100, 108, 116, 124. Reference 1: event 3 + 4 * (3 + 0) (a new site, one
 * byte of difference, 100, to its last address, 0). 2: event 2 + 4 * (0): the successor of site 1 is not
 * known, so its number; the stride is 100 - 0, not 8, so this is really 2 + 4 * 3 with a difference of 8. 3
 * and 4: predicted. RUN 0 0, KIND 15 14, SITE 1, NEW (pc, size), DELTA1 100 8; two references follow the last
 * event.
 *
 * Measurements (bytes and ns per reference): docs/trace-format.md.
 */
#include "trace/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/leb128.h"

#define HASH_BITS 17u /* twice the sites */
#define HASH_SIZE (UINT32_C(1) << HASH_BITS)

#define RUN_MAX 255u /* so many predicted references, without an event after them */
enum { SITE_PREDICTED, SITE_OTHER, SITE_NUMBER, SITE_NEW };
enum { WAY_STRIDE, WAY_DISTANCE, WAY_SAME, WAYS };
#define ADDRESS_DELTA 3u
#define ADDRESS_CODES (ADDRESS_DELTA + 8u)
/* A new site: 10 bytes of pc, 3 of size and direction. */
#define NEW_BYTES 13u

struct site {
    uint64_t pc;
    uint64_t last;         /* address */
    uint64_t offset[WAYS]; /* stride, distance, 0 */
    uint32_t next[2];
    uint16_t size;
    uint8_t rw;
    uint8_t way;
};

/* State of both encoder and decoder. */
struct predictor {
    struct site *site; /* COLUMNS_SITES of them; number 0 precedes the first reference, and is no successor */
    uint32_t sites;
    uint32_t at;       /* site of the previous reference */
    uint64_t last;     /* its address */
    uint64_t last_new; /* pc of the newest site */
};

static void predictor_reset(struct predictor *p)
{
    memset(&p->site[0], 0, sizeof(p->site[0]));
    p->sites = 1;
    p->at = 0;
    p->last = 0;
    p->last_new = 0;
}

static inline uint64_t predict(const struct predictor *p, const struct site *s, unsigned way)
{
    return (way == WAY_DISTANCE ? p->last : s->last) + s->offset[way];
}

/* Updates the tables: the reference is of site number n, at that address. */
static inline void learn(struct predictor *p, uint32_t n, uint64_t address)
{
    struct site *s = &p->site[n];
    s->offset[WAY_STRIDE] = address - s->last;
    s->offset[WAY_DISTANCE] = address - p->last;
    s->last = address;
    p->last = address;
    p->at = n;
}

static inline void learn_successor(struct predictor *p, uint32_t n)
{
    struct site *s = &p->site[p->at];
    s->next[1] = s->next[0];
    s->next[0] = n;
}

/* --- encoder --- */

struct stream {
    uint8_t *data;
    size_t n;
};

struct column_encoder {
    struct predictor p;
    struct stream stream[COLUMNS];
    uint32_t references, run;
    uint32_t *hash; /* HASH_SIZE site numbers, 0: empty */
};

/* Most bytes of each stream in a full block, so that encoding needs no checks; memory that is not written to
 * costs nothing. */
static size_t stream_capacity(enum column c)
{
    switch (c) {
    case COLUMN_RUN:
    case COLUMN_KIND:
        return COLUMNS_REFERENCES;
    case COLUMN_SITE:
        return COLUMNS_REFERENCES * 2u;
    case COLUMN_NEW:
        return COLUMNS_SITES * NEW_BYTES;
    default:
        return (size_t)COLUMNS_REFERENCES << (c - COLUMN_DELTA1);
    }
}

struct column_encoder *column_encoder_new(void)
{
    struct column_encoder *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return NULL;
    e->p.site = malloc(COLUMNS_SITES * sizeof(e->p.site[0]));
    e->hash = malloc(HASH_SIZE * sizeof(e->hash[0]));
    int short_of_memory = e->p.site == NULL || e->hash == NULL;
    for (unsigned c = 0; c < COLUMNS; c++)
        short_of_memory |= (e->stream[c].data = malloc(stream_capacity((enum column)c) + 8)) == NULL;
    if (short_of_memory) {
        column_encoder_free(e);
        return NULL;
    }
    column_encoder_reset(e);
    return e;
}

void column_encoder_free(struct column_encoder *e)
{
    if (e == NULL)
        return;
    for (unsigned c = 0; c < COLUMNS; c++)
        free(e->stream[c].data);
    free(e->p.site);
    free(e->hash);
    free(e);
}

void column_encoder_reset(struct column_encoder *e)
{
    predictor_reset(&e->p);
    memset(e->hash, 0, HASH_SIZE * sizeof(e->hash[0]));
    for (unsigned c = 0; c < COLUMNS; c++)
        e->stream[c].n = 0;
    e->references = 0;
    e->run = 0;
}

static void put_byte(struct stream *s, uint64_t value)
{
    s->data[s->n++] = (uint8_t)value;
}

/* Index of the site in the hash table, or of the empty entry for it. */
static uint32_t *look_up(struct column_encoder *e, uint64_t pc, uint16_t size, uint8_t rw)
{
    uint64_t key = (pc ^ (uint64_t)size << 48 ^ (uint64_t)rw << 62) * 0x9e3779b97f4a7c15u;
    for (uint64_t h = key >> (64 - HASH_BITS);; h = (h + 1) & (HASH_SIZE - 1)) {
        const struct site *s = &e->p.site[e->hash[h]];
        if (e->hash[h] == 0 || (s->pc == pc && s->size == size && s->rw == rw))
            return &e->hash[h];
    }
}

static void add_site(struct column_encoder *e, uint32_t n, uint64_t pc, uint16_t size, uint8_t rw)
{
    e->p.site[n] = (struct site){.pc = pc, .size = size, .rw = rw, .way = WAY_DISTANCE};
    struct stream *s = &e->stream[COLUMN_NEW];
    s->n += leb128_put(s->data + s->n, zigzag((int64_t)(pc - e->p.last_new)));
    s->n += leb128_put(s->data + s->n, (uint64_t)size << 1 | (rw == TRACE_STORE));
    e->p.last_new = pc;
}

/* log2 of the number of bytes for a signed difference. */
static inline unsigned width_of(uint64_t delta)
{
    int64_t d = (int64_t)delta;
    return d == (int8_t)d ? 0 : d == (int16_t)d ? 1 : d == (int32_t)d ? 2 : 3;
}

/* Writes the difference of an address that the site's way did not predict. Returns its code. */
static unsigned put_address(struct column_encoder *e, struct site *s, uint64_t address)
{
    for (unsigned code = 1; code < WAYS; code++) {
        unsigned way = (s->way + code) % WAYS;
        if (predict(&e->p, s, way) == address) {
            s->way = (uint8_t)way;
            return code;
        }
    }
    uint64_t delta = address - s->last;
    unsigned width = width_of(delta), base = 0;
    if (width_of(address - e->p.last) < width) {
        base = 1;
        delta = address - e->p.last;
        width = width_of(delta);
    }
    struct stream *stream = &e->stream[COLUMN_DELTA1 + width];
    memcpy(stream->data + stream->n, &delta, sizeof(delta)); /* little endian: the low bytes are first */
    stream->n += (size_t)1 << width;
    return ADDRESS_DELTA + width + 4 * base;
}

int64_t column_encode(struct column_encoder *e, const struct trace_batch *batch, size_t begin, size_t end,
                      size_t *bad)
{
    struct predictor *p = &e->p;
    size_t i = begin;
    if (end - begin > COLUMNS_REFERENCES - e->references)
        end = begin + (COLUMNS_REFERENCES - e->references);
    for (; i < end && p->sites < COLUMNS_SITES; i++) {
        uint64_t address = batch->address[i], pc = batch->pc[i];
        uint16_t size = batch->size[i];
        uint8_t rw = batch->rw[i];
        uint32_t n = p->site[p->at].next[0];
        unsigned site_code = SITE_PREDICTED, address_code;
        struct site *s = &p->site[n];

        if (s->pc != pc || s->size != size || s->rw != rw) {
            n = p->site[p->at].next[1];
            s = &p->site[n];
            site_code = SITE_OTHER;
            if (s->pc != pc || s->size != size || s->rw != rw) {
                if (size == 0 || (rw != TRACE_LOAD && rw != TRACE_STORE)) {
                    *bad = i;
                    return -EINVAL;
                }
                uint32_t *place = look_up(e, pc, size, rw);
                n = *place;
                site_code = SITE_NUMBER;
                if (n == 0) {
                    site_code = SITE_NEW;
                    *place = n = p->sites++;
                    add_site(e, n, pc, size, rw);
                } else {
                    put_byte(&e->stream[COLUMN_SITE], n);
                    put_byte(&e->stream[COLUMN_SITE], n >> 8);
                }
                s = &p->site[n];
            }
            learn_successor(p, n);
        }
        address_code = predict(p, s, s->way) == address ? 0 : put_address(e, s, address);
        learn(p, n, address);
        if (site_code == SITE_PREDICTED && address_code == 0) {
            if (++e->run < RUN_MAX)
                continue;
        } else {
            put_byte(&e->stream[COLUMN_KIND], site_code + 4 * address_code);
        }
        put_byte(&e->stream[COLUMN_RUN], e->run);
        e->run = 0;
    }
    e->references += (uint32_t)(i - begin);
    return (int64_t)i;
}

void column_encoder_streams(const struct column_encoder *e, struct column_bytes streams[COLUMNS])
{
    /* The last run, without an event after it, is not written: the block stores its number of references. */
    for (unsigned c = 0; c < COLUMNS; c++)
        streams[c] = (struct column_bytes){e->stream[c].data, e->stream[c].n};
}

/* --- decoder --- */

struct column_decoder {
    struct predictor p;
    const uint8_t *at[COLUMNS], *end[COLUMNS];
    uint64_t run; /* number of predicted references before */
    int event;    /* the next event */
};

struct column_decoder *column_decoder_new(void)
{
    struct column_decoder *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return NULL;
    d->p.site = malloc(COLUMNS_SITES * sizeof(d->p.site[0]));
    if (d->p.site == NULL) {
        column_decoder_free(d);
        return NULL;
    }
    struct column_bytes nothing[COLUMNS];
    for (unsigned c = 0; c < COLUMNS; c++)
        nothing[c] = (struct column_bytes){.data = (const uint8_t *)""};
    column_decoder_begin(d, nothing);
    return d;
}

void column_decoder_free(struct column_decoder *d)
{
    if (d == NULL)
        return;
    free(d->p.site);
    free(d);
}

static void next_run(struct column_decoder *d)
{
    if (d->at[COLUMN_RUN] == d->end[COLUMN_RUN]) {
        d->run = UINT64_MAX;
        d->event = 0;
        return;
    }
    d->run = *d->at[COLUMN_RUN]++;
    d->event = d->run != RUN_MAX;
}

void column_decoder_begin(struct column_decoder *d, const struct column_bytes streams[COLUMNS])
{
    predictor_reset(&d->p);
    /* Even damaged streams must decode to valid references. */
    d->p.site[0].size = 1;
    d->p.site[0].rw = TRACE_LOAD;
    for (unsigned c = 0; c < COLUMNS; c++) {
        d->at[c] = streams[c].data;
        d->end[c] = streams[c].data + streams[c].n;
    }
    next_run(d);
}

static int get_new_site(struct column_decoder *d, uint32_t *n)
{
    uint64_t pc, size_rw;
    const uint8_t **at = &d->at[COLUMN_NEW], *end = d->end[COLUMN_NEW];
    if (d->p.sites >= COLUMNS_SITES || leb128_take(at, end, &pc) < 0 || leb128_take(at, end, &size_rw) < 0 ||
        size_rw >> 1 == 0 || size_rw >> 1 > UINT16_MAX)
        return -EBADMSG;
    pc = d->p.last_new + (uint64_t)unzigzag(pc);
    d->p.last_new = pc;
    *n = d->p.sites++;
    d->p.site[*n] = (struct site){.pc = pc,
                                  .size = (uint16_t)(size_rw >> 1),
                                  .rw = (size_rw & 1) != 0 ? TRACE_STORE : TRACE_LOAD,
                                  .way = WAY_DISTANCE};
    return 0;
}

static int get_address(struct column_decoder *d, struct site *s, unsigned code, uint64_t *address)
{
    if (code < ADDRESS_DELTA) {
        s->way = (uint8_t)((s->way + code) % WAYS);
        *address = predict(&d->p, s, s->way);
        return 0;
    }
    if (code >= ADDRESS_CODES)
        return -EBADMSG;
    unsigned width = (code - ADDRESS_DELTA) & 3;
    enum column c = COLUMN_DELTA1 + width;
    const uint8_t *at = d->at[c];
    int64_t delta;
    if ((size_t)(d->end[c] - at) < (size_t)1 << width)
        return -EBADMSG;
    d->at[c] += (size_t)1 << width;
    if (width == 0) {
        delta = (int8_t)*at;
    } else if (width == 1) {
        int16_t narrow;
        memcpy(&narrow, at, sizeof(narrow));
        delta = narrow;
    } else if (width == 2) {
        int32_t narrow;
        memcpy(&narrow, at, sizeof(narrow));
        delta = narrow;
    } else {
        memcpy(&delta, at, sizeof(delta));
    }
    *address = (code - ADDRESS_DELTA >= 4 ? d->p.last : s->last) + (uint64_t)delta;
    return 0;
}

/* Decodes the one reference of an event. */
static int get_event(struct column_decoder *d, uint64_t *address)
{
    struct predictor *p = &d->p;
    uint32_t n = p->site[p->at].next[0];
    if (d->at[COLUMN_KIND] == d->end[COLUMN_KIND])
        return -EBADMSG;
    uint8_t kind = *d->at[COLUMN_KIND]++;
    switch (kind & 3) {
    case SITE_PREDICTED:
        break;
    case SITE_OTHER:
        n = p->site[p->at].next[1];
        break;
    case SITE_NUMBER:
        if (d->end[COLUMN_SITE] - d->at[COLUMN_SITE] < 2)
            return -EBADMSG;
        n = (uint32_t)(d->at[COLUMN_SITE][0] | d->at[COLUMN_SITE][1] << 8);
        d->at[COLUMN_SITE] += 2;
        if (n >= p->sites)
            return -EBADMSG;
        break;
    default:
        if (get_new_site(d, &n) < 0)
            return -EBADMSG;
    }
    if ((kind & 3) != SITE_PREDICTED)
        learn_successor(p, n);
    int status = get_address(d, &p->site[n], kind >> 2, address);
    if (status == 0)
        learn(p, n, *address);
    return status;
}

int column_decode(struct column_decoder *d, size_t n, uint64_t *address, uint64_t *pc, uint16_t *size,
                  uint8_t *rw)
{
    struct predictor p = d->p; /* in registers */
    for (size_t i = 0; i < n;) {
        size_t stop = d->run < n - i ? i + (size_t)d->run : n;
        d->run -= stop - i;
        for (; i < stop; i++) {
            uint32_t number = p.site[p.at].next[0];
            const struct site *s = &p.site[number];
            pc[i] = s->pc;
            size[i] = s->size;
            rw[i] = s->rw;
            address[i] = predict(&p, s, s->way);
            learn(&p, number, address[i]);
        }
        if (i == n)
            break;
        if (d->event) {
            d->p = p;
            int status = get_event(d, &address[i]);
            if (status < 0)
                return status;
            p = d->p;
            const struct site *s = &p.site[p.at];
            pc[i] = s->pc;
            size[i] = s->size;
            rw[i] = s->rw;
            i++;
        }
        next_run(d);
    }
    d->p = p;
    return 0;
}
