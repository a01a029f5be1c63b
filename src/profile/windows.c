/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "profile/internal.h"

int profile_clear_time_windows(struct profile *p, struct error *err)
{
    return sqlite3_exec(p->db, "DELETE FROM time_window; DELETE FROM phase", NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : profile_fail(p, err);
}

int profile_add_time_window(struct profile *p, const struct profile_time_window *window,
                            const struct hist *stack, const struct hist *own, struct error *err)
{
    struct packed_hist packed = {.total = 0}, packed_own = {.total = 0};
    int code = 0;
    if ((stack && packed_hist_set(&packed, stack) < 0) || (own && packed_hist_set(&packed_own, own) < 0))
        code = error_set(err, -ENOMEM, "out of memory writing the profile '%s'", p->path);
    if (code == 0)
        code = PROFILE_EXECUTE(
            p, err,
            "INSERT INTO time_window(id, process, tid, kind, start_ns, end_ns, cpu_ns, refs, cold, ticks, "
            "bursts,"
            " phase, stack, own_cold, own_stack) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            value_int(window->id), value_int(window->process), value_int(window->tid),
            value_text(window->exact ? "exact" : "sampled"), value_int(window->start_ns),
            value_int(window->end_ns), value_int(window->cpu_ns),
            value_int_if(window->exact, window->references), value_int_if(window->exact, window->cold),
            value_int(window->ticks), value_int(window->bursts), value_id(window->phase),
            value_blob(packed.bytes, packed.size), value_int_if(window->exact, window->own_cold),
            value_blob(packed_own.bytes, packed_own.size));
    packed_hist_clear(&packed);
    packed_hist_clear(&packed_own);
    return code;
}

int profile_put_phases(struct profile *p, struct error *err)
{
    /* Not sum(), which fails where integers overflow: a program can overwrite the times that it reports. */
    static const char sql[] =
        "INSERT INTO phase(id, windows, refs, cpu_ns, first_window)"
        " SELECT phase, count(*), CASE WHEN count(refs) > 0 THEN CAST(total(refs) AS INTEGER) END,"
        " CASE WHEN max(kind = 'sampled') THEN"
        " CAST(total(CASE WHEN kind = 'sampled' THEN cpu_ns END) AS INTEGER) END, min(id)"
        " FROM time_window WHERE phase IS NOT NULL GROUP BY phase";
    return sqlite3_exec(p->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : profile_fail(p, err);
}

static void take(sqlite3_stmt *s, void *element)
{
    const char *kind = (const char *)sqlite3_column_text(s, 3);
    *(struct profile_time_window *)element = (struct profile_time_window){
        .id = (uint64_t)sqlite3_column_int64(s, 0),
        .process = (uint64_t)sqlite3_column_int64(s, 1),
        .tid = (uint32_t)sqlite3_column_int64(s, 2),
        .exact = kind && kind[0] == 'e',
        .start_ns = (uint64_t)sqlite3_column_int64(s, 4),
        .end_ns = (uint64_t)sqlite3_column_int64(s, 5),
        .cpu_ns = (uint64_t)sqlite3_column_int64(s, 6),
        .references = (uint64_t)sqlite3_column_int64(s, 7),
        .cold = (uint64_t)sqlite3_column_int64(s, 8),
        .ticks = (uint64_t)sqlite3_column_int64(s, 9),
        .bursts = (uint64_t)sqlite3_column_int64(s, 10),
        .phase = (uint32_t)sqlite3_column_int64(s, 11),
        .own_cold = (uint64_t)sqlite3_column_int64(s, 12),
    };
}

int profile_time_windows(struct profile *p, struct profile_time_window **windows, size_t *n,
                         struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT id, process, tid, kind, start_ns, end_ns, cpu_ns, refs, cold, ticks, bursts, phase,"
               " own_cold FROM time_window ORDER BY id",
        .table = "time_window",
        .size = sizeof **windows,
        .take = take,
    };
    return profile_read_rows(p, &rows, windows, n, err);
}

int profile_time_window_stack(struct profile *p, uint64_t id, int separate, struct hist *stack,
                              struct error *err)
{
    sqlite3_stmt *s =
        profile_stmt(p,
                     separate ? "SELECT coalesce(own_stack, stack) FROM time_window WHERE id = ?"
                              : "SELECT stack FROM time_window WHERE id = ?",
                     err);
    if (!s)
        return -EBADMSG;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)id);
    struct packed_hist packed = {.total = 0};
    int code = 0, rc = sqlite3_step(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = profile_fail(p, err);
    else if (rc == SQLITE_DONE || sqlite3_column_type(s, 0) == SQLITE_NULL)
        code = error_set(err, -ENOENT, "the profile '%s' holds no distances of window %" PRIu64, p->path, id);
    else if ((code = packed_hist_copy(&packed, sqlite3_column_blob(s, 0),
                                      (size_t)sqlite3_column_bytes(s, 0))) == -ENOMEM)
        error_set(err, code, "out of memory reading the profile '%s'", p->path);
    else if (code != 0)
        code = profile_damaged(p, err, "the distances of window %" PRIu64, id);
    else
        packed_hist_unpack(&packed, stack);
    packed_hist_clear(&packed);
    sqlite3_reset(s);
    return code;
}
