/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - a program on another machine: csv, json, text. */
#include <math.h>

#include "base/sizes.h"
#include "report/machine.h"

static void csv(FILE *out, const struct report_predict *p)
{
    fputs("level,size_bytes,latency_cycles,miss_ratio,ci_low,ci_high,cycles_share,cpi,ns_per_ref,"
          "cpi_base,overlap,base_from,threads\n",
          out);
    for (size_t i = 0; i < p->n; i++) {
        const struct report_predict_row *r = &p->rows[i];
        const double values[] = {r->size_bytes, r->latency_cycles, r->miss_ratio, r->low,
                                 r->high,       r->cycles_share,   p->cpi,        p->ns_per_reference};
        fputs(r->level, out);
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++)
            report_csv_next_number(out, values[k]);
        report_base_csv(out, p->base);
        report_csv_next_number(out, p->base->threads);
        putc('\n', out);
    }
}

static void json(FILE *out, const struct report_predict *p)
{
    report_json_member_string(out, "{\n  ", "program", p->base->program);
    report_json_member_string(out, ",\n  ", "machine", p->machine);
    report_json_member_string(out, ",\n  ", "bottleneck", p->bottleneck);
    report_json_member_number(out, ",\n  ", "cpi", p->cpi);
    report_json_member_number(out, ",\n  ", "cpi_low", p->cpi_low);
    report_json_member_number(out, ",\n  ", "cpi_high", p->cpi_high);
    report_json_member_number(out, ",\n  ", "ns_per_ref", p->ns_per_reference);
    report_json_member_number(out, ",\n  ", "base_share", p->base_share);
    report_json_member_number(out, ",\n  ", "wait_cycles", p->wait_cycles);
    report_json_member_number(out, ",\n  ", "bandwidth_utilisation", p->utilisation);
    report_json_member_number(out, ",\n  ", "cpi_without_what_if", p->was_cpi);
    report_base_json(out, p->base);
    fputs(",\n  \"levels\": [", out);
    for (size_t i = 0; i < p->n; i++) {
        const struct report_predict_row *r = &p->rows[i];
        fprintf(out, "%s\n    {\"level\": \"%s\"", i ? "," : "", r->level);
        report_json_member_number(out, ", ", "size_bytes", r->size_bytes);
        report_json_member_number(out, ", ", "latency_cycles", r->latency_cycles);
        report_json_member_number(out, ", ", "miss_ratio", r->miss_ratio);
        report_json_member_number(out, ", ", "ci_low", r->low);
        report_json_member_number(out, ", ", "ci_high", r->high);
        report_json_member_number(out, ", ", "cycles_share", r->cycles_share);
        putc('}', out);
    }
    fputs("\n  ]\n}\n", out);
}

static void cell(FILE *out, double value, const char *format)
{
    if (isnan(value))
        fprintf(out, "%11s", "-");
    else
        fprintf(out, format, value);
}

static void text(FILE *out, const struct report_predict *p)
{
    char size[SIZE_TEXT];
    report_plain(out, p->base->program);
    fputs(" on ", out);
    report_plain(out, p->machine);
    if (p->what_if)
        fprintf(out, ", with %s", p->what_if);
    putc('\n', out);
    report_bases_text(out, p->base, 1);
    fprintf(out, "\n%-8s %8s %10s %10s %10s\n", "level", "size", "cycles", "misses", "% of time");
    fprintf(out, "%-8s %8s %10s %10s", "(base)", "", "", "");
    cell(out, 100 * p->base_share, "%10.1f%%");
    putc('\n', out);
    for (size_t i = 0; i < p->n; i++) {
        const struct report_predict_row *r = &p->rows[i];
        fprintf(out, "%-8s %8s%11.1f", r->level,
                isnan(r->size_bytes) ? "" : size_format((uint64_t)r->size_bytes, size), r->latency_cycles);
        if (i + 1 == p->n)
            fprintf(out, "%11s", "");
        else
            cell(out, 100 * r->miss_ratio, "%10.3f%%");
        cell(out, 100 * r->cycles_share, "%10.1f%%");
        putc('\n', out);
    }
    if (isnan(p->cpi))
        fprintf(out, "\nNot enough samples at these sizes; bounds of the CPI: %.3f to %.3f.\n", p->cpi_low,
                p->cpi_high);
    else
        fprintf(out, "\nCPI %.3f", p->cpi);
    if (!isnan(p->cpi) && p->cpi_high > p->cpi_low)
        fprintf(out, " (%.3f to %.3f)", p->cpi_low, p->cpi_high);
    if (!isnan(p->ns_per_reference))
        fprintf(out, ", %.3f ns a reference", p->ns_per_reference);
    if (!isnan(p->was_cpi) && !isnan(p->cpi))
        fprintf(out, "; without the change %.3f, so %.2f times as fast", p->was_cpi, p->was_cpi / p->cpi);
    if (!isnan(p->utilisation))
        fprintf(out, "; memory bandwidth %.0f%% used", 100 * p->utilisation);
    fprintf(out, "%sMost of the time: %s.\n", isnan(p->cpi) ? "" : "\n", p->bottleneck);
}

void report_predict(FILE *out, const struct report_predict *predict, enum report_format format)
{
    if (format == REPORT_CSV)
        csv(out, predict);
    else if (format == REPORT_JSON)
        json(out, predict);
    else
        text(out, predict);
}
