/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots-internal.h - the formats of a table of hotspots, and the notes below it. */
#ifndef CACHEGRAM_REPORT_HOTSPOTS_INTERNAL_H
#define CACHEGRAM_REPORT_HOTSPOTS_INTERNAL_H

#include "report/hotspots.h"

/* left_out: as for report_hotspots. */
void report_hotspots_text(FILE *out, const struct analysis_hotspots *h, size_t left_out);
void report_hotspots_csv(FILE *out, const struct analysis_hotspots *h);
void report_hotspots_json(FILE *out, const struct analysis_hotspots *h, size_t left_out);

void report_hotspots_notes(FILE *out, const struct analysis_hotspots *h);
/* What the table's `by` is called; "": by data alone. */
extern const char *const report_by_names[];

#endif
