/* SPDX-License-Identifier: Apache-2.0 */
/* stack.h - output of `cachegram stack`: the curves of a trace, for people and scripts. */
#ifndef CACHEGRAM_REPORT_STACK_H
#define CACHEGRAM_REPORT_STACK_H

#include "report/report.h"
#include "trace/trace.h"

struct report_stack_curve {
    unsigned line_bytes;
    struct trace_thread thread; /* if threads are separate */
    uint64_t touches;           /* of lines */
    uint64_t sampled;           /* touches in the sample; all touches without one */
    uint64_t lines, cold;       /* distinct lines and first touches, in the sample */
    struct curve_point *points;
};

struct report_stack {
    const char *trace;   /* file name */
    uint64_t references; /* read */
    int separate;        /* threads are separate */
    double rate;         /* of sampled lines; 1: exact */
    size_t memory_bytes; /* of all stacks */
    size_t npoints;      /* of each curve */
    size_t ncurves;
    const struct report_stack_curve *curves;
};

void report_stack(FILE *out, const struct report_stack *s, enum report_format format,
                  const struct report_style *style);

#endif
