/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c - windows and samples of sparse reuse distances: writing and reading. */
#include "profile/internal.h"

int profile_add_window(struct profile *p, const struct profile_window *window, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO reuse_window(id, start_ref, refs) VALUES(?, ?, ?)",
                           value_int(window->id), value_int(window->start), value_int(window->references));
}

int profile_add_sample(struct profile *p, const struct profile_sample *sample, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO reuse_sample(window, ref, distance, line) VALUES(?, ?, ?, ?)",
                           value_int(sample->window), value_int(sample->start),
                           value_int_if(sample->distance != PROFILE_DANGLING, sample->distance),
                           value_int(sample->line));
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
    static const struct profile_rows rows = {
        .sql = "SELECT id, start_ref, refs FROM reuse_window ORDER BY id",
        .size = sizeof **windows,
    };
    return profile_read_rows(p, &rows, windows, n, err);
}

int profile_samples(struct profile *p, struct profile_sample **samples, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT window, ref, distance, line FROM reuse_sample ORDER BY window, id",
        .size = sizeof **samples,
        .take = take_sample,
    };
    return profile_read_rows(p, &rows, samples, n, err);
}
