/* SPDX-License-Identifier: Apache-2.0 */
/* annotate.h - misses by line and instruction of some functions, or of a source file. */
#ifndef CACHEGRAM_ANALYSIS_ANNOTATE_H
#define CACHEGRAM_ANALYSIS_ANNOTATE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/hotspots-sizes.h"

struct analysis_annotate_question {
    double size_bytes;
    /* A function, with or without its parameters; or a source file, with or without folders. NULL: the
     * functions with most of the misses. */
    const char *what;
    const struct analysis_level *levels; /* of a machine, for what misses cost; NULL: not asked for */
    size_t nlevels;
    int separate; /* as in struct analysis_hotspots_question, like these: */
    uint32_t tid, phase;
    const char *comm;
};

/* References are weighted sums, as in struct shares_result. `stall` is as in struct analysis_hotspot. */
struct annotated_line {
    uint32_t line; /* 0: instructions without line */
    double references, misses, stall;
    uint64_t recorded;
    const struct profile_object *object; /* the data that most of the misses are of; NULL: not known */
    double object_misses;
};

struct annotated_insn {
    uint64_t offset; /* in the file of the code */
    uint32_t line;   /* 0: not known */
    double references, misses, stall;
    uint64_t recorded;
};

/* The lines of a source file that belong to a function, or to be shown; of one executable or library. */
struct annotated {
    const struct profile_image *image;
    const char *function;         /* NULL: all of the file is asked for */
    const char *file;             /* "": not known */
    struct annotated_line *lines; /* by number */
    size_t nlines, lines_capacity;
    struct annotated_insn *insns; /* by offset */
    size_t ninsns, insns_capacity;
    double references, misses, stall;
    const struct shares_result *whole; /* the function's, with interval; NULL: it is not a whole function */
};

struct analysis_annotation {
    struct analysis_hotspots insns, objects, functions;
    int with_stall;          /* it was asked for */
    struct annotated *parts; /* those with most misses first */
    size_t n;
};

/* 0, or negative with err: -ENOENT if there is no such function or file in the profile. */
int analysis_annotate(struct profile *p, const char *name, const struct analysis_annotate_question *question,
                      struct analysis_annotation *a, struct error *err);
void analysis_annotation_clear(struct analysis_annotation *a);

#endif
