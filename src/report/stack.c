/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stack.h"

#include <inttypes.h>
#include <math.h>

#include "base/sizes.h"

#define PLOT_ROWS 13u

static void print_csv(FILE *out, const struct report_stack *s)
{
    fputs("size_bytes,miss_ratio,ci_low,ci_high,line_bytes,pid,tid\n", out);
    for (size_t c = 0; c < s->ncurves; c++) {
        const struct report_stack_curve *curve = &s->curves[c];
        for (size_t i = 0; i < s->npoints; i++) {
            report_csv_point(out, &curve->points[i]);
            fprintf(out, ",%u,", curve->line_bytes);
            if (s->separate)
                fprintf(out, "%" PRIu32 ",%" PRIu32 "\n", curve->thread.pid, curve->thread.tid);
            else
                fputs(",\n", out);
        }
    }
}

static void print_json(FILE *out, const struct report_stack *s)
{
    report_json_member_string(out, "{\n  ", "trace", s->trace);
    fprintf(out, ",\n  \"references\": %" PRIu64 ",\n  \"rate\": %.17g,\n  \"memory_bytes\": %zu,\n",
            s->references, s->rate, s->memory_bytes);
    fputs("  \"stacks\": [", out);
    for (size_t c = 0; c < s->ncurves; c++) {
        const struct report_stack_curve *curve = &s->curves[c];
        fprintf(out, "%s\n  {\n  \"line_bytes\": %u,\n", c != 0 ? "," : "", curve->line_bytes);
        if (s->separate)
            fprintf(out, "  \"pid\": %" PRIu32 ",\n  \"tid\": %" PRIu32 ",\n", curve->thread.pid,
                    curve->thread.tid);
        fprintf(out, "  \"touches\": %" PRIu64 ",\n  \"sampled_touches\": %" PRIu64 ",\n", curve->touches,
                curve->sampled);
        fprintf(out, "  \"lines\": %" PRIu64 ",\n  \"cold\": %" PRIu64 ",\n", curve->lines, curve->cold);
        report_points_json(out, curve->points, s->npoints);
        fputs("\n  }", out);
    }
    fputs(s->ncurves != 0 ? "\n  ]\n}\n" : "]\n}\n", out);
}

static void print_curve(FILE *out, const struct report_stack *s, const struct report_stack_curve *curve,
                        const struct report_style *style)
{
    char text[SIZE_TEXT];
    int unknown = 0;
    fprintf(out, "Miss ratio by cache size: lru, %u-byte lines", curve->line_bytes);
    if (s->separate && curve->thread.pid != 0)
        fprintf(out, ", thread %" PRIu32 " of process %" PRIu32, curve->thread.tid, curve->thread.pid);
    else if (s->separate)
        fprintf(out, ", thread %" PRIu32, curve->thread.tid);
    if (s->rate < 1)
        fprintf(out, "\nfrom %" PRIu64 " lines, %.3g%% of all; %" PRIu64 " of %" PRIu64 " touches\n\n",
                curve->lines, s->rate * 100, curve->sampled, curve->touches);
    else
        fprintf(out, "\nfrom all %" PRIu64 " touches of %" PRIu64 " lines (%s)\n\n", curve->touches,
                curve->lines, size_format(curve->lines * curve->line_bytes, text));
    report_plot(out, curve->points, s->npoints, PLOT_ROWS, style);
    fprintf(out, "\n%8s  %10s%s\n", "size", "miss ratio", s->rate < 1 ? "       95% interval" : "");
    for (size_t i = 0; i < s->npoints; i++) {
        const struct curve_point *point = &curve->points[i];
        fprintf(out, "%8s  ", size_format((uint64_t)point->size_bytes, text));
        if (isnan(point->miss_ratio)) {
            unknown = 1;
            fputs("         -  not enough samples\n", out);
            continue;
        }
        fprintf(out, "%9.3f%%", point->miss_ratio * 100);
        if (s->rate < 1)
            fprintf(out, "  %7.3f%% to %7.3f%%", point->low * 100, point->high * 100);
        putc('\n', out);
    }
    if (unknown)
        fputs("\nNot enough samples: fewer than eight lines of the sample fit into so small a cache.\n", out);
}

void report_stack(FILE *out, const struct report_stack *s, enum report_format format,
                  const struct report_style *style)
{
    if (format == REPORT_CSV) {
        print_csv(out, s);
    } else if (format == REPORT_JSON) {
        print_json(out, s);
    } else {
        for (size_t c = 0; c < s->ncurves; c++) {
            if (c != 0)
                putc('\n', out);
            print_curve(out, s, &s->curves[c], style);
        }
    }
}
