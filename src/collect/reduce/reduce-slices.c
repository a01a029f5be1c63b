/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce-slices.c - in full mode, counts of sites are of a process's whole life. If its code may change (a
 * JIT compiler replaces it), they are cut into slices of time, so that each can be attributed to the code
 * that was there then. A slice is a fixed part of the time since the first one, so that there are few,
 * however long the run is; and if a profile has many bytes of them, they become longer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "collect/reduce/reduce-internal.h"
#include "collect/tunables.h"

/* Counts of a process' sites by time, one after the other. */
struct reduce_parts {
    uint8_t *bytes;
    size_t size, capacity;
    uint32_t block;              /* the last one */
    uint64_t nblocks;            /* so far */
    uint64_t begin_ns, since_ns; /* of the first part, and of the one that is counted now */
    uint64_t now_ns;             /* end of the last buffer */
};

void reduce_slices_free(struct reduce_parts *parts)
{
    if (parts != NULL)
        free(parts->bytes);
    free(parts);
}

/* Adds what was counted since the last part. */
static int add_part(struct reducer *r, struct reduce_process *process)
{
    struct reduce_parts *parts = process->parts;
    const uint8_t *bytes;
    size_t size;
    int status =
        sites_part(process->sites, process->site_blocks, &parts->block, &parts->nblocks, &bytes, &size);
    if (status < 0 || size == 0)
        return status;
    if (ARRAY_GROW_BY(parts->bytes, parts->size, size, parts->capacity) < 0 ||
        ARRAY_GROW(r->slices, r->nslices, r->slices_capacity) < 0)
        return -ENOMEM;
    memcpy(parts->bytes + parts->size, bytes, size);
    parts->size += size;
    r->slices_bytes += size;
    r->slices[r->nslices++] =
        (struct symbols_slice){process->id, parts->nblocks, parts->since_ns, parts->now_ns};
    parts->since_ns = parts->now_ns;
    return 0;
}

int reduce_slices_buffer(struct reducer *r, struct reduce_process *process, const struct wire_desc *desc)
{
    if (process->parts == NULL) {
        if ((process->parts = calloc(1, sizeof(*process->parts))) == NULL)
            return -ENOMEM;
        process->parts->begin_ns = process->parts->since_ns = desc->start_ns;
    }
    struct reduce_parts *parts = process->parts;
    uint64_t now_ns = parts->now_ns = desc->end_ns;
    uint64_t coarser = r->slices_bytes / COLLECT_SLICES_BYTES;
    uint64_t part = coarser < 32 ? COLLECT_SLICE_PART >> coarser : 0;
    if (now_ns <= parts->since_ns ||
        now_ns - parts->since_ns < (now_ns - parts->begin_ns) / (part > 0 ? part : 1))
        return 0;
    return add_part(r, process);
}

int reduce_slices_end(struct reducer *r, struct reduce_process *process, const uint8_t **bytes, size_t *size)
{
    int status = add_part(r, process);
    *bytes = process->parts->bytes;
    *size = process->parts->size;
    return status;
}
