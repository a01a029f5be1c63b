/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - output of results for people and scripts. Functions write to a stream and do not check it for
 * errors (the command does so once, at the end).
 */
#ifndef CACHEGRAM_REPORT_H
#define CACHEGRAM_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "analysis/curve.h"
#include "analysis/findings.h"
#include "analysis/summary.h"

/* Properties of the terminal. */
struct report_style {
    unsigned width; /* columns, at least REPORT_WIDTH_MIN */
    int color;      /* escape sequences may be used */
};
#define REPORT_WIDTH_MIN 20u
enum report_color { REPORT_COLOR_AUTO, REPORT_COLOR_ALWAYS, REPORT_COLOR_NEVER };
/*
 * Width of the terminal of out, else $COLUMNS, else 80. AUTO: colour on a terminal, unless NO_COLOR is set.
 */
struct report_style report_style_of(FILE *out, enum report_color color);

/* --- the curve --- */
enum report_format { REPORT_TEXT, REPORT_CSV, REPORT_JSON, REPORT_FORMATS };
/* One format per file: curve-text.c, curve-csv.c, curve-json.c. */
void report_curve_text(FILE *out, const struct analysis_curve *curve, const struct report_style *style);
void report_curve_csv(FILE *out, const struct analysis_curve *curve);
void report_curve_json(FILE *out, const struct analysis_curve *curve);
/* "points": [...], without braces around it, each line indented by two spaces. */
void report_points_json(FILE *out, const struct curve_point *points, size_t n);
/*
 * Prints limitations of a burst profile's curve: nothing, or sentences, one per line, each preceded by
 * `lead`.
 */
void report_curve_notes(FILE *out, const struct analysis_curve *curve, const char *lead);
/* The drawing alone: `rows` lines and the axis. Draws nothing for fewer than two points. */
void report_plot(FILE *out, const struct curve_point *points, size_t n, unsigned rows,
                 const struct report_style *style);
/* With single points over the curve: marks[].miss_ratio at marks[].size_bytes; those outside are omitted. */
void report_plot_over(FILE *out, const struct curve_point *points, size_t n, const struct curve_point *marks,
                      size_t nmarks, unsigned rows, const struct report_style *style);

/* --- the whole run --- */
/* Least CPU time of a program of which overhead is printed as a percentage; otherwise in ms. */
#define REPORT_PERCENT_SECONDS 0.1
struct analysis_pirate; /* analysis/pirate.h */

/*
 * curve may have no points (n 0): then why_no_curve is printed instead. Measured miss ratios of pirate are
 * drawn over the curve; report_pirate prints the rest.
 */
void report_summary_text(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve,
                         const char *why_no_curve, const struct analysis_pirate *pirate,
                         const struct report_style *style);
void report_summary_csv(FILE *out, const struct analysis_summary *s);
void report_summary_json(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve,
                         const struct analysis_pirate *pirate, const struct analysis_finding *findings,
                         size_t nfindings);

/* --- what to look at first --- */
/* A sentence each, and an empty line after them; and "findings": [...], without braces around it. */
void report_findings_text(FILE *out, const struct analysis_finding *findings, size_t n);
void report_findings_json(FILE *out, const struct analysis_finding *findings, size_t n);

/* --- helpers --- */
/* Writes a JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void report_json_string(FILE *out, const char *text);
/*
 * Writes a number for JSON with 10 decimals; NaN becomes null. report_csv_number: NaN becomes an empty field.
 */
void report_json_number(FILE *out, double value);
void report_csv_number(FILE *out, double value);
/* Writes a CSV field, quoted if necessary (RFC 4180). */
void report_csv_string(FILE *out, const char *text);
/* The same for text of foreign origin, without control characters, since CSV is also shown on terminals. */
void report_csv_plain(FILE *out, const char *text);
/* Writes text of foreign origin: control characters, which could affect a terminal, become '?'. */
void report_plain(FILE *out, const char *text);

#endif
