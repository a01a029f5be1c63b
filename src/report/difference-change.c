/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference-change.c - what the tables of `cachegram diff` have in common: the two profiles, and one change,
 * of a miss ratio or of misses, in each format.
 */
#include "report/difference-internal.h"

#include <math.h>

void report_change_csv(FILE *out, const struct analysis_change *c)
{
    report_csv_number(out, c->before);
    report_csv_next_number(out, c->after);
    report_csv_next_number(out, c->delta);
    fprintf(out, ",%d,", c->significant);
    report_csv_number(out, c->low);
    report_csv_next_number(out, c->high);
    putc('\n', out);
}

void report_change_json(FILE *out, const struct analysis_change *c)
{
    const char *const names[] = {"before", "after", "delta", "delta_low", "delta_high"};
    const double values[] = {c->before, c->after, c->delta, c->low, c->high};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        report_json_member_number(out, "", names[i], values[i]);
        fputs(", ", out);
    }
    fprintf(out, "\"significant\": %s}", c->significant ? "true" : "false");
}

void report_files_json(FILE *out, const char *before, const char *after)
{
    report_json_member_string(out, "{\n  ", "before", before);
    report_json_member_string(out, ",\n  ", "after", after);
    fputs(",\n", out);
}

const char *report_verdict(const struct analysis_change *c)
{
    if (!c->significant)
        return "";
    return c->low > 0 ? "  more misses" : "  fewer misses";
}

void report_files_text(FILE *out, const char *before, const char *after)
{
    fputs("before: ", out);
    report_plain(out, before);
    fputs("\nafter:  ", out);
    report_plain(out, after);
    fputs("\n\n", out);
}

const char *report_for_each(int separate)
{
    return separate ? ", one for each thread" : "";
}

const char *report_threads_option(int separate)
{
    return separate ? " --threads separate" : "";
}

const char *report_threads_json(int separate)
{
    return separate ? "  \"threads\": \"separate\",\n" : "";
}
