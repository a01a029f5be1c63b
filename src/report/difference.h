/* SPDX-License-Identifier: Apache-2.0 */
/* difference.h - output of `cachegram diff`: two profiles, before and after. */
#ifndef CACHEGRAM_REPORT_DIFFERENCE_H
#define CACHEGRAM_REPORT_DIFFERENCE_H

#include "analysis/difference.h"
#include "analysis/difference-phases.h"
#include "report/report.h"

/* Two curves of the same sizes, and the change at each size. */
struct report_curves {
    const struct analysis_curve *before, *after;
    const struct analysis_change *changes; /* before->n of them */
};
/* REPORT_CSV or REPORT_JSON; text is part of report_difference_all. */
void report_difference(FILE *out, const struct report_curves *curves, enum report_format format);

struct report_functions {
    const char *before, *after; /* file names */
    double size_bytes;
    const struct analysis_function_changes *changes;
    size_t limit; /* most rows in text; 0: all */
    int objects;  /* they are data objects */
    int separate; /* the cache is of each thread's own */
};
void report_function_difference(FILE *out, const struct report_functions *functions,
                                enum report_format format);

/* The most important changes of the curves in words, a line each. */
void report_difference_words(FILE *out, const struct report_curves *curves);

struct report_phases {
    const char *before, *after;       /* file names */
    const struct curve_point *points; /* sizes */
    size_t npoints;
    const struct analysis_phase_difference *difference;
    int separate; /* the caches are of each thread's own */
};
void report_phase_difference(FILE *out, const struct report_phases *phases, enum report_format format);

/* Of the two profiles; "": unknown. */
struct report_difference_programs {
    char cpu[2][256];     /* names of the machines' processors */
    char name[2][256];    /* of the programs */
    double references[2]; /* of all, where all were recorded; otherwise 0 */
};
/* A line each: that programs, their numbers of references or machines differ. */
void report_difference_notes(FILE *out, const struct report_difference_programs *programs);

/* All that changed. What is NULL is not known, for the reason beside it. */
struct report_difference {
    const struct report_curves *curves;
    int all; /* text: all rows of the curves */
    struct report_difference_programs programs;
    double size_bytes; /* of the cache, for functions and objects */
    const struct analysis_function_changes *functions, *objects;
    struct error no_functions, no_objects;
    const struct curve_point *points; /* sizes, for phases */
    size_t npoints;
    const struct analysis_phase_difference *phases;
    struct error no_phases;
};
/* In text, of functions, objects and phases only significant changes. REPORT_JSON: all, each as the functions
 * above print it. */
void report_difference_all(FILE *out, const struct report_difference *difference, enum report_format format);

#endif
