/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-fields.c - an instruction usually fetches one field. The profile has a sample of the fields that
 * each instruction fetched of each object (table site_field): if one has MOST of it, the field is that, and
 * otherwise it is "several".
 */
#include "analysis/hotspots-fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST 0.875
#define SEVERAL UINT32_MAX

struct entry {
    uint64_t site, object;
    uint32_t field; /* number, or SEVERAL */
};

struct analysis_fields {
    struct entry *entries; /* by site and object */
    size_t n;
    const struct profile_field *parts; /* number - 1 */
};

static const struct profile_field several = {.name = (char *)"", .type = (char *)""};

/* Of objects that are the same to users, fields with the same name are the same. The number of the first one
 * by h->parts' index. NULL when memory is short. */
static uint32_t *number_fields(const struct analysis_hotspots *h)
{
    uint32_t *numbers = calloc(h->nparts + 1, sizeof *numbers);
    uint64_t *objects = calloc(h->nparts + 1, sizeof *objects);
    for (size_t i = 0; i < h->nparts && numbers && objects; i++) {
        const struct profile_object *object = analysis_object_of(h, h->parts[i].object);
        objects[i] = object ? object->id : h->parts[i].object;
        numbers[i] = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < h->nparts && numbers && objects; i++) {
        if (objects[i] == h->parts[i].object)
            continue;
        for (size_t k = 0; k < h->nparts; k++)
            if (objects[k] == objects[i] && strcmp(h->parts[k].name, h->parts[i].name) == 0 &&
                strcmp(h->parts[k].type, h->parts[i].type) == 0) {
                numbers[i] = (uint32_t)k + 1;
                break;
            }
    }
    if (!objects) {
        free(numbers);
        numbers = NULL;
    }
    free(objects);
    return numbers;
}

/* Index of the field with that id; n: there is none. */
static size_t find(const struct analysis_hotspots *h, uint64_t id)
{
    /* Ids are consecutive from 1 on, but in a corrupt profile. */
    return id >= 1 && id <= h->nparts && h->parts[id - 1].id == id ? (size_t)id - 1 : h->nparts;
}

/* The field that has most of list[0 .. n). */
static uint32_t choose(const struct analysis_hotspots *h, const uint32_t *numbers,
                       const struct profile_site_field *list, size_t n)
{
    double all = 0, most = 0;
    uint32_t number = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = find(h, list[i].field);
        if (at == h->nparts)
            continue;
        double lines = 0;
        for (size_t k = 0; k < n; k++) {
            size_t other = find(h, list[k].field);
            if (other < h->nparts && numbers[other] == numbers[at])
                lines += (double)list[k].lines;
        }
        all += (double)list[i].lines;
        if (lines > most) {
            most = lines;
            number = numbers[at];
        }
    }
    return most >= MOST * all ? number : SEVERAL;
}

struct analysis_fields *analysis_fields_load(struct profile *p, struct analysis_hotspots *h,
                                             struct error *err)
{
    struct analysis_fields *f = calloc(1, sizeof *f);
    struct profile_site_field *list = NULL;
    uint32_t *numbers = NULL;
    size_t n = 0;
    int code = f ? 0 : error_set(err, -ENOMEM, "out of memory for the fields of data objects");
    if (code == 0)
        code = profile_fields(p, &h->parts, &h->nparts, err);
    if (code == 0)
        code = profile_site_fields(p, &list, &n, err);
    if (code == 0) {
        numbers = number_fields(h);
        f->entries = calloc(n + 1, sizeof *f->entries);
        f->parts = h->parts;
        if (!numbers || !f->entries)
            code = error_set(err, -ENOMEM, "out of memory for the fields of data objects");
    }
    for (size_t i = 0, end; i < n && code == 0; i = end) {
        for (end = i; end < n && list[end].site == list[i].site && list[end].object == list[i].object;)
            end++;
        f->entries[f->n++] =
            (struct entry){list[i].site, list[i].object, choose(h, numbers, list + i, end - i)};
    }
    free(list);
    free(numbers);
    if (code == 0)
        return f;
    analysis_fields_free(f);
    return NULL;
}

void analysis_fields_free(struct analysis_fields *f)
{
    if (!f)
        return;
    free(f->entries);
    free(f);
}

uint32_t analysis_fields_of(const struct analysis_fields *f, uint32_t site, uint32_t object)
{
    size_t low = 0, high = f ? f->n : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct entry *e = &f->entries[middle];
        if (e->site == site && e->object == object)
            return e->field;
        if (e->site < site || (e->site == site && e->object < object))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

const struct profile_field *analysis_fields_get(const struct analysis_fields *f, uint32_t number)
{
    if (!f || number == 0)
        return NULL;
    return number == SEVERAL ? &several : &f->parts[number - 1];
}
