/* SPDX-License-Identifier: Apache-2.0 */
#include "report/pirate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

#define MOST_POINTS 256u

/* --- for scripts --- */

/* In the order of the columns; scripts rely on the first eight. */
static const char *const columns[] = {"available_bytes",
                                      "ns_per_ref",
                                      "cpi",
                                      "gbps",
                                      "fetch_ratio",
                                      "miss_ratio",
                                      "pirate_fetch_ratio",
                                      "valid",
                                      "stolen_bytes",
                                      "ns_per_unit",
                                      "ns_low",
                                      "ns_high",
                                      "slowdown",
                                      "intervals",
                                      "dropped",
                                      "lost_share",
                                      "modelled_miss_ratio"};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void values(const struct analysis_pirate *r, size_t i, const struct analysis_curve *curve,
                   double *value)
{
    const struct profile_pirate *row = &r->rows[i];
    const double in_order[COLUMNS] = {(double)row->available_bytes,
                                      row->ns_per_ref,
                                      row->cpi,
                                      row->gbps,
                                      row->fetch_ratio,
                                      row->miss_ratio,
                                      row->pirate_fetch_ratio,
                                      row->valid,
                                      (double)row->stolen_bytes,
                                      row->ns_per_unit,
                                      row->ns_low,
                                      row->ns_high,
                                      analysis_pirate_slowdown(r, i),
                                      (double)row->intervals,
                                      (double)row->dropped,
                                      row->lost_share,
                                      analysis_pirate_modelled(r, i, curve)};
    memcpy(value, in_order, sizeof in_order);
}

static void csv(FILE *out, const struct analysis_pirate *r, const struct analysis_curve *curve)
{
    double value[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, "%s,", columns[i]);
    fputs("unit,by\n", out);
    for (size_t k = 0; k < r->n; k++) {
        values(r, k, curve, value);
        for (size_t i = 0; i < COLUMNS; i++) {
            report_csv_number(out, value[i]);
            putc(',', out);
        }
        report_csv_string(out, r->unit);
        putc(',', out);
        report_csv_string(out, r->rows[k].by);
        putc('\n', out);
    }
}

void report_pirate_rows_json(FILE *out, const struct analysis_pirate *r, const struct analysis_curve *curve)
{
    double value[COLUMNS];
    fputs("  \"pirate\": [", out);
    for (size_t k = 0; k < r->n; k++) {
        values(r, k, curve, value);
        report_json_member_string(out, k ? ",\n    {" : "\n    {", "by", r->rows[k].by);
        for (size_t i = 0; i < COLUMNS; i++) {
            fprintf(out, ", \"%s\": ", columns[i]);
            if (strcmp(columns[i], "valid") == 0)
                fputs(value[i] != 0 ? "true" : "false", out);
            else
                report_json_number(out, value[i]);
        }
        putc('}', out);
    }
    fputs("\n  ]", out);
}

static void json(FILE *out, const struct analysis_pirate *r, const struct analysis_curve *curve)
{
    report_json_member_string(out, "{\n  ", "unit", r->unit);
    report_json_member_number(out, ",\n  ", "llc_bytes", r->llc_bytes);
    report_json_member_number(out, ",\n  ", "private_bytes", r->private_bytes);
    report_json_member_number(out, ",\n  ", "pirate_threads", r->threads);
    report_json_member_number(out, ",\n  ", "limit", r->limit);
    report_json_member_number(out, ",\n  ", "cpu_seconds", r->cpu_seconds);
    report_json_member_number(out, ",\n  ", "wall_seconds", r->wall_seconds);
    report_json_member_number(out, ",\n  ", "alone_ns", r->alone_ns);
    report_json_member_number(out, ",\n  ", "beside_ns", r->with_pirate_ns);
    report_json_member_number(out, ",\n  ", "stopped_percent", r->stopped_percent);
    report_json_member_number(out, ",\n  ", "own_percent", r->cachegram_percent);
    report_json_member_string(out, ",\n  ", "notes", r->notes);
    fputs(",\n", out);
    report_pirate_rows_json(out, r, curve);
    fputs("\n}\n", out);
}

/* --- for people --- */

/* "1.234 ms" */
static void put_time(FILE *out, double ns)
{
    const char *unit = ns < 1e3 ? "ns" : ns < 1e6 ? "us" : ns < 1e9 ? "ms" : "s ";
    fprintf(out, "%8.3f %s", ns < 1e3 ? ns : ns < 1e6 ? ns * 1e-3 : ns < 1e9 ? ns * 1e-6 : ns * 1e-9, unit);
}

static void put_percent(FILE *out, double ratio, int width, int decimals)
{
    if (isnan(ratio))
        fprintf(out, "%*s", width, "");
    else
        fprintf(out, "%*.*f%%", width - 1, decimals, ratio * 100);
}

static void put_row(FILE *out, const struct analysis_pirate *r, size_t i, const struct analysis_curve *curve)
{
    const struct profile_pirate *row = &r->rows[i];
    char size[SIZE_TEXT];
    fprintf(out, "  %9s  ", size_format(row->available_bytes, size));
    if (row->valid) {
        put_time(out, isnan(row->ns_per_ref) ? row->ns_per_unit : row->ns_per_ref);
        fprintf(out, " %+7.1f%%  ", (analysis_pirate_slowdown(r, i) - 1) * 100);
        if (row->ns_high > row->ns_low)
            fprintf(out, "+-%.1f%%", (row->ns_high - row->ns_low) / 2 / row->ns_per_unit * 100);
        else
            fputs("      ", out);
    } else {
        fprintf(out, "%-29s", row->dropped ? "not valid" : "not measured");
    }
    fprintf(out, "  %4" PRIu64 " %4" PRIu64 " ", row->intervals, row->dropped);
    put_percent(out, row->pirate_fetch_ratio, 9, 2);
    if (curve && curve->n > 0)
        put_percent(out, analysis_pirate_modelled(r, i, curve), 11, 3);
    putc('\n', out);
}

static void draw(FILE *out, const struct analysis_pirate *r, const struct report_style *style)
{
    struct curve_point points[MOST_POINTS];
    size_t n = 0;
    for (size_t i = r->n; i-- > 0 && n < MOST_POINTS;) {
        const struct profile_pirate *row = &r->rows[i], *base = analysis_pirate_base(r, i);
        if (row->valid && strcmp(row->by, r->rows[0].by) == 0)
            points[n++] = (struct curve_point){
                (double)row->available_bytes, row->ns_per_unit / base->ns_per_unit - 1,
                row->ns_low / base->ns_per_unit - 1, row->ns_high / base->ns_per_unit - 1};
    }
    if (n < 2)
        return;
    fputs("\nSlowdown relative to the whole cache, by available size of the last-level cache\n\n", out);
    report_plot(out, points, n, 9, style);
}

static void put_notes(FILE *out, const struct analysis_pirate *r)
{
    char text[sizeof r->notes];
    memcpy(text, r->notes, sizeof text);
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (*line) {
            fputs("  note        ", out);
            report_plain(out, line);
            putc('\n', out);
        }
}

static void text(FILE *out, const struct analysis_pirate *r, const struct analysis_curve *curve,
                 const struct report_style *style)
{
    char size[SIZE_TEXT], private[SIZE_TEXT];
    fprintf(out, "Measured with part of the last-level cache occupied (%s of %s",
            strcmp(r->rows[0].by, "resctrl") == 0 ? "by resctrl" : "by a Pirate",
            size_format((uint64_t)r->llc_bytes, size));
    if (r->private_bytes > 0)
        fprintf(out, "; %s in private caches in addition", size_format((uint64_t)r->private_bytes, private));
    fputs(")\n\n", out);
    put_notes(out, r);
    if (!isnan(r->stopped_percent))
        fprintf(out, "  stopped     %.2f%% of the time, to change the size\n", r->stopped_percent);
    if (!isnan(r->cachegram_percent))
        fprintf(out, "  cachegram   %.2f%% of the time, the Pirate not included\n", r->cachegram_percent);
    fprintf(out, "\n  %9s  %11s %9s  %6s  %4s %4s %9s%s\n", "available",
            isnan(r->rows[0].ns_per_ref) ? strcmp(r->unit, "run") == 0     ? "CPU a run"
                                           : strcmp(r->unit, "bytes") == 0 ? "CPU a byte"
                                                                           : "CPU a step"
                                         : "a reference",
            "slower", "", "good", "drop", "P. fetch", curve && curve->n > 0 ? "  modelled" : "");
    for (size_t i = 0; i < r->n; i++)
        put_row(out, r, i, curve);
    draw(out, r, style);
}

void report_pirate(FILE *out, const struct analysis_pirate *r, const struct analysis_curve *curve,
                   enum report_format format, const struct report_style *style)
{
    if (format == REPORT_CSV)
        csv(out, r, curve);
    else if (format == REPORT_JSON)
        json(out, r, curve);
    else if (r->n > 0)
        text(out, r, curve, style);
}
