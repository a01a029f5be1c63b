/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/objects/table.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/array.h"
#include "collect/tunables.h"
#include "symbols/demangle.h"
#include "symbols/servers.h"

#define SLOTS (4u * COLLECT_OBJECTS) /* a power of two */

struct file {
    char *path;
    struct symbols_data *data;
    struct symbols_unwind *unwind;
    struct symbols_image *image; /* for locals */
    struct symbols_locals *locals;
    int data_tried, unwind_tried, locals_tried;
};

struct object_table {
    struct profile_object *objects;
    char **mangled;        /* names before demangling */
    uint64_t *block_bytes; /* as object_table_block_bytes has it */
    size_t n;
    uint32_t *slots; /* number of an object; 0: empty */
    struct file *files;
    size_t nfiles, files_capacity;
    const char **paths;
};

struct object_table *object_table_new(struct error *err)
{
    struct object_table *t = calloc(1, sizeof(*t));
    if (t != NULL) {
        t->objects = calloc(COLLECT_OBJECTS + 1, sizeof(*t->objects));
        t->mangled = calloc(COLLECT_OBJECTS + 1, sizeof(*t->mangled));
        t->block_bytes = calloc(COLLECT_OBJECTS + 1, sizeof(*t->block_bytes));
        t->slots = calloc(SLOTS, sizeof(*t->slots));
    }
    if (t == NULL || t->objects == NULL || t->mangled == NULL || t->block_bytes == NULL || t->slots == NULL) {
        object_table_free(t);
        error_set(err, -ENOMEM, "out of memory for the data objects of a run");
        return NULL;
    }
    return t;
}

void object_table_free(struct object_table *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->n; i++) {
        free(t->objects[i].name);
        free(t->objects[i].module);
        free(t->mangled[i]);
    }
    for (size_t i = 0; i < t->nfiles; i++) {
        free(t->files[i].path);
        symbols_data_close(t->files[i].data);
        symbols_unwind_close(t->files[i].unwind);
        symbols_locals_free(t->files[i].locals);
        symbols_image_close(t->files[i].image);
    }
    free(t->paths);
    free(t->files);
    free(t->objects);
    free(t->mangled);
    free(t->block_bytes);
    free(t->slots);
    free(t);
}

static uint32_t add(struct object_table *t, const struct profile_object *object)
{
    struct profile_object *new = &t->objects[t->n];
    *new = *object;
    new->id = t->n + 1;
    int is_symbol = profile_object_is_variable(object) && object->kind != PROFILE_OBJECT_LOCAL;
    new->name = is_symbol ? symbols_demangle(object->name) : strdup(object->name);
    new->module = strdup(object->module);
    t->mangled[t->n] = strdup(object->name);
    if (new->name != NULL &&new->module != NULL && t->mangled[t->n] != NULL)
        return (uint32_t)++t->n;
    free(new->name);
    free(new->module);
    free(t->mangled[t->n]);
    t->mangled[t->n] = NULL;
    *new = (struct profile_object){0};
    return 0;
}

uint32_t object_table_find(struct object_table *t, const struct profile_object *object)
{
    static const struct profile_object other = {
        .kind = PROFILE_OBJECT_OTHER, .name = (char *)"other data", .module = (char *)""};
    uint64_t hash = object->offset * UINT64_C(0x9e3779b97f4a7c15) + object->kind;
    hash = hash_text(hash_text(hash, object->name), object->module);
    size_t at = (size_t)(hash ^ hash >> 32) & (SLOTS - 1);
    for (; t->slots[at] != 0; at = (at + 1) & (SLOTS - 1)) {
        uint32_t i = t->slots[at] - 1;
        const struct profile_object *o = &t->objects[i];
        if (o->kind == object->kind && o->offset == object->offset &&
            strcmp(t->mangled[i], object->name) == 0 && strcmp(o->module, object->module) == 0)
            return i + 1;
    }
    if (t->n >= COLLECT_OBJECTS && object->kind != PROFILE_OBJECT_OTHER)
        return object_table_find(t, &other); /* there is room for one more */
    return t->slots[at] = add(t, object);
}

const struct profile_object *object_table_all(const struct object_table *t, size_t *n)
{
    *n = t->n;
    return t->objects;
}

void object_table_block(struct object_table *t, uint32_t object, uint64_t bytes)
{
    uint64_t divisor = object > 0 && object <= t->n ? t->block_bytes[object - 1] : 0;
    if (object == 0 || object > t->n)
        return;
    while (divisor != 0) { /* Euclid */
        uint64_t rest = bytes % divisor;
        bytes = divisor;
        divisor = rest;
    }
    t->block_bytes[object - 1] = bytes;
}

const uint64_t *object_table_block_bytes(const struct object_table *t)
{
    return t->block_bytes;
}

static struct file *find_file(struct object_table *t, const char *path)
{
    for (size_t i = 0; i < t->nfiles; i++)
        if (strcmp(t->files[i].path, path) == 0)
            return &t->files[i];
    if (ARRAY_GROW(t->files, t->nfiles, t->files_capacity) < 0)
        return NULL;
    char *kept = strdup(path);
    if (kept == NULL)
        return NULL;
    t->files[t->nfiles] = (struct file){.path = kept};
    return &t->files[t->nfiles++];
}

struct symbols_data *object_table_data(struct object_table *t, const char *path)
{
    struct file *f = find_file(t, path);
    if (f != NULL && !f->data_tried) {
        f->data_tried = 1;
        f->data = symbols_data_open(path);
    }
    return f != NULL ? f->data : NULL;
}

struct symbols_unwind *object_table_unwind(struct object_table *t, const char *path)
{
    struct file *f = find_file(t, path);
    if (f != NULL && !f->unwind_tried) {
        f->unwind_tried = 1;
        f->unwind = symbols_unwind_open(path);
    }
    return f != NULL ? f->unwind : NULL;
}

/* How to find the CFA of code. 0, or -1: not known. */
static int find_rule(struct object_table *t, struct file *f, uint64_t offset, struct symbols_rule *rule)
{
    struct symbols_data *data = object_table_data(t, f->path);
    struct symbols_unwind *unwind = object_table_unwind(t, f->path);
    uint64_t address;
    return data != NULL && unwind != NULL && symbols_data_address(data, offset, &address) == 0
               ? symbols_unwind_find(unwind, address, rule)
               : -1;
}

struct symbols_function *object_table_function(struct object_table *t, uint32_t file, uint64_t offset,
                                               struct symbols_locals **locals)
{
    struct file *f = file < t->nfiles ? &t->files[file] : NULL;
    struct symbols_rule rule;
    if (f == NULL)
        return NULL;
    char *servers = symbols_servers_forbid();
    if (!f->locals_tried) {
        f->locals_tried = 1;
        f->image = symbols_image_open(f->path);
        f->locals = f->image != NULL ? symbols_locals_new(f->image) : NULL;
    }
    *locals = f->locals;
    int known = f->locals != NULL && find_rule(t, f, offset, &rule) == 0;
    struct symbols_function *function =
        f->locals != NULL ? symbols_locals_function(f->locals, offset, known ? &rule : NULL) : NULL;
    symbols_servers_allow(servers);
    return function != NULL && function->placed ? function : NULL;
}

uint32_t object_table_local(struct object_table *t, uint32_t file, const struct symbols_function *function,
                            struct symbols_local *local)
{
    uint64_t bytes = local->low != SYMBOLS_LOCAL_NOWHERE ? (uint64_t)(local->high - local->low) : 0;
    if (local->number == 0)
        local->number = object_table_find(t, &(struct profile_object){.kind = PROFILE_OBJECT_LOCAL,
                                                                      .name = (char *)local->name,
                                                                      .module = t->files[file].path,
                                                                      .offset = function->offset,
                                                                      .size = bytes});
    return local->number;
}

uint32_t object_table_file(struct object_table *t, const char *path)
{
    const struct file *f = find_file(t, path);
    return f != NULL ? (uint32_t)(f - t->files) : UINT32_MAX;
}

const char *const *object_table_files(struct object_table *t, size_t *n)
{
    free(t->paths);
    *n = t->nfiles;
    t->paths = calloc(t->nfiles + 1, sizeof(*t->paths));
    if (t->paths == NULL)
        *n = 0;
    for (size_t i = 0; i < *n; i++)
        t->paths[i] = t->files[i].path;
    return t->paths;
}
