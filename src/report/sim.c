/* SPDX-License-Identifier: Apache-2.0 */
#include "report/sim.h"

#include <inttypes.h>
#include <math.h>

#include "base/sizes.h"

static const char *const inclusions[] = {"non-inclusive", "inclusive", "exclusive"};

/* Numbers of a row in the order of the columns from `accesses` on; `config` and words come before. */
struct column {
    const char *name;
    double value;
};

#define COLUMNS_FIRST 5u
#define COLUMNS_MORE (2u + SIM_CAUSES + 6u)

static void first_columns(const struct report_sim_row *row, struct column column[COLUMNS_FIRST])
{
    column[0] = (struct column){"accesses", row->accesses};
    column[1] = (struct column){"misses", row->misses};
    column[2] = (struct column){"miss_ratio", row->miss_ratio};
    column[3] = (struct column){"evictions", row->evictions};
    column[4] = (struct column){"writebacks", row->writebacks};
}

static void more_columns(const struct report_sim_row *row, struct column column[COLUMNS_MORE])
{
    size_t n = 0;
    column[n++] = (struct column){"stores", row->stores};
    column[n++] = (struct column){"store_misses", row->store_misses};
    for (unsigned cause = 0; cause < SIM_CAUSES; cause++)
        column[n++] = (struct column){sim_cause_name((enum sim_cause)cause), row->cause[cause]};
    column[n++] = (struct column){"ci_low", row->low};
    column[n++] = (struct column){"ci_high", row->high};
    column[n++] = (struct column){"unknown", row->unknown};
    column[n++] = (struct column){"mu_wood", row->mu};
    column[n++] = (struct column){"miss_ratio_wood", row->wood};
    column[n++] = (struct column){"simulated_share", row->share};
}

/* Causes are called "cold" etc. internally, and "cold_misses" in columns, where "inclusion" is a property. */
static const char *suffix_of(size_t i)
{
    return i >= 2 && i < 2 + SIM_CAUSES ? "_misses" : "";
}

static void csv(FILE *out, const struct report_sim *report)
{
    struct column first[COLUMNS_FIRST], more[COLUMNS_MORE];
    static const struct report_sim_row none;
    more_columns(&none, more);
    fputs("level,core,size_bytes,ways,policy,accesses,misses,miss_ratio,evictions,writebacks,config,"
          "inclusion,shared",
          out);
    for (size_t i = 0; i < COLUMNS_MORE; i++)
        fprintf(out, ",%s%s", more[i].name, suffix_of(i));
    putc('\n', out);
    for (size_t r = 0; r < report->n; r++) {
        const struct report_sim_row *row = &report->rows[r];
        fprintf(out, "L%u,", row->level + 1);
        if (row->core >= 0)
            fprintf(out, "%d", row->core);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%s", row->cache.size_bytes, row->ways,
                sim_policy_name(row->cache.policy));
        first_columns(row, first);
        for (size_t i = 0; i < COLUMNS_FIRST; i++)
            report_csv_next_number(out, first[i].value);
        fprintf(out, ",%u,%s,%d", row->config, inclusions[row->cache.inclusion], row->cache.shared != 0);
        more_columns(row, more);
        for (size_t i = 0; i < COLUMNS_MORE; i++)
            report_csv_next_number(out, more[i].value);
        putc('\n', out);
    }
}

static void json_columns(FILE *out, const struct column *column, size_t n, int more)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(column[i].value))
            continue;
        fprintf(out, ", \"%s%s\": ", column[i].name, more ? suffix_of(i) : "");
        report_json_number(out, column[i].value);
    }
}

static void json(FILE *out, const struct report_sim *report)
{
    struct column first[COLUMNS_FIRST], more[COLUMNS_MORE];
    fputs("{\n  \"traces\": [", out);
    for (size_t i = 0; i < report->ntraces; i++) {
        if (i)
            fputs(", ", out);
        report_json_string(out, report->traces[i]);
    }
    fprintf(out, "],\n  \"references\": %" PRIu64 ",\n  \"line_bytes\": %u", report->references,
            report->line_bytes);
    report_json_member_string(out, ",\n  ", "sampling", report->sampling ? report->sampling : "none");
    report_json_member_number(out, ",\n  ", "simulated_share", report->n ? report->rows[0].share : NAN);
    fputs(",\n  \"caches\": [", out);
    for (size_t r = 0; r < report->n; r++) {
        const struct report_sim_row *row = &report->rows[r];
        fprintf(out, "%s\n    {\"config\": %u, \"level\": \"L%u\", \"core\": ", r ? "," : "", row->config,
                row->level + 1);
        if (row->core >= 0)
            fprintf(out, "%d", row->core);
        else
            fputs("null", out);
        fprintf(out,
                ", \"size_bytes\": %" PRIu64 ", \"ways\": %" PRIu64
                ", \"policy\": \"%s\", \"inclusion\": \"%s\", \"shared\": %s",
                row->cache.size_bytes, row->ways, sim_policy_name(row->cache.policy),
                inclusions[row->cache.inclusion], row->cache.shared ? "true" : "false");
        first_columns(row, first);
        more_columns(row, more);
        json_columns(out, first, COLUMNS_FIRST, 0);
        json_columns(out, more, COLUMNS_MORE, 1);
        putc('}', out);
    }
    fputs(report->n ? "\n  ]\n}\n" : "]\n}\n", out);
}

/* Width of a table with all columns. */
#define WIDE_TABLE 103u

static void text_count(FILE *out, int width, double value)
{
    if (isnan(value))
        fprintf(out, "%*s", width, "-");
    else
        fprintf(out, "%*.0f", width, value);
}

/* Printed below a row: the causes of its misses, or the uncertainty of the ratio. */
static void text_details(FILE *out, const struct report_sim *report, const struct report_sim_row *row,
                         int wide)
{
    if (!wide && !isnan(row->evictions))
        fprintf(out, "       evictions %.0f, write-backs %.0f\n", row->evictions, row->writebacks);
    if (report->causes && row->misses > 0) {
        fputs("       of the misses:", out);
        for (unsigned cause = 0; cause < SIM_CAUSES; cause++)
            if (row->cause[cause] > 0)
                fprintf(out, " %s %.1f%%", sim_cause_name((enum sim_cause)cause),
                        100 * row->cause[cause] / row->misses);
        putc('\n', out);
    }
    if (!isnan(row->low) && !isnan(row->high))
        fprintf(out, "       miss ratio from %.3f%% to %.3f%%\n", 100 * row->low, 100 * row->high);
    if (!isnan(row->unknown)) {
        fprintf(out, "       %.0f accesses unknown", row->unknown);
        if (!isnan(row->wood))
            fprintf(out, "; with Wood's estimate that a share of %.3f of them misses: %.3f%%", row->mu,
                    100 * row->wood);
        putc('\n', out);
    }
}

/* What part of the trace a hierarchy has simulated; not the same for all, as each has its own sets. */
static void text_simulated(FILE *out, const struct report_sim *report, const struct report_sim_row *row)
{
    if (report->sampling && isnan(row->share))
        fputs("simulated: each burst by itself, with unknown initial cache contents\n", out);
    else if (report->sampling)
        fprintf(out, "simulated: %.3g%% of the %s\n", 100 * row->share,
                report->sampling[0] == 's' ? "sets" : "accesses");
}

static void text(FILE *out, const struct report_sim *report, const struct report_style *style)
{
    char size[SIZE_TEXT];
    int wide = style->width >= WIDE_TABLE;
    fprintf(out, "%" PRIu64 " references of ", report->references);
    for (size_t i = 0; i < report->ntraces; i++) {
        if (i)
            fputs(", ", out);
        report_plain(out, report->traces[i]);
    }
    fprintf(out, ", %u-byte lines\n", report->line_bytes);
    for (size_t r = 0; r < report->n; r++) {
        const struct report_sim_row *row = &report->rows[r];
        if (r == 0 || row->config != row[-1].config) {
            if (report->configs > 1)
                fprintf(out, "\nHierarchy %u\n", row->config);
            text_simulated(out, report, row);
            fprintf(out, "\n%-5s %4s %7s %6s %-8s %14s %13s %10s", "level", "core", "size", "ways", "policy",
                    "accesses", "misses", "miss ratio");
            if (wide)
                fprintf(out, " %13s %13s", "evictions", "write-backs");
            putc('\n', out);
        }
        fprintf(out, "L%-4u ", row->level + 1);
        if (row->core >= 0)
            fprintf(out, "%4d", row->core);
        else
            fprintf(out, "%4s", "all");
        fprintf(out, " %7s ", size_format(row->cache.size_bytes, size));
        if (row->cache.ways)
            fprintf(out, "%6" PRIu64, row->ways);
        else
            fprintf(out, "%6s", "full");
        fprintf(out, " %-8s", sim_policy_name(row->cache.policy));
        text_count(out, 15, row->accesses);
        text_count(out, 14, row->misses);
        report_percent(out, " ", 10, 4, row->miss_ratio, "");
        if (wide) {
            text_count(out, 14, row->evictions);
            text_count(out, 14, row->writebacks);
        }
        putc('\n', out);
        text_details(out, report, row, wide);
    }
}

void report_sim(FILE *out, const struct report_sim *report, enum report_format format,
                const struct report_style *style)
{
    if (format == REPORT_CSV)
        csv(out, report);
    else if (format == REPORT_JSON)
        json(out, report);
    else
        text(out, report, style);
}
