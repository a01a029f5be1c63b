/* SPDX-License-Identifier: Apache-2.0 */
/* annotate.h - prints source lines and instructions with their misses. */
#ifndef CACHEGRAM_REPORT_ANNOTATE_H
#define CACHEGRAM_REPORT_ANNOTATE_H

#include <stdio.h>

#include "analysis/annotate.h"
#include "report/report.h"
#include "symbols/source.h"

struct report_insn {
    uint64_t offset, address;
    uint32_t line;                       /* 0: not known */
    int after_gap;                       /* others are left out before it */
    const struct annotated_insn *counts; /* NULL: it made no references */
    char text[96];
};

struct report_part {
    const struct annotated *part;
    const struct source *source; /* NULL: not found */
    int source_changed;          /* since the program was built */
    struct report_insn *insns;
    size_t ninsns;
    const char *note; /* why instructions are missing; NULL: they are not */
};

/* n parts, as many as a->n. */
void report_annotation(FILE *out, const struct analysis_annotation *a, const struct report_part *parts,
                       size_t n, enum report_format format);

#endif
