/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - results for people and scripts. Writers take what to write and a stream; they do not check
 * the stream for errors (the command line does, once, at the end).
 */
#ifndef CACHEGRAM_REPORT_H
#define CACHEGRAM_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "analysis/curve.h"
#include "analysis/summary.h"

/* How text looks on this terminal. */
struct report_style {
    unsigned width; /* columns, at least REPORT_WIDTH_MIN */
    int color;      /* escape sequences are welcome */
};
#define REPORT_WIDTH_MIN 20u
enum report_color { REPORT_COLOR_AUTO, REPORT_COLOR_ALWAYS, REPORT_COLOR_NEVER };
/* Width of the terminal that out writes to, else $COLUMNS, else 80. AUTO: colour on a terminal, unless
 * NO_COLOR. */
struct report_style report_style_of(FILE *out, enum report_color color);

/* --- the curve --- */
enum report_format { REPORT_TEXT, REPORT_CSV, REPORT_JSON, REPORT_FORMATS };
/* One of a kind a file: curve-text.c, curve-csv.c, curve-json.c. */
void report_curve_text(FILE *out, const struct analysis_curve *curve, const struct report_style *style);
void report_curve_csv(FILE *out, const struct analysis_curve *curve);
void report_curve_json(FILE *out, const struct analysis_curve *curve);
/* "points": [...], without braces around it, each line indented by two spaces. */
void report_points_json(FILE *out, const struct curve_point *points, size_t n);
/*
 * What to know of a burst profile's curve, in words: nothing, or sentences on one line each that begin with
 * `lead`.
 */
void report_curve_notes(FILE *out, const struct analysis_curve *curve, const char *lead);
/* The drawing alone: rows lines and the axis below. Draws nothing of fewer than two points. */
void report_plot(FILE *out, const struct curve_point *points, size_t n, unsigned rows,
                 const struct report_style *style);
/* With single points over the curve: marks[].miss_ratio at marks[].size_bytes; those outside are left out. */
void report_plot_over(FILE *out, const struct curve_point *points, size_t n, const struct curve_point *marks,
                      size_t nmarks, unsigned rows, const struct report_style *style);

/* --- the whole run --- */
struct analysis_pirate; /* analysis/pirate.h */

/*
 * curve may hold no points (n 0): then why_no_curve is printed instead. Of pirate, miss ratios that were
 * measured are drawn over the curve; the rest of it is report_pirate's.
 */
void report_summary_text(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve,
                         const char *why_no_curve, const struct analysis_pirate *pirate,
                         const struct report_style *style);
void report_summary_csv(FILE *out, const struct analysis_summary *s);
void report_summary_json(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve,
                         const struct analysis_pirate *pirate);

/* --- small things --- */
/* A JSON string, quotes included; what is not UTF-8 becomes U+FFFD. */
void report_json_string(FILE *out, const char *text);
/* A number as JSON and CSV have it, with 10 decimals; NaN is `null` there, nothing here. */
void report_json_number(FILE *out, double value);
void report_csv_number(FILE *out, double value);
/* A CSV field, quoted where it must be (RFC 4180). */
void report_csv_string(FILE *out, const char *text);
/* Text of foreign origin: control characters, which could steer a terminal, become '?'. */
void report_plain(FILE *out, const char *text);

#endif
