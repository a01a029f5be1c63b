/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/fields.h"

#include "profile/internal.h"

int profile_add_field(struct profile *p, const struct profile_field *field, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO field(id, object, name, type) VALUES(?, ?, ?, ?)",
                           value_int(field->id), value_int(field->object), value_text(field->name),
                           value_text(field->type));
}

int profile_add_site_field(struct profile *p, const struct profile_site_field *field, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO site_field(site, object, field, lines) VALUES(?, ?, ?, ?)",
                           value_int(field->site), value_int(field->object), value_int(field->field),
                           value_int(field->lines));
}

int profile_add_sharing_field(struct profile *p, const struct profile_sharing_field *field, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO sharing_field(site, object, field, refs) VALUES(?, ?, ?, ?)",
                           value_int(field->site), value_int(field->object), value_int(field->field),
                           value_int(field->references));
}

static void take_field(sqlite3_stmt *s, void *element)
{
    *(struct profile_field *)element = (struct profile_field){.id = (uint64_t)sqlite3_column_int64(s, 0),
                                                              .object = (uint64_t)sqlite3_column_int64(s, 1),
                                                              .name = profile_column_text(s, 2),
                                                              .type = profile_column_text(s, 3)};
}

static const struct profile_rows field_rows = {
    .sql = "SELECT id, object, name, type FROM field ORDER BY id",
    .table = "field",
    .size = sizeof(struct profile_field),
    .take = take_field,
    .texts = {offsetof(struct profile_field, name), offsetof(struct profile_field, type)},
};

int profile_fields(struct profile *p, struct profile_field **fields, size_t *n, struct error *err)
{
    return profile_read_rows(p, &field_rows, fields, n, err);
}

void profile_fields_free(struct profile_field *fields, size_t n)
{
    profile_free_rows(&field_rows, fields, n);
}

int profile_site_fields(struct profile *p, struct profile_site_field **fields, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT site, object, field, lines FROM site_field ORDER BY site, object",
        .table = "site_field",
        .size = sizeof **fields,
    };
    return profile_read_rows(p, &rows, fields, n, err);
}

int profile_sharing_fields(struct profile *p, struct profile_sharing_field **fields, size_t *n,
                           struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT site, object, field, refs FROM sharing_field ORDER BY site, object",
        .table = "sharing_field",
        .size = sizeof **fields,
    };
    return profile_read_rows(p, &rows, fields, n, err);
}
