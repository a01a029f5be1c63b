/* SPDX-License-Identifier: Apache-2.0 */
/* base.c - assumptions about programs, and origin of CPI models. */
#include "report/base.h"

#include <math.h>
#include <string.h>

#include "report/report.h"

static int same(const struct report_base *a, const struct report_base *b)
{
    return a->cpi_base == b->cpi_base && a->overlap == b->overlap && strcmp(a->why, b->why) == 0;
}

void report_bases_text(FILE *out, const struct report_base *bases, uint32_t n)
{
    uint32_t alike = 1;
    while (alike < n && same(&bases[0], &bases[alike]))
        alike++;
    uint32_t models = alike == n ? 1 : n;
    for (uint32_t i = 0; i < models; i++) {
        fputs("CPI model", out);
        if (models > 1 || n == 1) {
            fputs(" of ", out);
            report_plain(out, bases[i].program);
        }
        fprintf(out, ": base %.3f, overlap of misses %.2f\n  (%s)\n", bases[i].cpi_base, bases[i].overlap,
                bases[i].why);
    }
    for (uint32_t i = 0; i < n; i++)
        if (bases[i].threads > 1) {
            report_plain(out, bases[i].program);
            fprintf(out,
                    ": %.*f threads work at the same time, each with private caches of its own; CPI is that "
                    "of each\n",
                    fabs(bases[i].threads - round(bases[i].threads)) < 0.05 ? 0 : 1, bases[i].threads);
        }
}

void report_base_json(FILE *out, const struct report_base *base)
{
    report_json_member_number(out, ", ", "cpi_base", base->cpi_base);
    report_json_member_number(out, ", ", "overlap", base->overlap);
    fprintf(out, ", \"base_from\": \"%s\"", base->from);
    report_json_member_string(out, ", ", "base_why", base->why);
    report_json_member_number(out, ", ", "threads", base->threads);
}

void report_base_csv(FILE *out, const struct report_base *base)
{
    report_csv_next_number(out, base->cpi_base);
    report_csv_next_number(out, base->overlap);
    fprintf(out, ",%s", base->from);
}
