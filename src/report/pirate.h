/* SPDX-License-Identifier: Apache-2.0 */
/* pirate.h - measurements with part of the cache occupied, next to the model: for people and scripts. */
#ifndef CACHEGRAM_REPORT_PIRATE_H
#define CACHEGRAM_REPORT_PIRATE_H

#include <stdio.h>
#include "analysis/pirate.h"
#include "report/report.h"

/* curve may be NULL or empty: no model. */
void report_pirate(FILE *out, const struct analysis_pirate *r, const struct analysis_curve *curve,
                   enum report_format format, const struct report_style *style);
/* "pirate": [...], without braces around it, each line indented by two spaces. */
void report_pirate_rows_json(FILE *out, const struct analysis_pirate *r, const struct analysis_curve *curve);

#endif
