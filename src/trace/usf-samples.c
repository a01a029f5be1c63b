/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usf-samples.c - the sparse samples of USF files. A sample is two accesses and a byte, the binary logarithm
 * of the line size; a dangling one has one access only. A burst event has the time at which the burst (here:
 * window) begins. Samples come after the event of their window, but possibly also after that of the next one,
 * since they are written when they end: the time of the first access determines the window.
 */
#include "trace/usf-samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/trace.h"
#include "trace/usf-format.h"

static int add_sample(struct usf_samples *s, uint64_t begin, uint64_t end, uint64_t address,
                      struct error *err)
{
    if (ARRAY_GROW(s->sample, s->nsamples, s->samples_capacity) < 0)
        return error_set(err, -ENOMEM, "out of memory for samples");
    s->sample[s->nsamples++] = (struct usf_sample){.begin = begin, .end = end, .address = address};
    return 0;
}

static int add_window(struct usf_samples *s, uint64_t begin, struct error *err)
{
    if (ARRAY_GROW(s->window, s->nwindows, s->windows_capacity) < 0)
        return error_set(err, -ENOMEM, "out of memory for samples");
    s->window[s->nwindows++] = (struct usf_window){begin};
    return 0;
}

/* Reads the bytes of the event after its type as a little-endian number: 1, or 0 after damage. */
static int get_number(struct trace_reader *r, size_t bytes, uint64_t *number, struct error *err)
{
    unsigned long long offset = trace_input_offset(&r->in);
    int64_t have = trace_input_need(&r->in, bytes, err);
    if (have < 0)
        return (int)have;
    if ((size_t)have < bytes)
        return trace_damaged(r, "truncated at byte %llu", offset);
    *number = 0;
    memcpy(number, r->in.buffer + r->in.at, bytes);
    r->in.at += bytes;
    return 1;
}

/* 1: a sample or window was read; 0: the end, or damage. */
static int get_event(struct trace_reader *r, unsigned line_bytes, struct usf_samples *s, struct error *err)
{
    const struct usf *u = r->state;
    unsigned long long offset = trace_input_offset(&r->in);
    uint64_t type, begin = 0, end = USF_DANGLING, address, shift;
    int64_t have = trace_input_need(&r->in, 1, err);
    if (have <= 0)
        return (int)have;
    int status = get_number(r, 1, &type, err);
    if (status > 0 && type == USF_EVENT_BURST) {
        status = get_number(r, 8, &begin, err);
        return status > 0 && add_window(s, begin, err) < 0 ? -ENOMEM : status;
    }
    if (status > 0 && type > USF_EVENT_DANGLING)
        return trace_damaged(r, "damaged at byte %llu: no sample has type %u", offset, (unsigned)type);
    if (status > 0)
        status = usf_get_access(r, err);
    begin = u->last.number[2];
    address = u->last.number[1];
    if (status > 0 && type == USF_EVENT_SAMPLE) {
        status = usf_get_access(r, err);
        end = u->last.number[2];
    }
    if (status > 0)
        status = get_number(r, 1, &shift, err);
    if (status <= 0)
        return status;
    if (end <= begin)
        return trace_damaged(r, "damaged at byte %llu: a sample ends before it begins", offset);
    if (shift >= 32 || UINT64_C(1) << shift != line_bytes) {
        s->left_out++;
        return 1;
    }
    return add_sample(s, begin, end, address, err) < 0 ? -ENOMEM : 1;
}

static int by_begin(const void *a, const void *b)
{
    const struct usf_sample *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int by_window(const void *a, const void *b)
{
    const struct usf_window *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Sorts everything, and assigns samples to their windows. */
static int arrange(struct usf_samples *s, struct error *err)
{
    size_t w = 0;
    if (s->nsamples == 0)
        return 0;
    qsort(s->sample, s->nsamples, sizeof(*s->sample), by_begin);
    if (s->nwindows > 0)
        qsort(s->window, s->nwindows, sizeof(*s->window), by_window);
    /* The file may lack bursts, and a sampler may begin before the first one. */
    if (s->nwindows == 0 || s->sample[0].begin < s->window[0].begin) {
        int status = add_window(s, 0, err);
        if (status < 0)
            return status;
        memmove(s->window + 1, s->window, (s->nwindows - 1) * sizeof(*s->window));
        s->window[0].begin = s->sample[0].begin;
    }
    for (size_t i = 0; i < s->nsamples; i++) {
        while (w + 1 < s->nwindows && s->window[w + 1].begin <= s->sample[i].begin)
            w++;
        s->sample[i].window = w;
    }
    return 0;
}

int usf_samples_read(const char *path, unsigned line_bytes, struct usf_samples *samples, struct error *damage,
                     struct error *err)
{
    struct usf_samples s = {0};
    *damage = (struct error){0};
    struct trace_reader *r = trace_open(path, NULL, err);
    if (r == NULL)
        return -EBADMSG;
    if (r->format != &trace_format_usf || (((struct usf *)r->state)->flags & USF_FLAG_TRACE) != 0) {
        trace_close(r);
        return 0;
    }
    int status;
    while ((status = get_event(r, line_bytes, &s, err)) > 0)
        ;
    const struct error *why = trace_damage(r);
    if (status == 0 && why != NULL) {
        *damage = *why;
        if (s.nsamples + s.left_out == 0)
            status = error_set(err, -EBADMSG, "%s", why->text);
    }
    trace_close(r);
    if (status == 0)
        status = arrange(&s, err);
    if (status < 0) {
        usf_samples_clear(&s);
        return status;
    }
    *samples = s;
    return 1;
}

void usf_samples_clear(struct usf_samples *samples)
{
    free(samples->sample);
    free(samples->window);
    *samples = (struct usf_samples){0};
}

/* --- writing --- */

static void put(FILE *file, const void *bytes, size_t n)
{
    fwrite(bytes, 1, n, file);
}

static void put_access(FILE *file, uint64_t address, uint64_t time)
{
    const uint64_t number[3] = {0, address, time};
    const uint16_t unknown[2] = {USF_THREAD_UNKNOWN, USF_LENGTH_UNKNOWN};
    put(file, number, sizeof(number));
    put(file, unknown, sizeof(unknown));
    put(file, &(uint8_t){USF_UNKNOWN}, 1);
}

int usf_samples_write(FILE *file, unsigned line_bytes, const struct usf_samples *samples, struct error *err)
{
    uint8_t header[USF_HEADER_BYTES] = {0}, shift = (uint8_t)__builtin_ctz(line_bytes);
    uint32_t length = sizeof(header), flags = USF_FLAG_NATIVE_ENDIAN | USF_FLAG_BURST;
    uint16_t version = USF_VERSION;
    memcpy(header, &version, 2);
    memcpy(header + 4, &flags, 4);
    memcpy(header + 24, &line_bytes, 4);
    put(file, USF_MAGIC, USF_MAGIC_BYTES);
    put(file, &length, sizeof(length));
    put(file, header, sizeof(header));
    size_t w = 0;
    for (size_t i = 0; i < samples->nsamples; i++) {
        const struct usf_sample *s = &samples->sample[i];
        for (; w < samples->nwindows && w <= s->window; w++) {
            put(file, &(uint8_t){USF_EVENT_BURST}, 1);
            put(file, &samples->window[w].begin, 8);
        }
        put(file, &(uint8_t){s->end == USF_DANGLING ? USF_EVENT_DANGLING : USF_EVENT_SAMPLE}, 1);
        put_access(file, s->address, s->begin);
        if (s->end != USF_DANGLING)
            put_access(file, s->address, s->end);
        put(file, &shift, 1);
    }
    return ferror(file) ? error_set(err, -EIO, "cannot write the samples: %s", strerror(errno)) : 0;
}
