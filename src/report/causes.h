/* SPDX-License-Identifier: Apache-2.0 */
/* causes.h - tables of which data or code evicted which. */
#ifndef CACHEGRAM_REPORT_CAUSES_H
#define CACHEGRAM_REPORT_CAUSES_H

#include "analysis/evictions.h"
#include "report/report.h"

/* limit: most rows, 0: all; least_percent: of the misses. */
void report_causes(FILE *out, const struct analysis_causes *causes, size_t limit, double least_percent,
                   enum report_format format);

#endif
