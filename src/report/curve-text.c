/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>

#include "base/sizes.h"

#define LEGEND_COLUMNS 45u /* of the legend, in one line */

/* Of which references the curve is. */
static void put_selection(FILE *out, const struct analysis_curve *curve)
{
    fputs("references", out);
    if (curve->function) {
        fputs(" by ", out);
        report_plain(out, curve->whole_name ? curve->whole_name : curve->function);
    }
    if (curve->object) {
        fputs(" to ", out);
        report_plain(out, curve->object);
    }
    fprintf(out, ": %" PRIu64 " of %" PRIu64 " recorded ones\n\n", curve->selected, curve->references);
}

static int some_without_interval(const struct analysis_curve *curve)
{
    for (size_t i = 0; i < curve->n && !curve->full; i++)
        if (isnan(curve->points[i].low))
            return 1;
    return 0;
}

/* What the curve is made from. */
static void put_source(FILE *out, const struct analysis_curve *curve)
{
    if (curve->function || curve->object)
        put_selection(out, curve);
    else if (curve->lines_rate < 1)
        fprintf(out, "from a sample of 1/%g of the lines, %" PRIu64 " references%s\n\n",
                1 / curve->lines_rate, curve->references,
                curve->missed_percent > ANALYSIS_EXACT_PERCENT ? "; references are missing" : "");
    else if (curve->full && curve->missed_percent > ANALYSIS_MISSED_PERCENT)
        fprintf(out, "from %" PRIu64 " references; about %.*f%% of all are missing\n\n", curve->references,
                curve->missed_percent < 10, curve->missed_percent);
    else if (curve->full)
        fprintf(out, "from all %" PRIu64 " references%s%s%s\n\n", curve->references,
                curve->phase ? " of the phase's windows" : "", report_extent(curve->extent),
                curve->estimated ? "; estimated from their reuse distances" : "");
    else if (curve->windows)
        fprintf(out, "from %zu samples in %zu windows, %" PRIu64 " references\n\n", curve->samples,
                curve->windows, curve->references);
    else if (curve->full_references)
        fprintf(out,
                "from the first %" PRIu64 " references, and %zu burst%s with %" PRIu64
                " references and %zu watched lines\n\n",
                curve->full_references, curve->bursts, curve->bursts == 1 ? "" : "s",
                curve->references - curve->full_references, curve->watches);
    else
        fprintf(out, "from %zu burst%s, %" PRIu64 " references, %zu watched lines\n\n", curve->bursts,
                curve->bursts == 1 ? "" : "s", curve->references, curve->watches);
}

/* banded: some points have an interval. */
static void put_points(FILE *out, const struct analysis_curve *curve, int banded)
{
    fprintf(out, "\n%8s  %10s", "size", "miss ratio");
    if (banded)
        fprintf(out, "  %19s", "low to high");
    putc('\n', out);
    for (size_t i = 0; i < curve->n; i++) {
        const struct curve_point *point = &curve->points[i];
        char text[SIZE_TEXT];
        fprintf(out, "%8s  ", size_format((uint64_t)point->size_bytes, text));
        report_percent(out, "", 10, 3, point->miss_ratio, "");
        if (banded && !isnan(point->low) && !isnan(point->high))
            fprintf(out, "  %7.3f%% to %7.3f%%", point->low * 100, point->high * 100);
        if (isnan(point->miss_ratio))
            fputs("  not enough samples", out);
        putc('\n', out);
    }
}

void report_curve_text(FILE *out, const struct analysis_curve *curve, const struct report_style *style)
{
    int banded = 0, unknown = 0;
    for (size_t i = 0; i < curve->n; i++) {
        banded |= curve->points[i].high > curve->points[i].low;
        unknown |= isnan(curve->points[i].miss_ratio);
    }
    fprintf(out, "Miss ratio by cache size: %s, ", curve->model);
    if (curve->phase)
        fprintf(out, "phase %" PRIu32 ", ", curve->phase);
    if (curve->separate)
        fputs("one for each thread, ", out);
    if (curve->ways)
        fprintf(out, "%u way%s, ", curve->ways, curve->ways == 1 ? "" : "s");
    fprintf(out, "%u-byte lines\n", curve->line_bytes);
    put_source(out, curve);
    report_plot(out, curve->points, curve->n, 13, style);
    if (banded && curve->n > 1)
        fprintf(out, "\n  %s estimate%s%s confidence interval or bounds\n", report_is_utf8() ? "⠒" : "-",
                style->width < LEGEND_COLUMNS ? "\n  " : "   ", report_is_utf8() ? "░" : ":");
    put_points(out, curve, banded);
    if (curve->function || curve->object) {
        if (some_without_interval(curve))
            fputs("\nWithout an interval: too few misses were seen for one.\n", out);
    } else if (unknown && curve->lines_rate < 1)
        fputs("\nNot enough samples: caches of these sizes hold fewer than eight lines of the sample.\n",
              out);
    else if (unknown)
        fputs("\nNot enough samples: neither bursts nor watched lines reach these sizes; only the bounds are "
              "known.\n",
              out);
    if (curve->bursts || curve->full_references || curve->busy_threads > 1 || curve->busy_processes > 1) {
        putc('\n', out);
        if (curve->skipped_references)
            fprintf(out,
                    "Note: without the first %" PRIu64
                    " references of the run: all of them were recorded, but not by thread\n",
                    curve->skipped_references);
        report_curve_notes(out, curve, "Note: ", 1);
    }
}
