/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/fields.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/internal.h"

int profile_add_field(struct profile *p, const struct profile_field *field, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_FIELD, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)field->id);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)field->object);
    sqlite3_bind_text(s, 3, field->name, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 4, field->type, -1, SQLITE_TRANSIENT);
    return profile_step(p, s, err);
}

int profile_add_site_field(struct profile *p, const struct profile_site_field *field, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_SITE_FIELD, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)field->site);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)field->object);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)field->field);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)field->lines);
    return profile_step(p, s, err);
}

static void take_field(sqlite3_stmt *s, void *element)
{
    *(struct profile_field *)element = (struct profile_field){.id = (uint64_t)sqlite3_column_int64(s, 0),
                                                              .object = (uint64_t)sqlite3_column_int64(s, 1),
                                                              .name = profile_column_text(s, 2),
                                                              .type = profile_column_text(s, 3)};
}

int profile_fields(struct profile *p, struct profile_field **fields, size_t *n, struct error *err)
{
    void *list = NULL;
    *fields = NULL;
    *n = 0;
    int code = profile_has_table(p, "field", err);
    if (code > 0)
        code = profile_read_all(p, "SELECT id, object, name, type FROM field ORDER BY id", sizeof **fields,
                                take_field, &list, n, err);
    if (code < 0)
        return code;
    *fields = list;
    for (size_t i = 0; i < *n; i++)
        if (!(*fields)[i].name || !(*fields)[i].type)
            code = -ENOMEM;
    if (code == 0)
        return 0;
    profile_fields_free(*fields, *n);
    *fields = NULL;
    *n = 0;
    return error_set(err, code, "out of memory reading the profile '%s'", p->path);
}

void profile_fields_free(struct profile_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(fields[i].name);
        free(fields[i].type);
    }
    free(fields);
}

static void take_site_field(sqlite3_stmt *s, void *element)
{
    *(struct profile_site_field *)element =
        (struct profile_site_field){.site = (uint64_t)sqlite3_column_int64(s, 0),
                                    .object = (uint64_t)sqlite3_column_int64(s, 1),
                                    .field = (uint64_t)sqlite3_column_int64(s, 2),
                                    .lines = (uint64_t)sqlite3_column_int64(s, 3)};
}

int profile_site_fields(struct profile *p, struct profile_site_field **fields, size_t *n, struct error *err)
{
    void *list = NULL;
    *n = 0;
    int code = profile_has_table(p, "site_field", err);
    if (code > 0)
        code = profile_read_all(p, "SELECT site, object, field, lines FROM site_field ORDER BY site, object",
                                sizeof **fields, take_site_field, &list, n, err);
    *fields = list;
    return code;
}
