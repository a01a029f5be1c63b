/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <inttypes.h>

void report_points_json(FILE *out, const struct curve_point *points, size_t n)
{
    fputs("  \"points\": [", out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "%s\n    {\"size_bytes\": %.0f", i ? "," : "", points[i].size_bytes);
        report_json_member_number(out, ", ", "miss_ratio", points[i].miss_ratio);
        report_json_member_number(out, ", ", "ci_low", points[i].low);
        report_json_member_number(out, ", ", "ci_high", points[i].high);
        putc('}', out);
    }
    fputs(n ? "\n  ]" : "]", out);
}

void report_curve_json(FILE *out, const struct analysis_curve *curve)
{
    report_json_member_string(out, "{\n  ", "profile", curve->profile);
    fprintf(out, ",\n  \"mode\": \"%s\",\n  \"model\": \"%s\",\n  \"line_bytes\": %u,\n",
            curve->lines_rate < 1 ? "lines"
            : curve->full         ? "full"
            : curve->windows      ? "sparse"
                                  : "burst",
            curve->model, curve->line_bytes);
    fprintf(out, "  \"exact\": %s,\n",
            curve->full && !curve->estimated && curve->extent == EXTENT_ALL ? "true" : "false");
    fprintf(out, "  \"complete\": %s,\n", curve->extent == EXTENT_BEGINNING ? "false" : "true");
    fprintf(out, "  \"references\": %" PRIu64 ",\n  \"bursts\": %zu,\n", curve->references, curve->bursts);
    if (curve->function) {
        report_json_member_string(out, "  ", "function", curve->function);
        fputs(",\n", out);
    }
    if (curve->object) {
        report_json_member_string(out, "  ", "object", curve->object);
        fputs(",\n", out);
    }
    if (curve->function || curve->object)
        fprintf(out, "  \"selected_references\": %" PRIu64 ",\n", curve->selected);
    if (curve->separate)
        fputs("  \"threads\": \"separate\",\n", out);
    if (curve->phase)
        fprintf(out, "  \"phase\": %u,\n", curve->phase);
    if (curve->full_references)
        fprintf(out, "  \"full_references\": %" PRIu64 ",\n", curve->full_references);
    if (curve->lines_rate < 1)
        fprintf(out, "  \"lines_rate\": %.6g,\n", curve->lines_rate);
    if (curve->full || curve->lines_rate < 1)
        fprintf(out, "  \"missed_percent\": %.3g,\n", curve->missed_percent);
    if (curve->windows)
        fprintf(out, "  \"windows\": %zu,\n  \"samples\": %zu,\n", curve->windows, curve->samples);
    if (curve->bursts)
        fprintf(
            out,
            "  \"ways\": %u,\n  \"watched\": %zu,\n  \"watches_dropped\": %zu,\n  \"watches_not_followed\": "
            "%zu,\n",
            curve->ways, curve->watches, curve->censored, curve->unwatched);
    report_points_json(out, curve->points, curve->n);
    fputs("\n}\n", out);
}
