/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c - windows and samples of sparse reuse distances: writing and reading. */
#include "profile/internal.h"

#include <errno.h>
#include <stdlib.h>

int profile_add_window(struct profile *p, const struct profile_window *window, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_WINDOW, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)window->id);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)window->start);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)window->references);
    return profile_step(p, s, err);
}

int profile_add_sample(struct profile *p, const struct profile_sample *sample, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_SAMPLE, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)sample->window);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)sample->start);
    if (sample->distance == PROFILE_DANGLING)
        sqlite3_bind_null(s, 3);
    else
        sqlite3_bind_int64(s, 3, (sqlite3_int64)sample->distance);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)sample->line);
    return profile_step(p, s, err);
}

/* Returns the next element of a growing array of elements of `size` bytes, or NULL. */
static void *next_element(void **list, size_t used, size_t *capacity, size_t size)
{
    if (used == *capacity) {
        size_t more = *capacity ? *capacity * 2 : 256;
        void *grown = reallocarray(*list, more, size);
        if (!grown)
            return NULL;
        *list = grown;
        *capacity = more;
    }
    return (char *)*list + used * size;
}

int profile_read_all(struct profile *p, const char *sql, size_t size,
                     void (*take)(sqlite3_stmt *s, void *element), void **list, size_t *n, struct error *err)
{
    sqlite3_stmt *s = NULL;
    void *rows = NULL;
    size_t used = 0, capacity = 0;
    int rc, code = 0;
    if (sqlite3_prepare_v2(p->db, sql, -1, &s, NULL) != SQLITE_OK)
        return profile_fail(p, err);
    while (code == 0 && (rc = sqlite3_step(s)) != SQLITE_DONE) {
        void *element = rc == SQLITE_ROW ? next_element(&rows, used, &capacity, size) : NULL;
        if (rc != SQLITE_ROW) {
            code = profile_fail(p, err);
        } else if (!element) {
            code = error_set(err, -ENOMEM, "out of memory reading the profile '%s'", p->path);
        } else {
            take(s, element);
            used++;
        }
    }
    sqlite3_finalize(s);
    if (code != 0) {
        free(rows);
        return code;
    }
    *list = rows;
    *n = used;
    return 0;
}

int profile_read_table(struct profile *p, const char *table, const char *sql, size_t size,
                       void (*take)(sqlite3_stmt *s, void *element), void **list, size_t *n,
                       struct error *err)
{
    int code = profile_has_table(p, table, err);
    *list = NULL;
    *n = 0;
    return code <= 0 ? code : profile_read_all(p, sql, size, take, list, n, err);
}

static void take_window(sqlite3_stmt *s, void *element)
{
    *(struct profile_window *)element =
        (struct profile_window){.id = (uint64_t)sqlite3_column_int64(s, 0),
                                .start = (uint64_t)sqlite3_column_int64(s, 1),
                                .references = (uint64_t)sqlite3_column_int64(s, 2)};
}

static void take_sample(sqlite3_stmt *s, void *element)
{
    int dangling = sqlite3_column_type(s, 2) == SQLITE_NULL;
    *(struct profile_sample *)element = (struct profile_sample){
        .window = (uint64_t)sqlite3_column_int64(s, 0),
        .start = (uint64_t)sqlite3_column_int64(s, 1),
        .distance = dangling ? PROFILE_DANGLING : (uint64_t)sqlite3_column_int64(s, 2),
        .line = (uint64_t)sqlite3_column_int64(s, 3)};
}

int profile_windows(struct profile *p, struct profile_window **windows, size_t *n, struct error *err)
{
    void *list;
    int code = profile_read_all(p, "SELECT id, start_ref, refs FROM reuse_window ORDER BY id",
                                sizeof **windows, take_window, &list, n, err);
    if (code == 0)
        *windows = list;
    return code;
}

int profile_samples(struct profile *p, struct profile_sample **samples, size_t *n, struct error *err)
{
    void *list;
    int code = profile_read_all(p, "SELECT window, ref, distance, line FROM reuse_sample ORDER BY window, id",
                                sizeof **samples, take_sample, &list, n, err);
    if (code == 0)
        *samples = list;
    return code;
}
