/* SPDX-License-Identifier: Apache-2.0 */
#include "report/verify.h"

#include <inttypes.h>
#include <math.h>

#include "base/sizes.h"

static int is_inside(const struct curve_point *estimate, const struct curve_point *exact)
{
    /* The exact value is printed and computed with rounding. */
    double slack = 1e-12;
    return exact->miss_ratio >= estimate->low - slack && exact->miss_ratio <= estimate->high + slack;
}

static struct report_verify_errors report_verify_errors(const struct report_verify *v)
{
    struct report_verify_errors e = {.mean = NAN, .worst = NAN, .worst_at_size = NAN};
    double sum = 0;
    for (size_t i = 0; i < v->n; i++) {
        e.inside += (size_t)is_inside(&v->estimate[i], &v->exact[i]);
        if (isnan(v->estimate[i].miss_ratio))
            continue;
        double error = fabs(v->estimate[i].miss_ratio - v->exact[i].miss_ratio);
        sum += error;
        if (e.estimated++ == 0 || error > e.worst) {
            e.worst = error;
            e.worst_at_size = v->exact[i].size_bytes;
        }
    }
    if (e.estimated > 0)
        e.mean = sum / (double)e.estimated;
    return e;
}

/* Means over the sizes with a value; NaN without any. */
static struct report_verify_time mean_of_times(const struct report_verify *v)
{
    struct report_verify_time mean = {0, 0, 0};
    size_t n = 0;
    for (size_t i = 0; i < v->ntimes; i++) {
        if (isnan(v->times[i].cdf_error))
            continue;
        mean.cdf_error += v->times[i].cdf_error;
        mean.at_time += v->times[i].at_time;
        n++;
    }
    mean.cdf_error = n > 0 ? mean.cdf_error / (double)n : NAN;
    mean.at_time = n > 0 ? mean.at_time / (double)n : NAN;
    return mean;
}

static void print_csv(FILE *out, const struct report_verify *v)
{
    fputs("size_bytes,exact,estimate,ci_low,ci_high,error,inside\n", out);
    for (size_t i = 0; i < v->n; i++) {
        fprintf(out, "%.0f,", v->exact[i].size_bytes);
        report_csv_number(out, v->exact[i].miss_ratio);
        report_csv_next_number(out, v->estimate[i].miss_ratio);
        report_csv_next_number(out, v->estimate[i].low);
        report_csv_next_number(out, v->estimate[i].high);
        report_csv_next_number(out, v->estimate[i].miss_ratio - v->exact[i].miss_ratio);
        fprintf(out, ",%d\n", is_inside(&v->estimate[i], &v->exact[i]));
    }
}

static void print_json(FILE *out, const struct report_verify *v)
{
    struct report_verify_errors e = report_verify_errors(v);
    report_json_member_string(out, "{\n  ", "estimate_of", v->estimate_of);
    report_json_member_string(out, ",\n  ", "exact_of", v->exact_of);
    fprintf(out,
            ",\n  \"line_bytes\": %u,\n  \"bursts\": %zu,\n  \"estimate_references\": %" PRIu64
            ",\n  \"exact_references\": %" PRIu64,
            v->line_bytes, v->bursts, v->estimate_references, v->exact_references);
    report_json_member_number(out, ",\n  ", "overhead_percent", v->overhead_percent);
    fprintf(out, ",\n  \"threads\": \"%s\"", v->separate ? "separate" : "together");
    report_json_member_number(out, ",\n  ", "mean_absolute_error", e.mean);
    report_json_member_number(out, ",\n  ", "worst_absolute_error", e.worst);
    struct report_verify_time mean = mean_of_times(v);
    report_json_member_number(out, ",\n  ", "cdf_error", mean.cdf_error);
    report_json_member_number(out, ",\n  ", "error_at_time", mean.at_time);
    fprintf(out, ",\n  \"parts\": %zu,\n  \"unknown_parts\": %zu,\n  \"times\": [", v->parts,
            v->unknown_parts);
    for (size_t i = 0; i < v->ntimes; i++) {
        fprintf(out, "%s\n    {\"size_bytes\": %.0f", i ? "," : "", v->times[i].size_bytes);
        report_json_member_number(out, ", ", "cdf_error", v->times[i].cdf_error);
        report_json_member_number(out, ", ", "error_at_time", v->times[i].at_time);
        putc('}', out);
    }
    putc(']', out);
    fprintf(out, ",\n  \"estimated\": %zu,\n  \"inside\": %zu,\n  \"points\": [", e.estimated, e.inside);
    for (size_t i = 0; i < v->n; i++) {
        fprintf(out, "%s\n    {\"size_bytes\": %.0f", i ? "," : "", v->exact[i].size_bytes);
        report_json_member_number(out, ", ", "exact", v->exact[i].miss_ratio);
        report_json_member_number(out, ", ", "estimate", v->estimate[i].miss_ratio);
        report_json_member_number(out, ", ", "ci_low", v->estimate[i].low);
        report_json_member_number(out, ", ", "ci_high", v->estimate[i].high);
        putc('}', out);
    }
    fputs("\n  ]\n}\n", out);
}

static void print_percent(FILE *out, double ratio)
{
    if (isnan(ratio))
        fputs("         -", out);
    else
        fprintf(out, " %9.4f", 100 * ratio);
}

static void print_text(FILE *out, const struct report_verify *v, const struct report_style *style)
{
    struct report_verify_errors e = report_verify_errors(v);
    char text[SIZE_TEXT];
    fputs("Estimate of ", out);
    report_plain(out, v->estimate_of);
    fprintf(out, ": %" PRIu64 " references", v->estimate_references);
    if (v->full_references > 0)
        fprintf(out, ", the first %" PRIu64 " of the run", v->full_references);
    else if (v->complete)
        fputs(", all of the run: recorded completely", out);
    if (v->bursts > 0)
        fprintf(out, "%s in %zu burst%s", v->full_references > 0 ? " and then those" : "", v->bursts,
                v->bursts == 1 ? "" : "s");
    if (!isnan(v->overhead_percent))
        fprintf(out, ", overhead %.1f%%", v->overhead_percent);
    fputs("\nExact from ", out);
    report_plain(out, v->exact_of);
    fprintf(out, ": %" PRIu64 " references, %u-byte lines%s\n\n", v->exact_references, v->line_bytes,
            v->separate ? "\nSeveral threads at the same time: in a cache for each of them" : "");
    fputs("      size     exact  estimate       low      high     error   (miss ratio in %)\n", out);
    for (size_t i = 0; i < v->n; i++) {
        int inside = is_inside(&v->estimate[i], &v->exact[i]);
        fprintf(out, "%10s", size_format((uint64_t)v->exact[i].size_bytes, text));
        print_percent(out, v->exact[i].miss_ratio);
        print_percent(out, v->estimate[i].miss_ratio);
        print_percent(out, v->estimate[i].low);
        print_percent(out, v->estimate[i].high);
        print_percent(out, v->estimate[i].miss_ratio - v->exact[i].miss_ratio);
        if (!inside && !v->complete)
            fprintf(out, "   %soutside%s", style->color ? "\033[31m" : "", style->color ? "\033[0m" : "");
        putc('\n', out);
    }
    putc('\n', out);
    if (v->complete)
        fprintf(out,
                "Both are complete, so that there was nothing to estimate. Mean difference %.3f percentage "
                "points "
                "over %zu sizes, largest %.3f at %s. With --allowance 0, the estimate comes from bursts.\n",
                100 * e.mean, e.estimated, 100 * e.worst, size_format((uint64_t)e.worst_at_size, text));
    else if (e.estimated == 0)
        fputs("No size has an estimate: not enough samples.\n", out);
    else
        fprintf(out,
                "Mean absolute error %.3f percentage points over %zu sizes, largest %.3f at %s; the interval "
                "holds "
                "the exact value at %zu of %zu.\n",
                100 * e.mean, e.estimated, 100 * e.worst, size_format((uint64_t)e.worst_at_size, text),
                e.inside, v->n);
}

static void print_times(FILE *out, const struct report_verify *v)
{
    char text[SIZE_TEXT];
    struct report_verify_time mean = mean_of_times(v);
    if (v->ntimes == 0)
        return;
    fprintf(out, "\nOver time, in %zu parts of equal work, errors in percentage points:\n\n%10s %9s %9s\n",
            v->parts, "size", "CDF", "at a time");
    for (size_t i = 0; i < v->ntimes; i++) {
        fprintf(out, "%10s", size_format((uint64_t)v->times[i].size_bytes, text));
        print_percent(out, v->times[i].cdf_error);
        print_percent(out, v->times[i].at_time);
        putc('\n', out);
    }
    fprintf(out, "%10s", "mean");
    print_percent(out, mean.cdf_error);
    print_percent(out, mean.at_time);
    putc('\n', out);
    if (v->unknown_parts > 0)
        fprintf(out,
                "\n%zu of these parts have not enough samples at some size: the mean of the other parts is "
                "used for them.\n",
                v->unknown_parts);
}

void report_verify(FILE *out, const struct report_verify *v, enum report_format format,
                   const struct report_style *style)
{
    if (format == REPORT_CSV)
        print_csv(out, v);
    else if (format == REPORT_JSON)
        print_json(out, v);
    else {
        print_text(out, v, style);
        print_times(out, v);
    }
}
