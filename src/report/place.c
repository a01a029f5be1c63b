/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - assignments of programs to caches: csv, json, text. */
#include "report/place.h"

#include <inttypes.h>
#include <math.h>

#include "base/sizes.h"

static double goal_of(const struct report_place *p, const struct assignment_result *r)
{
    return p->problem->goal == ASSIGNMENT_TOTAL ? r->total : r->worst;
}

/* Whether programs of the same profiles are together; which of several copies does not matter. */
static int is_same(const struct report_place *p)
{
    int together[ASSIGNMENT_PROGRAMS][ASSIGNMENT_PROGRAMS] = {{0}};
    for (uint32_t i = 0; i < p->problem->programs; i++)
        for (uint32_t k = 0; k < i; k++) {
            uint32_t a = i % p->profiles, b = k % p->profiles;
            int *count = a < b ? &together[a][b] : &together[b][a];
            *count += p->result->cache[i] == p->result->cache[k];
            *count -= p->mean->cache[i] == p->mean->cache[k];
        }
    for (uint32_t a = 0; a < p->profiles; a++)
        for (uint32_t b = a; b < p->profiles; b++)
            if (together[a][b] != 0)
                return 0;
    return 1;
}

static void csv(FILE *out, const struct report_place *p)
{
    fputs("cache,size_bytes,program,slowdown,cpi_base,overlap,base_from,threads\n", out);
    for (uint32_t m = 0; m < p->problem->ncaches; m++)
        for (uint32_t i = 0; i < p->problem->programs; i++) {
            if (p->result->cache[i] != m)
                continue;
            fprintf(out, "%u,%" PRIu64 ",", m, p->problem->caches[m].size_bytes);
            report_csv_string(out, p->bases[i].program);
            report_csv_next_number(out, p->result->slowdown[i]);
            report_base_csv(out, &p->bases[i]);
            report_csv_next_number(out, p->bases[i].threads);
            putc('\n', out);
        }
}

static void json(FILE *out, const struct report_place *p)
{
    fprintf(out, "{\n  \"goal\": \"%s\",\n  \"exact\": %s",
            p->problem->goal == ASSIGNMENT_TOTAL ? "total" : "worst", p->result->exact ? "true" : "false");
    report_json_member_number(out, ",\n  ", "total_slowdown", p->result->total);
    report_json_member_number(out, ",\n  ", "worst_slowdown", p->result->worst);
    report_json_member_number(out, ",\n  ", "bound", p->result->bound);
    report_json_member_number(out, ",\n  ", "random_mean", p->result->random_mean);
    report_json_member_number(out, ",\n  ", "spread", p->result->spread);
    report_json_member_number(out, ",\n  ", "total_slowdown_without_phases", p->mean ? p->mean->total : NAN);
    fputs(",\n  \"programs\": [", out);
    for (uint32_t i = 0; i < p->problem->programs; i++) {
        report_json_member_string(out, i ? ",\n    {" : "\n    {", "program", p->bases[i].program);
        fprintf(out, ", \"cache\": %u", p->result->cache[i]);
        report_json_member_number(out, ", ", "slowdown", p->result->slowdown[i]);
        report_base_json(out, &p->bases[i]);
        putc('}', out);
    }
    fputs("\n  ]\n}\n", out);
}

static void text(FILE *out, const struct report_place *p)
{
    const struct assignment_result *r = p->result;
    const char *goal = p->problem->goal == ASSIGNMENT_TOTAL ? "total" : "worst";
    char size[SIZE_TEXT];
    report_bases_text(out, p->bases, p->profiles);
    putc('\n', out);
    for (uint32_t m = 0; m < p->problem->ncaches; m++) {
        fprintf(out, "cache %u, %s, %u cores\n", m, size_format(p->problem->caches[m].size_bytes, size),
                p->problem->caches[m].cores);
        for (uint32_t i = 0; i < p->problem->programs; i++)
            if (r->cache[i] == m) {
                fprintf(out, "  %7.3f  ", r->slowdown[i]);
                report_plain(out, p->bases[i].program);
                putc('\n', out);
            }
    }
    fprintf(out, "\nSlowdown: total %.3f, worst %.3f; %s\n", r->total, r->worst,
            r->exact ? "optimal" : "found by search");
    if (!r->exact)
        fprintf(
            out,
            "Lower bound of the %s slowdown: %.3f; this assignment is at most %.2f%% above the optimum.\n",
            goal, r->bound, 100 * (goal_of(p, r) / r->bound - 1));
    fprintf(out,
            "For comparison, the %s slowdown with round-robin assignment, as by a scheduler: %.3f;\n"
            "mean of random assignments: %.3f.\n",
            goal, r->spread, r->random_mean);
    if (p->mean)
        fprintf(out,
                "Solved for each combination of phases. If each program always behaved as it\n"
                "does on average, the %s slowdown would be %.3f; the assignment would be %s.\n",
                goal, goal_of(p, p->mean), is_same(p) ? "the same" : "another one");
}

void report_place(FILE *out, const struct report_place *place, enum report_format format)
{
    if (format == REPORT_CSV)
        csv(out, place);
    else if (format == REPORT_JSON)
        json(out, place);
    else
        text(out, place);
}
