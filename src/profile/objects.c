/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/objects.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/internal.h"

static const char *const kinds[PROFILE_OBJECT_KINDS] = {"variable", "section",   "stack", "tls",     "heap",
                                                        "file",     "anonymous", "block", "unknown", "other"};

const char *profile_object_kind(enum profile_object_kind kind)
{
    assert(kind < PROFILE_OBJECT_KINDS);
    return kinds[kind];
}

int profile_add_object(struct profile *p, const struct profile_object *object, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_OBJECT, err);
    int in_module = object->kind == PROFILE_OBJECT_VARIABLE || object->kind == PROFILE_OBJECT_SECTION;
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)object->id);
    sqlite3_bind_text(s, 2, kinds[object->kind], -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, object->name, -1, SQLITE_TRANSIENT);
    if (*object->module)
        sqlite3_bind_text(s, 4, object->module, -1, SQLITE_TRANSIENT);
    if (in_module)
        sqlite3_bind_int64(s, 5, (sqlite3_int64)object->offset);
    if (object->size != 0)
        sqlite3_bind_int64(s, 6, (sqlite3_int64)object->size);
    sqlite3_bind_int64(s, 7, (sqlite3_int64)object->references);
    sqlite3_bind_int64(s, 8, (sqlite3_int64)object->firsts);
    return profile_step(p, s, err);
}

int profile_add_site_object(struct profile *p, uint64_t site, uint64_t object, uint64_t references,
                            struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_SITE_OBJECT, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)site);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)object);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)references);
    return profile_step(p, s, err);
}

int profile_add_object_frame(struct profile *p, const struct profile_object_frame *frame, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_OBJECT_FRAME, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)frame->object);
    sqlite3_bind_int64(s, 2, frame->depth);
    if (*frame->module)
        sqlite3_bind_text(s, 3, frame->module, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)frame->offset);
    if (frame->frame != 0)
        sqlite3_bind_int64(s, 5, (sqlite3_int64)frame->frame);
    return profile_step(p, s, err);
}

static void take_object(sqlite3_stmt *s, void *element)
{
    const char *kind = (const char *)sqlite3_column_text(s, 1);
    enum profile_object_kind k = 0;
    while (k < PROFILE_OBJECT_UNKNOWN && (!kind || strcmp(kind, kinds[k]) != 0))
        k++;
    if (kind && strcmp(kind, kinds[PROFILE_OBJECT_OTHER]) == 0)
        k = PROFILE_OBJECT_OTHER;
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

int profile_objects(struct profile *p, struct profile_object **objects, size_t *n, struct error *err)
{
    void *list;
    int code = profile_read_all(
        p, "SELECT id, kind, name, module, offset, size, refs, first_touches FROM object ORDER BY id",
        sizeof **objects, take_object, &list, n, err);
    if (code < 0)
        return code;
    *objects = list;
    for (size_t i = 0; i < *n; i++)
        if (!(*objects)[i].name || !(*objects)[i].module)
            code = -ENOMEM;
    if (code == 0)
        return 0;
    profile_objects_free(*objects, *n);
    return error_set(err, code, "out of memory reading the profile '%s'", p->path);
}

void profile_objects_free(struct profile_object *objects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(objects[i].name);
        free(objects[i].module);
    }
    free(objects);
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

int profile_object_frames(struct profile *p, struct profile_object_frame **frames, size_t *n,
                          struct error *err)
{
    void *list;
    int code = profile_read_all(
        p, "SELECT object, depth, module, offset, frame FROM object_frame ORDER BY object, depth",
        sizeof **frames, take_frame, &list, n, err);
    if (code < 0)
        return code;
    *frames = list;
    for (size_t i = 0; i < *n; i++)
        if (!(*frames)[i].module)
            code = -ENOMEM;
    if (code == 0)
        return 0;
    profile_object_frames_free(*frames, *n);
    return error_set(err, code, "out of memory reading the profile '%s'", p->path);
}

void profile_object_frames_free(struct profile_object_frame *frames, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(frames[i].module);
    free(frames);
}
