/* SPDX-License-Identifier: Apache-2.0 */
/* pirate.c - measurements with part of the cache occupied: writing and reading. */
#include "profile/internal.h"

#include <errno.h>
#include <stdio.h>

static int put_row(struct profile *p, const char *by, const struct profile_pirate *row, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_PIRATE, err);
    if (!s)
        return -EIO;
    const double numbers[] = {row->cpu_ns,
                              row->units,
                              row->ns_per_unit,
                              row->ns_low,
                              row->ns_high,
                              row->ns_per_ref,
                              row->cpi,
                              row->gbps,
                              row->fetch_ratio,
                              row->miss_ratio,
                              row->pirate_fetch_ratio,
                              row->lost_share};
    int column = 0;
    sqlite3_bind_text(s, ++column, by, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, ++column, (sqlite3_int64)row->available_bytes);
    sqlite3_bind_int64(s, ++column, (sqlite3_int64)row->stolen_bytes);
    sqlite3_bind_int(s, ++column, row->valid);
    sqlite3_bind_int64(s, ++column, (sqlite3_int64)row->intervals);
    sqlite3_bind_int64(s, ++column, (sqlite3_int64)row->dropped);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sqlite3_bind_double(s, ++column, numbers[i]); /* NaN is stored as NULL */
    return profile_step(p, s, err);
}

int profile_put_pirates(struct profile *p, const char *by, const struct profile_pirate *rows, size_t n,
                        struct error *err)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(p->db, "DELETE FROM pirate WHERE by = ?", -1, &s, NULL) != SQLITE_OK)
        return profile_fail(p, err);
    sqlite3_bind_text(s, 1, by, -1, SQLITE_STATIC);
    int code = sqlite3_step(s) == SQLITE_DONE ? 0 : profile_fail(p, err);
    sqlite3_finalize(s);
    for (size_t i = 0; i < n && code == 0; i++)
        code = put_row(p, by, &rows[i], err);
    return code;
}

static void take(sqlite3_stmt *s, void *element)
{
    struct profile_pirate *row = element;
    double *const numbers[] = {&row->cpu_ns,
                               &row->units,
                               &row->ns_per_unit,
                               &row->ns_low,
                               &row->ns_high,
                               &row->ns_per_ref,
                               &row->cpi,
                               &row->gbps,
                               &row->fetch_ratio,
                               &row->miss_ratio,
                               &row->pirate_fetch_ratio,
                               &row->lost_share};
    const char *by = (const char *)sqlite3_column_text(s, 0);
    snprintf(row->by, sizeof row->by, "%s", by ? by : "");
    row->available_bytes = (uint64_t)sqlite3_column_int64(s, 1);
    row->stolen_bytes = (uint64_t)sqlite3_column_int64(s, 2);
    row->valid = sqlite3_column_int(s, 3) != 0;
    row->intervals = (uint64_t)sqlite3_column_int64(s, 4);
    row->dropped = (uint64_t)sqlite3_column_int64(s, 5);
    for (int i = 0; i < (int)(sizeof numbers / sizeof numbers[0]); i++)
        *numbers[i] = profile_column_number(s, 6 + i);
}

int profile_pirates(struct profile *p, struct profile_pirate **rows, size_t *n, struct error *err)
{
    static const struct profile_rows of = {
        .sql = "SELECT by, available_bytes, stolen_bytes, valid, intervals, dropped, cpu_ns, units,"
               " ns_per_unit, ns_low, ns_high, ns_per_ref, cpi, gbps, fetch_ratio, miss_ratio,"
               " pirate_fetch_ratio, lost_share FROM pirate ORDER BY by, available_bytes DESC",
        .table = "pirate",
        .size = sizeof **rows,
        .take = take,
    };
    return profile_read_rows(p, &of, rows, n, err);
}
