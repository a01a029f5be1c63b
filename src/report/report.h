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
#include "model/curve.h"
#include "profile/profile.h"

/* How text looks on this terminal. */
struct report_style {
    unsigned width; /* columns, at least REPORT_WIDTH_MIN */
    int color;      /* escape sequences are welcome */
};
#define REPORT_WIDTH_MIN 20u
enum report_color { REPORT_COLOR_AUTO, REPORT_COLOR_ALWAYS, REPORT_COLOR_NEVER };
/* Width of the terminal behind out, else $COLUMNS, else 80. AUTO: colour on a terminal, unless NO_COLOR. */
struct report_style report_style_of(FILE *out, enum report_color color);

/* --- the curve --- */
enum report_model { REPORT_MODEL_LRU, REPORT_MODEL_RANDOM, REPORT_MODEL_STATSTACK };

/* What the curve is to be of. */
struct report_question {
    enum report_model model;
    uint32_t tid;  /* only this thread's bursts; 0: all */
    unsigned ways; /* of a set-associative cache (LRU); 0: fully associative */
};

struct report_curve {
    const char *profile; /* file name */
    const char *model;   /* "lru", "random", "statstack" */
    int full;            /* the profile holds every reference */
    unsigned line_bytes;
    uint64_t references; /* recorded ones, behind this curve */
    size_t bursts;
    size_t windows, samples; /* of sparse reuse distances; 0 in other profiles */
    unsigned ways;           /* 0: fully associative */
    size_t watches;          /* survivors of those bursts that were chosen for watching */
    size_t unfollowed;       /* of those, refused or without an outcome */
    size_t dropped;          /* of those, given up */
    /* Of several processes, CPU time in user mode, profiling left out, and how much of it the bursts stand
     * for; NaN: not told. */
    double user_seconds, sampled_seconds;
    double clock_error; /* of the reference clock, the largest told, as a share; NaN: not told */
    /* Of the run, by the weights of its bursts; NaN where they do not tell (other modes: always). */
    double ns_per_instruction, references_per_instruction; /* references: touches of lines, as in the curve */
    struct curve_point *points;                            /* owned by the caller */
    size_t n;
};

/*
 * Compute curve->points[].miss_ratio, low and high for the sizes in them, and fill full, model,
 * line_bytes, references and all that follows. -EINVAL where the profile does not carry what the model needs,
 * -ENODATA where it holds no references.
 */
int report_curve_compute(struct profile *p, const struct report_question *question,
                         struct report_curve *curve, struct error *err);

enum report_format { REPORT_TEXT, REPORT_CSV, REPORT_JSON, REPORT_FORMATS };
/* One of a kind a file: curve-text.c, curve-csv.c, curve-json.c. */
void report_curve_text(FILE *out, const struct report_curve *curve, const struct report_style *style);
void report_curve_csv(FILE *out, const struct report_curve *curve);
void report_curve_json(FILE *out, const struct report_curve *curve);
/* "points": [...], without braces around it, each line indented by two spaces. */
void report_points_json(FILE *out, const struct curve_point *points, size_t n);
/*
 * What to know of a burst profile's curve, in words: nothing, or sentences on one line each that begin with
 * `lead`.
 */
void report_curve_notes(FILE *out, const struct report_curve *curve, const char *lead);
/* The drawing alone: rows lines and the axis below. Draws nothing of fewer than two points. */
void report_plot(FILE *out, const struct curve_point *points, size_t n, unsigned rows,
                 const struct report_style *style);
/* With single points over the curve: marks[].miss_ratio at marks[].size_bytes; those outside are left out. */
void report_plot_over(FILE *out, const struct curve_point *points, size_t n, const struct curve_point *marks,
                      size_t nmarks, unsigned rows, const struct report_style *style);

/* --- the whole run --- */
struct report_counter {
    char name[32];
    uint64_t value;
};

struct report_summary {
    char command[4096], started[64], mode[32], complete[8];
    char warning[8192]; /* one a line; empty: none */
    char clock[16];     /* that counts the references between bursts; "": not told */
    /* NaN where the profile does not tell. */
    double references, loads, stores, cold, cpu_seconds, start_cpu_seconds, wall_seconds, overhead_percent,
        exit_status, memory_bytes;
    double clock_error;      /* share by which rates of references may be off; NaN: not told */
    double clock_references; /* of the whole run, counted; NaN: they were not */
    size_t bursts, processes, threads;
    uint64_t end[16]; /* bursts by how they ended (codes of docs/format.md); the last: other codes */
    size_t ncounters;
    struct report_counter counter[64];
};

struct report_pirate; /* report/pirate.h */

int report_summary_load(struct profile *p, struct report_summary *s, struct error *err);
/*
 * curve may hold no points (n 0): then why_no_curve is told instead. Of pirate, miss ratios that were
 * measured are drawn over the curve; the rest of it is report_pirate's.
 */
void report_summary_text(FILE *out, const struct report_summary *s, const struct report_curve *curve,
                         const char *why_no_curve, const struct report_pirate *pirate,
                         const struct report_style *style);
void report_summary_csv(FILE *out, const struct report_summary *s);
void report_summary_json(FILE *out, const struct report_summary *s, const struct report_curve *curve,
                         const struct report_pirate *pirate);

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
