/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - a machine's description, and predictions for a program on it, for people and scripts. */
#ifndef CACHEGRAM_REPORT_MACHINE_H
#define CACHEGRAM_REPORT_MACHINE_H

#include <stdio.h>
#include "machine/machine.h"
#include "model/statcc.h"
#include "report/base.h"
#include "report/report.h"

/* JSON is written by machine_write. */
void report_machine(FILE *out, const struct machine *machine, enum report_format format);

/* One level of a machine that runs a program. NaN: not enough samples. */
struct report_predict_row {
    const char *level; /* "L1", ..., "memory" */
    double size_bytes; /* memory: NaN */
    double latency_cycles;
    double miss_ratio, low, high; /* of this level, relative to references; memory: NaN */
    double cycles_share;          /* share of all cycles that hits in this level take */
};
struct report_predict {
    const struct report_base *base; /* of the program, including its name */
    const char *machine, *what_if;  /* what_if NULL: none */
    const struct report_predict_row *rows;
    size_t n;
    double cpi, cpi_low, cpi_high, ns_per_reference; /* NaN: the clock is not known */
    double base_share;               /* share of all cycles that the instructions themselves take */
    double wait_cycles, utilisation; /* NaN: no bandwidth is known */
    const char *bottleneck;          /* in words */
    double was_cpi;                  /* what_if: CPI without it; otherwise NaN */
};
void report_predict(FILE *out, const struct report_predict *predict, enum report_format format);

#endif
