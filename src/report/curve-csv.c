/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

void report_csv_point(FILE *out, const struct curve_point *point)
{
    fprintf(out, "%.0f,", point->size_bytes);
    report_csv_number(out, point->miss_ratio);
    report_csv_next_number(out, point->low);
    report_csv_next_number(out, point->high);
}

void report_curve_csv(FILE *out, const struct analysis_curve *curve)
{
    fputs("size_bytes,miss_ratio,ci_low,ci_high\n", out);
    for (size_t i = 0; i < curve->n; i++) {
        report_csv_point(out, &curve->points[i]);
        putc('\n', out);
    }
}
