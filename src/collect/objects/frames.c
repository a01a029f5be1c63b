/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/objects/frames.h"
#include <stdlib.h>
#include <string.h>
#include "base/array.h"

#define FRAMES 256u  /* with variables, at the same time */
#define PLACES 4096u /* of code, a power of two */

/* A frame with variables. */
struct noted {
    uint64_t low;
    struct symbols_in_frame frame;
    uint32_t file;
    struct symbols_locals *locals; /* the table's */
    struct symbols_function *function;
    uint32_t tid, batch; /* batch: in which it was noted last */
};

/* What is known of code. Direct-mapped. */
struct place {
    uint64_t offset;
    uint32_t file;
    int known;
    struct symbols_locals *locals;
    struct symbols_function *function; /* NULL: no variables are known */
};

struct frames {
    struct object_table *table;
    struct noted noted[FRAMES]; /* by low; they do not overlap */
    size_t n;
    uint32_t batch;
    struct place places[PLACES];
};

struct frames *frames_new(struct object_table *table)
{
    struct frames *f = calloc(1, sizeof(*f));
    if (f != NULL)
        f->table = table;
    return f;
}

void frames_free(struct frames *f)
{
    free(f);
}

static const struct place *find_place(struct frames *f, uint32_t file, uint64_t offset)
{
    uint64_t key = offset ^ (uint64_t)file << 48;
    struct place *p = &f->places[(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % PLACES];
    if (!p->known || p->file != file || p->offset != offset) {
        *p = (struct place){.offset = offset, .file = file, .known = 1};
        p->function = object_table_function(f->table, file, offset, &p->locals);
    }
    return p;
}

/* Number of the first one that ends above the address. */
static size_t first_above(const struct frames *f, uint64_t address)
{
    size_t i = ARRAY_UP_TO(f->noted, f->n, low, address);
    return i > 0 && f->noted[i - 1].frame.cfa > address ? i - 1 : i;
}

static void remove_number(struct frames *f, size_t i)
{
    memmove(&f->noted[i], &f->noted[i + 1], (f->n - i - 1) * sizeof(f->noted[0]));
    f->n--;
}

/* Removes those that overlap [low, high). */
static void remove_between(struct frames *f, uint64_t low, uint64_t high)
{
    size_t i = first_above(f, low);
    while (i < f->n && f->noted[i].low < high)
        remove_number(f, i);
}

static void insert(struct frames *f, const struct noted *n)
{
    if (f->n == FRAMES) /* most are of threads that have ended */
        f->n = 0;
    size_t at = ARRAY_UP_TO(f->noted, f->n, low, n->low);
    memmove(&f->noted[at + 1], &f->noted[at], (f->n - at) * sizeof(f->noted[0]));
    f->noted[at] = *n;
    f->n++;
}

/* A frame without variables: those of other frames are not there any more. */
static void note_none(struct frames *f, const struct stack_frame *frame)
{
    size_t i = first_above(f, frame->low);
    while (i < f->n && f->noted[i].low < frame->cfa) {
        if (f->noted[i].frame.cfa == frame->cfa && frame->file == UINT32_MAX)
            i++;
        else
            remove_number(f, i);
    }
}

void frames_note(struct frames *f, const struct stack_frame *frame)
{
    const struct place *place = frame->file != UINT32_MAX ? find_place(f, frame->file, frame->offset) : NULL;
    if (place == NULL || place->function == NULL) {
        note_none(f, frame);
        return;
    }
    uint64_t low = frame->cfa + (uint64_t)place->function->low;
    const struct noted new = {.low = low < frame->low ? low : frame->low,
                              .frame = {frame->cfa, frame->sp, frame->offset},
                              .file = frame->file,
                              .locals = place->locals,
                              .function = place->function,
                              .tid = frame->tid,
                              .batch = f->batch};
    size_t at = first_above(f, frame->low);
    struct noted *old = at < f->n ? &f->noted[at] : NULL;
    if (old != NULL && old->frame.cfa == frame->cfa && old->function == new.function && old->low <= new.low) {
        old->frame.offset = frame->offset;
        old->frame.sp = frame->sp != 0 ? frame->sp : old->frame.sp;
        old->batch = f->batch;
        return;
    }
    remove_between(f, new.low, frame->cfa);
    insert(f, &new);
}

void frames_batch(struct frames *f, uint32_t tid, uint64_t low)
{
    for (size_t i = f->n; i > 0; i--) {
        const struct noted *n = &f->noted[i - 1];
        if (n->tid == tid && n->frame.cfa < low && n->batch != f->batch)
            remove_number(f, i - 1);
    }
    f->batch++;
}

void frames_forget(struct frames *f, uint32_t tid)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->noted[i].tid != tid)
            f->noted[n++] = f->noted[i];
    f->n = n;
}

uint32_t frames_find(struct frames *f, uint64_t address, uint64_t *begin)
{
    size_t i = first_above(f, address);
    if (i == f->n || f->noted[i].low > address)
        return 0;
    const struct noted *n = &f->noted[i];
    struct symbols_local *v = symbols_function_at(n->locals, n->function, &n->frame, address, begin);
    if (v == NULL)
        return 0;
    return object_table_local(f->table, n->file, n->function, v);
}
