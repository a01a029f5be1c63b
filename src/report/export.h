/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - results in formats of other tools. */
#ifndef CACHEGRAM_REPORT_EXPORT_H
#define CACHEGRAM_REPORT_EXPORT_H

#include "analysis/hotspots.h"
#include "report/report.h"

/*
 * Hotspots by instruction as a profile of pprof (profile.proto, not compressed, which pprof reads as well).
 * Each row is a sample with one location, whose lines are the functions inlined there. Values: misses and
 * references; of a profile of full mode their numbers, otherwise per 10^9 references of the program. 0, or
 * -ENOMEM.
 */
int report_pprof(FILE *out, const struct analysis_hotspots *h);

/* Headline numbers in the text format of Prometheus: the run, and miss ratios of the curve's sizes. */
void report_prometheus(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve);

#endif
