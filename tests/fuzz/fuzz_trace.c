/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of all formats. What a reader makes of the bytes (as the format that the first byte names, or as
 * recognized) must be references, the same ones each time; written in the own format they must read back as
 * they were; and an input that ends without a word on damage must have been readable to its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "trace/trace.h"

#define MOST (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const formats[] = {"cachegram", "lackey", "din", "csv", "drmemtrace", "usf"};
#define FORMATS (sizeof formats / sizeof formats[0])

/* FNV-1a of all that there is to a reference. */
static uint64_t mix(uint64_t sum, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++, value >>= 8)
        sum = (sum ^ (value & 0xff)) * 0x100000001b3u;
    return sum;
}

/* A sum over all references, written on to w if there is one; *count of them. 0: not opened. */
static uint64_t digest(const char *path, const char *format, struct trace_writer *w, uint64_t *count)
{
    struct error err;
    static struct trace_segment segments[TRACE_BATCH];
    struct trace_batch batch;
    struct trace_reader *r = trace_open(path, format, &err);
    uint64_t sum = 0xcbf29ce484222325u;
    int status;
    *count = 0;
    if (r == NULL) {
        if (err.text[0] == '\0' || strchr(err.text, '\n') != NULL)
            abort();
        return 0;
    }
    while (*count < MOST && (status = trace_next(r, &batch, &err)) > 0) {
        uint32_t expected = 0;
        for (size_t s = 0; s < batch.nsegments; s++) {
            const struct trace_segment *segment = &batch.segment[s];
            struct trace_thread thread = trace_thread(r, segment->thread);
            if (segment->begin != expected || segment->end <= expected || segment->thread >= trace_threads(r))
                abort();
            expected = segment->end;
            for (size_t i = segment->begin; i < segment->end; i++) {
                if (batch.size[i] == 0 || (batch.rw[i] != TRACE_LOAD && batch.rw[i] != TRACE_STORE))
                    abort();
                sum = mix(mix(mix(sum, batch.address[i]), batch.pc[i]),
                          (uint64_t)batch.size[i] << 8 | batch.rw[i]);
                sum = mix(sum, (uint64_t)thread.pid << 32 | thread.tid);
                sum = mix(sum, i == segment->begin && segment->burst);
            }
            segments[s] = *segment;
            if (w != NULL)
                segments[s].thread = (uint32_t)trace_writer_thread(w, thread, &err);
        }
        if (expected != batch.n || batch.n == 0 || batch.n > TRACE_BATCH)
            abort();
        *count += batch.n;
        batch.segment = segments;
        if (w != NULL && trace_write(w, &batch, &err) < 0)
            abort();
    }
    if (trace_damage(r) != NULL && strchr(trace_damage(r)->text, '\n') != NULL)
        abort();
    trace_close(r);
    return sum;
}

static void in_memory(const char *name, int *fd, char path[64])
{
    *fd = memfd_create(name, MFD_CLOEXEC);
    if (*fd < 0)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", *fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    int in, out;
    char from[64], to[64];
    struct error err;
    uint64_t count, again_count, back_count;
    if (n < 1)
        return 0;
    const char *format = (data[0] & 15) < FORMATS ? formats[data[0] & 15] : NULL;
    in_memory("in", &in, from);
    if (write(in, data + 1, n - 1) != (ssize_t)(n - 1))
        abort();
    uint64_t sum = digest(from, format, NULL, &count);
    if (sum != 0 && digest(from, format, NULL, &again_count) != sum)
        abort();
    /* A writer has tables of megabytes; only some inputs are worth the time. */
    if (sum != 0 && (data[0] & 16) != 0) {
        const struct trace_create_options options = {.source = "", .sampled = 1};
        in_memory("out", &out, to);
        struct trace_writer *w = trace_create(to, &options, &err);
        if (w == NULL || digest(from, format, w, &again_count) != sum || trace_finish(w, NULL, &err) < 0 ||
            digest(to, NULL, NULL, &back_count) != sum || back_count != count)
            abort();
        close(out);
    }
    close(in);
    return 0;
}
