/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - a machine's description, and a program on one, for people and scripts. */
#ifndef CACHEGRAM_REPORT_MACHINE_H
#define CACHEGRAM_REPORT_MACHINE_H

#include <stdio.h>
#include "machine/machine.h"
#include "model/statcc.h"
#include "report/base.h"
#include "report/report.h"

/* JSON is machine_write's. */
void report_machine(FILE *out, const struct machine *machine, enum report_format format);

/* One level of a machine, with a program on it. NaN: not enough samples. */
struct report_predict_row {
    const char *level; /* "L1", ..., "memory" */
    double size_bytes; /* memory: NaN */
    double latency_cycles;
    double miss_ratio, low, high; /* misses of this level by references; memory: NaN */
    double cycles_share;          /* of all cycles, those spent in hits of this level */
};
struct report_predict {
    const struct report_base *base; /* of the program, its name with it */
    const char *machine, *what_if;  /* what_if NULL: none */
    const struct report_predict_row *rows;
    size_t n;
    double cpi, cpi_low, cpi_high, ns_per_reference; /* of references; NaN: the clock is not known */
    double base_share;                               /* of all cycles, those of the instructions themselves */
    double wait_cycles, utilisation;                 /* NaN: no bandwidth is known */
    const char *bottleneck;                          /* in words */
    double was_cpi;                                  /* what_if: without it; else NaN */
};
void report_predict(FILE *out, const struct report_predict *predict, enum report_format format);

#endif
