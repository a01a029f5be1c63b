/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/paths.h"
#include <string.h>
#include "profile/internal.h"

int profile_add_path(struct profile *p, const struct profile_path *path, struct error *err)
{
    return PROFILE_EXECUTE(p, err,
                           "INSERT INTO call_path(id, caller, image, offset, frame) "
                           "VALUES(?, nullif(?, 0), nullif(?, 0), ?, nullif(?, 0))",
                           value_int(path->id), value_int(path->caller), value_int(path->image),
                           value_int(path->offset), value_int(path->frame));
}

int profile_add_site_path(struct profile *p, const struct profile_site_path *path, struct error *err)
{
    return PROFILE_EXECUTE(
        p, err, "INSERT INTO site_path(site, path, kind, lines, refs) VALUES(?, ?, ?, ?, ?)",
        value_int(path->site), value_int(path->path), value_text(path->first ? "first" : "stack"),
        value_int(path->lines), value_int(path->references));
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
