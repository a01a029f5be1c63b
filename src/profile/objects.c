/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/objects.h"

#include <assert.h>
#include <string.h>

#include "profile/internal.h"

static const char *const kinds[PROFILE_OBJECT_KINDS] = {"variable", "section", "stack",        "tls",
                                                        "heap",     "file",    "anonymous",    "block",
                                                        "unknown",  "other",   "thread-local", "local"};

const char *profile_object_kind(enum profile_object_kind kind)
{
    assert(kind < PROFILE_OBJECT_KINDS);
    return kinds[kind];
}

int profile_add_object(struct profile *p, const struct profile_object *object, struct error *err)
{
    int in_module = profile_object_is_variable(object) || object->kind == PROFILE_OBJECT_SECTION;
    return PROFILE_EXECUTE(p, err,
                           "INSERT INTO object(id, kind, name, module, offset, size, refs, first_touches) "
                           "VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                           value_int(object->id), value_text(kinds[object->kind]), value_text(object->name),
                           value_name(object->module), value_int_if(in_module, object->offset),
                           value_id(object->size), value_int(object->references), value_int(object->firsts));
}

int profile_add_site_object(struct profile *p, uint64_t site, uint64_t object, uint64_t references,
                            struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO site_object(site, object, refs) VALUES(?, ?, ?)",
                           value_int(site), value_int(object), value_int(references));
}

int profile_add_object_frame(struct profile *p, const struct profile_object_frame *frame, struct error *err)
{
    return PROFILE_EXECUTE(p, err,
                           "INSERT INTO object_frame(object, depth, module, offset, frame) "
                           "VALUES(?, ?, ?, ?, ?)",
                           value_int(frame->object), value_int(frame->depth), value_name(frame->module),
                           value_int(frame->offset), value_id(frame->frame));
}

static void take_object(sqlite3_stmt *s, void *element)
{
    const char *kind = (const char *)sqlite3_column_text(s, 1);
    enum profile_object_kind k = 0;
    while (k < PROFILE_OBJECT_KINDS && (!kind || strcmp(kind, kinds[k]) != 0))
        k++;
    if (k == PROFILE_OBJECT_KINDS)
        k = PROFILE_OBJECT_UNKNOWN;
    *(struct profile_object *)element =
        (struct profile_object){.id = (uint64_t)sqlite3_column_int64(s, 0),
                                .kind = k,
                                .name = profile_column_text(s, 2),
                                .module = profile_column_text(s, 3),
                                .offset = (uint64_t)sqlite3_column_int64(s, 4),
                                .size = (uint64_t)sqlite3_column_int64(s, 5),
                                .references = (uint64_t)sqlite3_column_int64(s, 6),
                                .firsts = (uint64_t)sqlite3_column_int64(s, 7)};
}

static const struct profile_rows object_rows = {
    .sql = "SELECT id, kind, name, module, offset, size, refs, first_touches FROM object ORDER BY id",
    .size = sizeof(struct profile_object),
    .take = take_object,
    .texts = {offsetof(struct profile_object, name), offsetof(struct profile_object, module)},
};

int profile_objects(struct profile *p, struct profile_object **objects, size_t *n, struct error *err)
{
    return profile_read_rows(p, &object_rows, objects, n, err);
}

void profile_objects_free(struct profile_object *objects, size_t n)
{
    profile_free_rows(&object_rows, objects, n);
}

static void take_frame(sqlite3_stmt *s, void *element)
{
    *(struct profile_object_frame *)element =
        (struct profile_object_frame){.object = (uint64_t)sqlite3_column_int64(s, 0),
                                      .depth = (uint32_t)sqlite3_column_int64(s, 1),
                                      .module = profile_column_text(s, 2),
                                      .offset = (uint64_t)sqlite3_column_int64(s, 3),
                                      .frame = (uint64_t)sqlite3_column_int64(s, 4)};
}

static const struct profile_rows frame_rows = {
    .sql = "SELECT object, depth, module, offset, frame FROM object_frame ORDER BY object, depth",
    .size = sizeof(struct profile_object_frame),
    .take = take_frame,
    .texts = {offsetof(struct profile_object_frame, module)},
};

int profile_object_frames(struct profile *p, struct profile_object_frame **frames, size_t *n,
                          struct error *err)
{
    return profile_read_rows(p, &frame_rows, frames, n, err);
}

void profile_object_frames_free(struct profile_object_frame *frames, size_t n)
{
    profile_free_rows(&frame_rows, frames, n);
}
