/* SPDX-License-Identifier: Apache-2.0 */
/* pirate.c - measurements with part of the cache occupied: writing and reading. */
#include "profile/internal.h"

#include <stdio.h>

static int put_row(struct profile *p, const char *by, const struct profile_pirate *row, struct error *err)
{
    return PROFILE_EXECUTE(
        p, err,
        "INSERT INTO pirate(by, available_bytes, stolen_bytes, valid, intervals, dropped, cpu_ns, units, "
        "ns_per_unit, ns_low, ns_high, ns_per_ref, cpi, gbps, fetch_ratio, miss_ratio, pirate_fetch_ratio, "
        "lost_share) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        value_text(by), value_int(row->available_bytes), value_int(row->stolen_bytes),
        value_int(row->valid != 0), value_int(row->intervals), value_int(row->dropped),
        value_real(row->cpu_ns), value_real(row->units), value_real(row->ns_per_unit),
        value_real(row->ns_low), value_real(row->ns_high), value_real(row->ns_per_ref), value_real(row->cpi),
        value_real(row->gbps), value_real(row->fetch_ratio), value_real(row->miss_ratio),
        value_real(row->pirate_fetch_ratio), value_real(row->lost_share));
}

int profile_put_pirates(struct profile *p, const char *by, const struct profile_pirate *rows, size_t n,
                        struct error *err)
{
    int code = PROFILE_EXECUTE(p, err, "DELETE FROM pirate WHERE by = ?", value_text(by));
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
