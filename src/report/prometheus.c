/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export.h"

#include <math.h>
#include <string.h>

/* The command, valid UTF-8 without control characters, as a label. */
static void put_command(FILE *out, const char *value)
{
    fputs("command=\"", out);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            putc('\\', out);
        putc(*value, out);
    }
    putc('"', out);
}

static void put_help(FILE *out, const char *name, const char *help)
{
    fprintf(out, "# HELP cachegram_%s %s\n# TYPE cachegram_%s gauge\n", name, help, name);
}

static void put_single(FILE *out, const char *command, const char *name, const char *help, double value)
{
    if (isnan(value))
        return;
    put_help(out, name, help);
    fprintf(out, "cachegram_%s{", name);
    put_command(out, command);
    fputs("} ", out);
    report_csv_number(out, value);
    putc('\n', out);
}

void report_prometheus(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } ratios[] = {
        {"miss_ratio", "Miss ratio of a fully associative LRU cache.",
         offsetof(struct curve_point, miss_ratio)},
        {"miss_ratio_low", "Lower end of its 95% interval.", offsetof(struct curve_point, low)},
        {"miss_ratio_high", "Upper end of its 95% interval.", offsetof(struct curve_point, high)},
    };
    char command[sizeof s->command];
    memcpy(command, s->command, sizeof command);
    report_make_plain(command);
    put_single(out, command, "references", "Recorded references.", s->references);
    put_single(out, command, "cpu_seconds", "CPU time of the program, profiling included.", s->cpu_seconds);
    put_single(out, command, "wall_seconds", "Elapsed time.", s->wall_seconds);
    put_single(out, command, "overhead_ratio", "CPU time added by profiling, relative to the program's.",
               s->overhead_percent / 100);
    put_single(out, command, "bursts", "Samples of the run.", (double)s->bursts);
    put_single(out, command, "exit_status", "Exit status of the program.", s->exit_status);
    for (size_t k = 0; k < sizeof ratios / sizeof ratios[0] && curve->n > 0; k++) {
        put_help(out, ratios[k].name, ratios[k].help);
        for (size_t i = 0; i < curve->n; i++) {
            double value = *(const double *)((const char *)&curve->points[i] + ratios[k].offset);
            if (isnan(value))
                continue;
            fprintf(out, "cachegram_%s{", ratios[k].name);
            put_command(out, command);
            fprintf(out, ",size_bytes=\"%.0f\"} ", curve->points[i].size_bytes);
            report_csv_number(out, value);
            putc('\n', out);
        }
    }
}
