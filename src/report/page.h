/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - the page of `cachegram html`: web/page.html with the data in it, as one JSON object. The tables in
 * this object are those that the commands print with --format json; here is what only the page has.
 */
#ifndef CACHEGRAM_REPORT_PAGE_H
#define CACHEGRAM_REPORT_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/pirate.h"
#include "analysis/timeline.h"
#include "machine/machine.h"
#include "report/difference.h"
#include "report/hotspots.h"
#include "report/report.h"
#include "symbols/source.h"

/* The caches of a machine, first level first. */
struct report_page_machine {
    int recorded; /* the program was recorded on it; otherwise the page was made on it */
    const char *name, *cpu;
    uint64_t level_bytes[MACHINE_LEVELS];
    size_t nlevels;
};

/* Each writes a JSON value. */
void report_page_machines(FILE *json, const struct report_page_machine *machines, size_t n);
/* [{"key": ..., "text": ...}, ...] of report_facts. 0, or -ENOMEM. */
int report_page_facts(FILE *json, const struct analysis_summary *s, const struct analysis_curve *curve);
/* ["...", ...] of report_answer_text (answer may be NULL; otherwise it is about that machine) and
 * report_findings_text; of report_curve_notes. 0, or -ENOMEM. */
int report_page_findings(FILE *json, const struct analysis_answer *answer,
                         const struct report_page_machine *machine, const struct analysis_findings *findings);
/* ["...", ...] of report_difference_notes and report_difference_words. 0, or -ENOMEM. */
int report_page_difference(FILE *json, const struct report_curves *curves,
                           const struct report_difference_programs *programs);
int report_page_notes(FILE *json, const struct analysis_curve *curve);
/* [{"size_bytes": ..., "miss_ratio": ...}, ...] of what the Pirate measured. */
void report_page_measured(FILE *json, const struct analysis_pirate *pirate);
/* {"sizes": [...], "columns": [{"phase": ..., "end_ns": ..., "miss_ratio": [...]}, ...]} */
void report_page_grid(FILE *json, const struct analysis_grid *grid, const double *sizes);
/* What the rows of many tables have in common, each written once. All 0 at first; cleared by
 * report_page_names. */
struct report_page_list {
    char **list; /* as JSON */
    size_t n;
};
struct report_page_names {
    struct report_page_list rows, calls, trees;
};
/* {"mode": ..., "miss_ratio": ..., "rows_left_out": ..., "rows": [[name, misses_share, low, high, miss_ratio,
 * refs_share, tree], ...]}: name is a position among the names; low and high are null with too few samples;
 * tree is a position among the trees of calls, and missing if there is none. 0, or -ENOMEM. */
int report_page_rows(FILE *json, const struct analysis_hotspots *h, size_t left_out,
                     struct report_page_names *names);
/*
 * {"rows": [{"function": ..., "object": ...}, ...], "calls": ["f a.c:7", ...], "trees": [[call, depth, share,
 * call, depth, share, ...], ...], ...}: a tree is in preorder, with what has called a call after it, one
 * deeper; share is in thousandths of the row's misses. Trees are cut; the other members are the limits.
 */
void report_page_names(FILE *json, struct report_page_names *names);
/* {"file": NAME, "first": FIRST, "changed": ..., "lines": [...]}: the lines from first to last that exist. */
void report_page_source(FILE *json, const char *name, const struct source *source, uint32_t first,
                        uint32_t last, int changed);

/*
 * Writes the page. `json` is an object; in it, what could end the element that contains it or start another
 * one (<, >, &, U+2028, U+2029) is written as JSON escapes.
 */
void report_page(FILE *out, const char *json);

#endif
