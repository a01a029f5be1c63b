/* SPDX-License-Identifier: Apache-2.0 */
/*
 * areas.c - the mappings of a process, by address. They come from /proc/PID/maps and change meanwhile, so a
 * mapping is looked up again in each buffer that touches it. If the process has ended, the last answer is
 * used.
 */
#include "collect/objects/areas.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock-ns.h"
#include "collect/tunables.h"
#include "wire/wire.h"

#define MOST_AREAS 65536u

struct area {
    struct vma vma;
    uint32_t buffer;
};

/* Number of areas that end at the address or before. */
static size_t areas_before(const struct areas *a, uint64_t address)
{
    size_t low = 0, high = a->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (a->list[middle]->vma.end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A new entry at that place. NULL when memory is short. */
static struct area *insert_area(struct areas *a, size_t at)
{
    if (a->n == a->capacity) {
        size_t capacity = 2 * a->capacity + 64;
        struct area **list = capacity <= MOST_AREAS ? realloc(a->list, capacity * sizeof(list[0])) : NULL;
        if (list == NULL)
            return NULL;
        a->list = list;
        a->capacity = capacity;
    }
    struct area *area = malloc(sizeof(*area));
    if (area == NULL)
        return NULL;
    memmove(a->list + at + 1, a->list + at, (a->n - at) * sizeof(a->list[0]));
    a->list[at] = area;
    a->n++;
    return area;
}

/* Replaces everything that it overlaps. Nearly always that is itself, for which nothing is moved: there may
 * be tens of thousands. NULL when memory is short. */
static struct area *put_area(struct areas *a, const struct vma *vma)
{
    size_t first = areas_before(a, vma->start), end = first;
    while (end < a->n && a->list[end]->vma.start < vma->end)
        end++;
    for (size_t i = first + 1; i < end; i++)
        free(a->list[i]);
    if (end > first + 1) {
        memmove(a->list + first + 1, a->list + end, (a->n - end) * sizeof(a->list[0]));
        a->n -= end - first - 1;
    }
    struct area *area = end > first ? a->list[first] : insert_area(a, first);
    if (area != NULL)
        *area = (struct area){*vma, a->buffer};
    return area;
}

void areas_init(struct areas *a, uint32_t pid, uint64_t stack_top)
{
    /* The part of the main stack that is known before mappings are read: the process may have ended by then.
     */
    const uint64_t page = stack_top / WIRE_PAGE * WIRE_PAGE;
    *a = (struct areas){.vmas = vmas_new(pid), .buffer = 1};
    if (page != 0 && page < UINT64_MAX - WIRE_PAGE)
        put_area(a, &(struct vma){.start = page, .end = page + WIRE_PAGE, .name = "[stack]"});
}

void areas_clear(struct areas *a)
{
    vmas_free(a->vmas);
    for (size_t i = 0; i < a->n; i++)
        free(a->list[i]);
    free(a->list);
}

void areas_close(struct areas *a)
{
    vmas_free(a->vmas);
    a->vmas = NULL;
}

static int take_vma(void *ctx, const struct vma *vma)
{
    struct areas *a = ctx;
    return put_area(a, vma) != NULL ? 0 : -1;
}

void areas_look(struct areas *a)
{
    if (a->vmas == NULL)
        return;
    vmas_refresh(a->vmas);
    vmas_each(a->vmas, take_vma, a);
}

void areas_look_again(struct areas *a)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (a->looked_ns == 0 || now - a->looked_ns > COLLECT_MAPS_NS) {
        areas_look(a); /* of tens of thousands of mappings, it takes as long as that itself */
        a->looked_ns = clock_ns(CLOCK_MONOTONIC);
    }
}

void areas_buffer(struct areas *a, uint64_t end_ns)
{
    a->buffer++;
    if (a->vmas != NULL && end_ns - a->refreshed_ns > COLLECT_MAPS_NS) {
        vmas_refresh(a->vmas);
        a->refreshed_ns = end_ns;
    }
}

/* The process has ended since its mappings were read. Its main stack may have grown until then, into space
 * where nothing else was. */
static struct area *grow_stack(struct areas *a, size_t next, uint64_t address)
{
    struct area *stack = next < a->n ? a->list[next] : NULL;
    if (stack == NULL || strcmp(stack->vma.name, "[stack]") != 0 ||
        stack->vma.start - address > COLLECT_STACK_GROWS)
        return NULL;
    stack->vma.start = address / WIRE_PAGE * WIRE_PAGE;
    return stack;
}

const struct vma *areas_find(struct areas *a, uint64_t address)
{
    size_t i = areas_before(a, address);
    struct area *known = i < a->n && a->list[i]->vma.start <= address ? a->list[i] : NULL;
    struct vma vma;
    if (known == NULL || known->buffer != a->buffer) {
        int status = a->vmas != NULL ? vmas_find(a->vmas, address, &vma) : -ESRCH;
        if (status == 0)
            known = put_area(a, &vma);
        else if (known == NULL && status == -ESRCH)
            known = grow_stack(a, i, address);
    }
    if (known != NULL)
        known->buffer = a->buffer;
    return known != NULL ? &known->vma : NULL;
}

int areas_end_between(const struct areas *a, uint64_t low, uint64_t high)
{
    size_t above = areas_before(a, low);
    return above < a->n && a->list[above]->vma.end <= high;
}
