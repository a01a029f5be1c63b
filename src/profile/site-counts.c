/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/site-counts.h"
#include <errno.h>
#include <stdlib.h>
#include "base/array.h"
#include "base/leb128.h"

#define MOST_BLOCKS (UINT64_C(1) << 32)

int site_counts_read(const uint8_t *bytes, size_t size, const struct site_counts_reader *reader)
{
    const uint8_t *at = bytes, *end = bytes + size;
    uint64_t block = 0;
    while (at < end) {
        uint64_t step, executions, n;
        if (leb128_take(&at, end, &step) < 0 || leb128_take(&at, end, &executions) < 0 ||
            leb128_take(&at, end, &n) < 0)
            return -EINVAL;
        block += (uint64_t)unzigzag(step);
        if (block >= MOST_BLOCKS || n > size)
            return -EINVAL;
        int status = reader->block(reader->ctx, (uint32_t)block, executions);
        for (; n > 0 && status >= 0; n--) {
            uint64_t reference, what, object, count;
            if (leb128_take(&at, end, &reference) < 0 || leb128_take(&at, end, &what) < 0 ||
                leb128_take(&at, end, &object) < 0 || leb128_take(&at, end, &count) < 0 ||
                reference > UINT8_MAX || what >= SITE_COUNT_END || object > UINT32_MAX)
                return -EINVAL;
            status = reader->entry(reader->ctx, (uint32_t)block, (uint32_t)reference, (uint32_t)what,
                                   (uint32_t)object, count);
        }
        if (status < 0)
            return status;
    }
    return 0;
}

/* --- merging --- */

/* The executions of a block are its first entry. */
struct entry {
    uint64_t count;
    uint32_t block, object;
    uint16_t order; /* what + 1; 0: executions */
    uint8_t reference;
};

struct entries {
    struct entry *list;
    size_t n, capacity;
};

static int add(struct entries *e, struct entry entry)
{
    if (ARRAY_GROW(e->list, e->n, e->capacity) < 0)
        return -ENOMEM;
    e->list[e->n++] = entry;
    return 0;
}

static int add_block(void *ctx, uint32_t block, uint64_t executions)
{
    return add(ctx, (struct entry){.count = executions, .block = block});
}

static int add_entry(void *ctx, uint32_t block, uint32_t reference, uint32_t what, uint32_t object,
                     uint64_t count)
{
    return add(ctx, (struct entry){.count = count,
                                   .block = block,
                                   .object = object,
                                   .order = (uint16_t)(what + 1),
                                   .reference = (uint8_t)reference});
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    if ((x->order == 0) != (y->order == 0))
        return x->order == 0 ? -1 : 1;
    if (x->reference != y->reference)
        return x->reference < y->reference ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static size_t put(const struct entries *e, uint8_t *to)
{
    size_t at = 0;
    uint32_t previous = 0;
    for (size_t i = 0, next; i < e->n; i = next) {
        const struct entry *block = &e->list[i];
        for (next = i + 1; next < e->n && e->list[next].block == block->block;)
            next++;
        at += leb128_put(to + at, zigzag((int64_t)block->block - (int64_t)previous));
        at += leb128_put(to + at, block->count);
        at += leb128_put(to + at, next - i - 1);
        for (const struct entry *entry = block + 1; entry < &e->list[next]; entry++) {
            at += leb128_put(to + at, entry->reference);
            at += leb128_put(to + at, entry->order - 1u);
            at += leb128_put(to + at, entry->object);
            at += leb128_put(to + at, entry->count);
        }
        previous = block->block;
    }
    return at;
}

int site_counts_merge(const uint8_t *bytes, size_t size, uint8_t **merged, size_t *merged_size)
{
    struct entries e = {0};
    const struct site_counts_reader reader = {add_block, add_entry, &e};
    size_t n = 0;
    int code = site_counts_read(bytes, size, &reader);
    if (code == 0 && e.n > 0)
        qsort(e.list, e.n, sizeof *e.list, compare);
    for (size_t i = 0; i < e.n; i++) {
        if (n > 0 && compare(&e.list[n - 1], &e.list[i]) == 0)
            e.list[n - 1].count += e.list[i].count;
        else
            e.list[n++] = e.list[i];
    }
    e.n = n;
    if (code == 0 && (*merged = malloc((4 * (size_t)LEB128_MOST) * n + 1)) == NULL)
        code = -ENOMEM;
    if (code == 0)
        *merged_size = put(&e, *merged);
    free(e.list);
    return code;
}
