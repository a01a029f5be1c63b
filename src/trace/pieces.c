/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.c - shared by the formats: numbered threads, filling a batch, damage. */
#include "trace/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int trace_threads_set(struct trace_threads *t, uint32_t i, struct trace_thread thread)
{
    if (i >= TRACE_THREADS_MAX)
        return -ENOMEM;
    if (i >= t->capacity) {
        uint32_t capacity = i < 8 ? 16 : 2 * i;
        struct trace_thread *larger = realloc(t->thread, capacity * sizeof(*larger));
        if (larger == NULL)
            return -ENOMEM;
        memset(larger + t->capacity, 0, (capacity - t->capacity) * sizeof(*larger));
        t->thread = larger;
        t->capacity = capacity;
    }
    t->thread[i] = thread;
    if (i >= t->n)
        t->n = i + 1;
    return 0;
}

int64_t trace_threads_find(struct trace_threads *t, struct trace_thread thread)
{
    for (uint32_t i = t->newest, tried = 0; tried < t->n; tried++, i = i + 1 == t->n ? 0 : i + 1) {
        if (t->thread[i].pid == thread.pid && t->thread[i].tid == thread.tid) {
            t->newest = i;
            return i;
        }
    }
    return -ENOENT;
}

int64_t trace_threads_number(struct trace_threads *t, struct trace_thread thread)
{
    int64_t number = trace_threads_find(t, thread);
    if (number >= 0)
        return number;
    if (trace_threads_set(t, t->n, thread) < 0)
        return -ENOMEM;
    t->newest = t->n - 1;
    return t->newest;
}

void trace_arrays_add(struct trace_arrays *a, uint64_t address, uint64_t pc, uint64_t size, uint8_t rw,
                      uint32_t thread, int burst)
{
    size_t i = a->n++;
    a->address[i] = address;
    a->pc[i] = pc;
    a->size[i] = (uint16_t)(size == 0 ? 1 : size > UINT16_MAX ? UINT16_MAX : size);
    a->rw[i] = rw;
    if (i == 0 || burst || a->segment[a->nsegments - 1].thread != thread)
        a->segment[a->nsegments++] =
            (struct trace_segment){.begin = (uint32_t)i, .thread = thread, .burst = burst != 0};
    a->segment[a->nsegments - 1].end = (uint32_t)i + 1;
}

int trace_damaged(struct trace_reader *r, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    r->damaged = 1;
    error_set(&r->damage, -EBADMSG, "%s: %s", r->in.path, text);
    return 0;
}
