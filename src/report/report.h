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
#include "analysis/answer.h"
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

/* Whether the locale has UTF-8 (LC_ALL, LC_CTYPE, LANG; yes if none is set); else drawings are in ASCII. */
int report_is_utf8(void);

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
 * `lead`. verbose: those as well that the intervals already account for.
 */
void report_curve_notes(FILE *out, const struct analysis_curve *curve, const char *lead, int verbose);
/* The drawing alone: `rows` lines and the axis. Draws nothing for fewer than two points. */
void report_plot(FILE *out, const struct curve_point *points, size_t n, unsigned rows,
                 const struct report_style *style);
/* What is drawn over a curve; what is outside of it is omitted. */
struct report_plot_marks {
    const struct curve_point *points; /* their miss_ratio at size_bytes */
    size_t npoints;
    const double *levels; /* sizes of a machine's caches, first level first: marked below the axis */
    size_t nlevels;
};
void report_plot_over(FILE *out, const struct curve_point *points, size_t n,
                      const struct report_plot_marks *over, unsigned rows, const struct report_style *style);

/* --- the whole run --- */
/* Least CPU time of a program of which overhead is printed as a percentage; otherwise in ms. */
#define REPORT_PERCENT_SECONDS 0.1
struct analysis_pirate; /* analysis/pirate.h */

/* What ran and how it was recorded, a line for each: two spaces, a word padded to 12 columns, text. curve may
 * have no points. Includes details of the recording that only matter for judging it. */
#define REPORT_FACT_WORD 12u
void report_facts(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve);

/* What the summary's text is made from besides the run. */
struct report_summary {
    const struct analysis_curve *curve; /* n 0: why_no_curve is printed instead */
    const char *why_no_curve;
    const struct analysis_pirate *pirate; /* measured miss ratios are drawn over the curve */
    const double *levels;                 /* of this machine's caches, first level first */
    size_t nlevels;
    const struct curve_point *sizes;    /* printed below the drawing, by size */
    const struct curve_point *separate; /* of these sizes, with a cache for each thread; NULL: none */
    size_t nsizes;
    int verbose;
    unsigned rows; /* of the drawing */
};
/* Warnings, facts, and the curve; report_pirate prints the rest of pirate. */
void report_summary_text(FILE *out, const struct analysis_summary *s, const struct report_summary *parts,
                         const struct report_style *style);
/* What is known of the run: its table; and an object. */
void report_summary_csv(FILE *out, const struct analysis_summary *s);
void report_run_json(FILE *out, const struct analysis_summary *s);
void report_summary_json(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve,
                         const struct analysis_pirate *pirate, const struct analysis_answer *answer,
                         const struct analysis_findings *findings);

/* --- what to look at first --- */
/* One sentence; nothing if nothing is certain. whose: the first-level cache, such as "this machine's L1". And
 * "answer": {...}, without braces around it. */
void report_answer_text(FILE *out, const struct analysis_answer *answer, const char *whose);
void report_answer_json(FILE *out, const struct analysis_answer *answer);
/* A sentence each; and "findings": [...], "false_sharing": [...], "conflicts": [...], without braces around
 * them. */
void report_findings_text(FILE *out, const struct analysis_findings *findings);
void report_findings_json(FILE *out, const struct analysis_findings *findings);

/* A table; and "KEY": [...], without braces around it. */
void report_places_csv(FILE *out, const struct analysis_place *places, size_t n);
void report_places_json(FILE *out, const char *key, const struct analysis_place *places, size_t n);

/* --- helpers --- */
/* Writes a JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void report_json_string(FILE *out, const char *text);
/*
 * Writes a number for JSON with 10 decimals; NaN becomes null. report_csv_number: NaN becomes an empty field.
 */
void report_json_number(FILE *out, double value);
void report_csv_number(FILE *out, double value);
/* A member of a JSON object: lead ("{", ", ", ...), "key": and the value; a string that is NULL becomes null.
 */
void report_json_member_string(FILE *out, const char *lead, const char *key, const char *text);
void report_json_member_number(FILE *out, const char *lead, const char *key, double value);
void report_csv_point(FILE *out, const struct curve_point *point); /* size, miss ratio, its interval */
/* Writes a CSV field, quoted if necessary (RFC 4180). */
void report_csv_string(FILE *out, const char *text);
/* The same for text of foreign origin, without control characters, since CSV is also shown on terminals. */
void report_csv_plain(FILE *out, const char *text);
/* Likewise; the ends of its lines remain. */
void report_csv_lines(FILE *out, const char *text);
/* A comma, and the next field of a row. */
void report_csv_next_number(FILE *out, double value);
void report_csv_next_plain(FILE *out, const char *text);
/* A ratio in text, as a percentage of `width` characters; "-" for NaN. */
void report_percent(FILE *out, const char *before, int width, int decimals, double ratio, const char *after);
/* Writes text whose lines are broken between words, so that they are not longer than `width`. */
void report_wrapped(FILE *out, const char *text, unsigned width);
/* What limits "all references" of a profile of full mode, to be written after these words; "": nothing. */
const char *report_extent(enum analysis_extent extent);
/* Writes text of foreign origin: control characters, which could affect a terminal, become '?'. */
void report_plain(FILE *out, const char *text);
/* The same in place. Returns text. */
char *report_make_plain(char *text);
/* Characters of the first `bytes` of a text in UTF-8. */
size_t report_columns(const char *text, size_t bytes);
/* "17.5M". Returns text. */
#define REPORT_COUNT 32
char *report_count(double count, char text[REPORT_COUNT]);

#endif
