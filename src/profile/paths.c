/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/paths.h"
#include <errno.h>
#include <string.h>
#include "profile/internal.h"

int profile_add_path(struct profile *p, const struct profile_path *path, struct error *err)
{
    const uint64_t values[] = {path->id, path->caller, path->image, path->offset, path->frame};
    return profile_put_integers(p, STMT_PATH, values, 5, err);
}

int profile_add_site_path(struct profile *p, const struct profile_site_path *path, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_SITE_PATH, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)path->site);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)path->path);
    sqlite3_bind_text(s, 3, path->first ? "first" : "stack", -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)path->lines);
    sqlite3_bind_int64(s, 5, (sqlite3_int64)path->references);
    return profile_step(p, s, err);
}

int profile_paths(struct profile *p, struct profile_path **paths, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT id, caller, image, offset, frame FROM call_path ORDER BY id",
        .table = "call_path",
        .size = sizeof **paths,
    };
    return profile_read_rows(p, &rows, paths, n, err);
}

static void take_site_path(sqlite3_stmt *s, void *element)
{
    const unsigned char *kind = sqlite3_column_text(s, 2);
    *(struct profile_site_path *)element =
        (struct profile_site_path){.site = (uint64_t)sqlite3_column_int64(s, 0),
                                   .path = (uint64_t)sqlite3_column_int64(s, 1),
                                   .first = kind && strcmp((const char *)kind, "first") == 0,
                                   .lines = (uint64_t)sqlite3_column_int64(s, 3),
                                   .references = (uint64_t)sqlite3_column_int64(s, 4)};
}

int profile_site_paths(struct profile *p, struct profile_site_path **paths, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT site, path, kind, lines, refs FROM site_path ORDER BY site",
        .table = "site_path",
        .size = sizeof **paths,
        .take = take_site_path,
    };
    return profile_read_rows(p, &rows, paths, n, err);
}
