/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots.h - tables of code that misses. */
#ifndef CACHEGRAM_REPORT_HOTSPOTS_H
#define CACHEGRAM_REPORT_HOTSPOTS_H

#include "analysis/hotspots.h"
#include "report/report.h"

enum report_hotspots_sort {
    REPORT_SORT_MISSES,
    REPORT_SORT_RATIO,
    REPORT_SORT_REFS,
    REPORT_SORT_NAME,
    REPORT_SORT_STALL
};

/* Selection and order of rows. */
struct report_hotspots_view {
    enum report_hotspots_sort sort;
    size_t limit;         /* 0: all */
    double least_percent; /* of the misses */
    const char *dso;      /* only code of that file, given with or without its folders; NULL: all */
};

/* Whether any row is of that file, given as in the view's dso. */
int report_hotspots_have_file(const struct analysis_hotspots *h, const char *file);
/* Sorts and shortens h->rows. Returns how many rows the limits left out, of those of the file. */
size_t report_hotspots_select(struct analysis_hotspots *h, const struct report_hotspots_view *view);
/* A line of text: the cache of a table, and the phase. */
void report_hotspots_cache(FILE *out, const struct analysis_hotspots *h);
/* Likewise: how many references a table is made from. */
void report_hotspots_source(FILE *out, const struct analysis_hotspots *h);
/* A note if a part of the phase is not counted. */
void report_hotspots_part(FILE *out, const struct analysis_hotspots *hotspots);
/* A note if many misses by string instructions are in no row. */
void report_hotspots_unseen_strings(FILE *out, const struct analysis_hotspots *h);
/* left_out: as report_hotspots_select returns it. */
void report_hotspots(FILE *out, const struct analysis_hotspots *h, size_t left_out,
                     enum report_format format);
/* The rows as text, none longer than `width`, without what they are from and what words in them mean. */
void report_hotspots_brief(FILE *out, const struct analysis_hotspots *h, size_t left_out, unsigned width);

/* As collapsed stacks, a line for each row: frames separated by ';', and millionths of all misses. */
void report_hotspots_collapsed(FILE *out, const struct analysis_hotspots *h);
/* What a row is, as members of a JSON object: "function": ..., "object": ... */
void report_hotspot_json_name(FILE *out, const struct analysis_hotspots *h,
                              const struct analysis_hotspot *row);

#endif
