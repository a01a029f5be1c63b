/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - binding and reading whole rows. */
#include "profile/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int profile_execute(struct profile *p, const char *sql, const struct profile_value *values, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, sql, err);
    if (!s)
        return -EIO;
    for (int i = 1; values->type != VALUE_END; i++, values++) {
        /* Text and blobs are the caller's; nothing reads them after sqlite3_step. */
        if (values->type == VALUE_INTEGER)
            sqlite3_bind_int64(s, i, (sqlite3_int64)values->integer);
        else if (values->type == VALUE_REAL)
            sqlite3_bind_double(s, i, values->real); /* NaN is stored as NULL */
        else if (values->type == VALUE_TEXT)
            sqlite3_bind_text(s, i, values->bytes, -1, SQLITE_STATIC);
        else if (values->type == VALUE_BLOB)
            sqlite3_bind_blob64(s, i, values->bytes, values->size, SQLITE_STATIC);
    }
    int code = sqlite3_step(s) == SQLITE_DONE ? 0 : profile_fail(p, err);
    sqlite3_reset(s);
    return code;
}

double profile_column_number(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? NAN : sqlite3_column_double(s, column);
}

char *profile_column_text(sqlite3_stmt *s, int column)
{
    const unsigned char *text = sqlite3_column_text(s, column);
    return strdup(text ? (const char *)text : "");
}

static void take_integers(sqlite3_stmt *s, unsigned char *element)
{
    for (int i = 0; i < sqlite3_column_count(s); i++) {
        sqlite3_int64 value = sqlite3_column_int64(s, i);
        memcpy(element + (size_t)i * sizeof value, &value, sizeof value);
    }
}

/* The k-th text of an element; NULL: it has no more, or memory was short. */
static char *text_of(const struct profile_rows *rows, const unsigned char *element, size_t k)
{
    char *text = NULL;
    if (k < sizeof rows->texts / sizeof rows->texts[0] && rows->texts[k] != 0)
        memcpy(&text, element + rows->texts[k], sizeof text);
    return text;
}

void profile_free_rows(const struct profile_rows *rows, void *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof rows->texts / sizeof rows->texts[0]; k++)
            free(text_of(rows, (unsigned char *)list + i * rows->size, k));
    free(list);
}

static int take_row(sqlite3_stmt *s, const struct profile_rows *rows, unsigned char *element)
{
    if (!rows->take) {
        take_integers(s, element);
        return 0;
    }
    rows->take(s, element);
    for (size_t k = 0; k < sizeof rows->texts / sizeof rows->texts[0] && rows->texts[k] != 0; k++)
        if (!text_of(rows, element, k))
            return -ENOMEM;
    return 0;
}

int profile_read_rows(struct profile *p, const struct profile_rows *rows, void *list, size_t *n,
                      struct error *err)
{
    sqlite3_stmt *s = NULL;
    unsigned char *elements = NULL, *none = NULL;
    size_t used = 0, capacity = 0;
    int rc = SQLITE_DONE, code = 0;
    memcpy(list, &none, sizeof none);
    *n = 0;
    if (rows->table && (code = profile_has_table(p, rows->table, err)) <= 0)
        return code;
    if (sqlite3_prepare_v2(p->db, rows->sql, -1, &s, NULL) != SQLITE_OK)
        return profile_fail(p, err);
    for (code = 0; code == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW;) {
        if ((code = array_grow(&elements, used, 1, &capacity, rows->size)) == 0)
            code = take_row(s, rows, elements + used++ * rows->size);
        if (code < 0)
            error_set(err, code, "out of memory reading the profile '%s'", p->path);
    }
    if (code == 0 && rc != SQLITE_DONE)
        code = profile_fail(p, err);
    sqlite3_finalize(s);
    if (code != 0) {
        profile_free_rows(rows, elements, used);
        return code;
    }
    memcpy(list, &elements, sizeof elements);
    *n = used;
    return 0;
}
