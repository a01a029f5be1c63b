/* SPDX-License-Identifier: Apache-2.0 */
/* corun.c - programs that share a cache: csv, json, text. */
#include "report/corun.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"

/* In the order of the columns; scripts rely on the first eight. */
static const char *const columns[] = {
    "solo_miss_ratio",   "shared_miss_ratio", "solo_cpi",        "shared_cpi", "slowdown",
    "cache_share_bytes", "shared_low",        "shared_high",     "cpi_low",    "cpi_high",
    "bytes_per_cycle",   "partition_bytes",   "wrong_cpi_change"};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void values(const struct report_corun_row *r, double *value)
{
    const double in_order[COLUMNS] = {
        r->solo_miss_ratio, r->shared_miss_ratio, r->solo_cpi,
        r->shared_cpi,      r->slowdown,          isnan(r->share_bytes) ? NAN : floor(r->share_bytes),
        r->shared_low,      r->shared_high,       r->cpi_low,
        r->cpi_high,        r->bytes_per_cycle,   r->partition_bytes,
        r->wrong_cpi_change};
    memcpy(value, in_order, sizeof in_order);
}

static void csv(FILE *out, const struct report_corun *c)
{
    double value[COLUMNS];
    fputs("program,size_bytes", out);
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, ",%s", columns[i]);
    fputs(",cpi_base,overlap,base_from,phases,mean_miss_ratio,mean_cpi,threads\n", out);
    for (uint32_t k = 0; k < c->n; k++) {
        values(&c->rows[k], value);
        report_csv_string(out, c->rows[k].program);
        fprintf(out, ",%" PRIu64, c->size_bytes);
        for (size_t i = 0; i < COLUMNS; i++)
            report_csv_next_number(out, value[i]);
        report_base_csv(out, &c->bases[k]);
        fprintf(out, ",%u,", c->rows[k].phases);
        report_csv_number(out, c->rows[k].mean_miss_ratio);
        report_csv_next_number(out, c->rows[k].mean_cpi);
        report_csv_next_number(out, c->bases[k].threads);
        putc('\n', out);
    }
}

static void json(FILE *out, const struct report_corun *c)
{
    double value[COLUMNS];
    report_json_member_string(out, "{\n  ", "machine", c->machine);
    fprintf(out, ",\n  \"size_bytes\": %" PRIu64 ",\n  \"converged\": %s,\n  \"iterations\": %u,\n",
            c->size_bytes, c->converged ? "true" : "false", c->iterations);
    fprintf(out, "  \"from_all_references\": %s,\n", c->exact ? "true" : "false");
    fprintf(out, "  \"residual\": %.3g", c->residual);
    report_json_member_number(out, ",\n  ", "wait_cycles", c->wait_cycles);
    report_json_member_number(out, ",\n  ", "bandwidth_utilisation", c->utilisation);
    report_json_member_number(out, ",\n  ", "cpi_error", c->cpi_error);
    fputs(",\n  \"programs\": [", out);
    for (uint32_t k = 0; k < c->n; k++) {
        values(&c->rows[k], value);
        report_json_member_string(out, k ? ",\n    {" : "\n    {", "program", c->rows[k].program);
        for (size_t i = 0; i < COLUMNS; i++)
            report_json_member_number(out, ", ", columns[i], value[i]);
        report_base_json(out, &c->bases[k]);
        fprintf(out, ", \"phases\": %u", c->rows[k].phases);
        report_json_member_number(out, ", ", "mean_miss_ratio", c->rows[k].mean_miss_ratio);
        report_json_member_number(out, ", ", "mean_cpi", c->rows[k].mean_cpi);
        putc('}', out);
    }
    fputs("\n  ]\n}\n", out);
}

static void percent(FILE *out, double ratio, int width)
{
    if (isnan(ratio))
        fprintf(out, "%*s", width, "?");
    else
        fprintf(out, "%*.3f%%", width - 1, 100 * ratio);
}

static void plain_number(FILE *out, double value, int width)
{
    if (isnan(value))
        fprintf(out, "%*s", width, "?");
    else
        fprintf(out, "%*.3f", width, value);
}

static const char *why_mean(const struct report_corun_row *r)
{
    return r->in_several ? "its threads are in several at a time" : "most of them have few bursts";
}

/* Of programs whose phases are not used, why. */
static void unused_text(FILE *out, const struct report_corun *c)
{
    for (uint32_t k = 0; k < c->profiles; k++) {
        const struct report_corun_row *r = &c->rows[k];
        if (r->found_phases < 2)
            continue;
        fprintf(out, "\nThe %" PRIu32 " phases of ", r->found_phases);
        report_plain(out, r->program);
        fprintf(out, " are not used: %s.\n", why_mean(r));
    }
}

/* What the phases changed. */
static void phases_text(FILE *out, const struct report_corun *c)
{
    uint32_t most = 1;
    for (uint32_t k = 0; k < c->n; k++)
        most = c->rows[k].phases > most ? c->rows[k].phases : most;
    if (most == 1) {
        unused_text(out, c);
        return;
    }
    fputs("\nSolved for each combination of phases, weighted by how long they coincide.\n"
          "If each program always behaved as it does on average:\n",
          out);
    for (uint32_t k = 0; k < c->n; k++) {
        const struct report_corun_row *r = &c->rows[k];
        fputs("  ", out);
        report_plain(out, r->program);
        fprintf(out, " (%u phase%s", r->found_phases, r->found_phases == 1 ? "" : "s");
        if (r->phases == 1 && r->found_phases > 1)
            fprintf(out, ", not used: %s", why_mean(r));
        else if (r->phases < r->found_phases)
            fprintf(out, ", small ones joined: %u", r->phases);
        fputs("): slowdown ", out);
        plain_number(out, r->mean_slowdown, 0);
        fputs(", miss ratio ", out);
        percent(out, r->mean_miss_ratio, 0);
        putc('\n', out);
    }
}

static void text(FILE *out, const struct report_corun *c, const struct report_style *style)
{
    char size[SIZE_TEXT];
    int unknown = 0;
    fprintf(out, "%u program%s in a shared cache of %s (%s)\n", c->n, c->n == 1 ? "" : "s",
            size_format(c->size_bytes, size), c->machine);
    report_bases_text(out, c->bases, c->profiles);
    putc('\n', out);
    fprintf(out, "%-13s %9s %9s %8s %8s %8s %8s%s\n", "", "miss", "", "CPI", "", "slow-", "cache",
            c->cpi_error > 0 ? "   if CPIs" : "");
    fprintf(out, "%-13s %9s %9s %8s %8s %8s %8s%s\n", "program", "alone", "shared", "alone", "shared", "down",
            "share", c->cpi_error > 0 ? "  are wrong" : "");
    for (uint32_t k = 0; k < c->n; k++) {
        const struct report_corun_row *r = &c->rows[k];
        char name[14];
        snprintf(name, sizeof name, "%s", r->program);
        report_plain(out, name);
        fprintf(out, "%*s", (int)(13 - strlen(name)), "");
        percent(out, r->solo_miss_ratio, 10);
        percent(out, r->shared_miss_ratio, 10);
        plain_number(out, r->solo_cpi, 9);
        plain_number(out, r->shared_cpi, 9);
        if (style->color && r->slowdown > 1.1)
            fputs("\033[1;31m", out);
        plain_number(out, r->slowdown, 9);
        if (style->color && r->slowdown > 1.1)
            fputs("\033[0m", out);
        fprintf(out, "%9s",
                isnan(r->share_bytes) || r->share_bytes < 1 ? "?"
                                                            : size_format((uint64_t)r->share_bytes, size));
        if (c->cpi_error > 0)
            fprintf(out, "  +-%6.2f%%", 100 * r->wrong_cpi_change);
        putc('\n', out);
        unknown |= isnan(r->shared_miss_ratio);
    }
    for (uint32_t k = 0; k < c->n && unknown; k++) {
        const struct report_corun_row *r = &c->rows[k];
        fprintf(out, "%s", k ? "" : "\n?: not enough samples at its share. Bounds:\n");
        fputs("  ", out);
        report_plain(out, r->program);
        fprintf(out, ": miss ratio %.3f%% to %.3f%%, CPI %.3f to %.3f\n", 100 * r->shared_low,
                100 * r->shared_high, r->cpi_low, r->cpi_high);
    }
    phases_text(out, c);
    if (!isnan(c->utilisation))
        fprintf(out, "\nMemory bandwidth: %.0f%% used; each miss waits %.1f cycles for it.\n",
                100 * c->utilisation, c->wait_cycles);
    if (!c->converged)
        fprintf(out,
                "\nNot converged: relative residual %.2g after %u iterations. The results are not valid.\n",
                c->residual, c->iterations);
}

void report_corun(FILE *out, const struct report_corun *corun, enum report_format format,
                  const struct report_style *style)
{
    if (format == REPORT_CSV)
        csv(out, corun);
    else if (format == REPORT_JSON)
        json(out, corun);
    else
        text(out, corun, style);
}
