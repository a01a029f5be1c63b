/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference-phases.c - phases before and after. Two phases of the same code form a pair, whose miss ratios
 * are compared; a phase without a counterpart stands alone.
 */
#include "report/difference-internal.h"

#include <inttypes.h>
#include <math.h>

#include "base/sizes.h"

static const char *const sides[] = {"before", "after"};

static void put_phase_numbers(FILE *out, const struct analysis_phase_row *row, size_t npoints)
{
    fprintf(out, "%6" PRIu32 "  %6.2f%%  %7zu", row->phase, 100 * row->refs_share, row->windows);
    for (size_t k = 0; k < npoints; k++)
        report_percent(out, "  ", 9, 3, row->points[k].miss_ratio, "");
    putc('\n', out);
}

/* The two phases, and what changed. */
static void put_phase_pair(FILE *out, const struct analysis_phase_pair *pair, size_t npoints)
{
    fprintf(out, "%6s  ", sides[0]);
    put_phase_numbers(out, pair->before, npoints);
    fprintf(out, "%6s  ", sides[1]);
    put_phase_numbers(out, pair->after, npoints);
    fprintf(out, "%6s  %5.0f%%  %+7.2f  %7s", "change", 100 * pair->alike,
            100 * (pair->after->refs_share - pair->before->refs_share), "");
    for (size_t k = 0; k < npoints; k++)
        if (isnan(pair->changes[k].delta))
            fprintf(out, "  %8s%c", "-", pair->changes[k].significant ? '*' : ' ');
        else
            fprintf(out, "  %+8.3f%c", 100 * pair->changes[k].delta,
                    pair->changes[k].significant ? '*' : ' ');
    fputs("\n\n", out);
}

static void put_phase_head(FILE *out, const struct report_phases *d)
{
    char text[SIZE_TEXT];
    fprintf(out, "%6s  %6s  %7s  %7s", "", "phase", "refs", "windows");
    for (size_t k = 0; k < d->npoints; k++)
        fprintf(out, "  %9s", size_format((uint64_t)d->points[k].size_bytes, text));
    putc('\n', out);
}

/* Those without a counterpart. Returns how many of them have no code. */
static size_t put_single_phases(FILE *out, const struct report_phases *d)
{
    size_t found = 0, unknown = 0;
    for (size_t i = 0; i < d->difference->npairs; i++) {
        const struct analysis_phase_pair *pair = &d->difference->pairs[i];
        const struct analysis_phase_row *row = pair->before ? pair->before : pair->after;
        if (pair->before && pair->after)
            continue;
        if (found++ == 0)
            fputs("Without counterpart:\n", out);
        fprintf(out, "%6s  ", sides[!pair->before]);
        put_phase_numbers(out, row, d->npoints);
        unknown += !row->code_known;
    }
    return unknown;
}

static void put_phases_text(FILE *out, const struct report_phases *d)
{
    fprintf(out, "Phases before and after, paired by their code, and their miss ratios by cache size%s.\n",
            report_for_each(d->separate));
    report_files_text(out, d->before, d->after);
    fputs("Line 'change': how much of the code is the same, and changes in percentage points; *: "
          "significant.\n\n",
          out);
    put_phase_head(out, d);
    for (size_t i = 0; i < d->difference->npairs; i++)
        if (d->difference->pairs[i].before && d->difference->pairs[i].after)
            put_phase_pair(out, &d->difference->pairs[i], d->npoints);
    size_t unknown = put_single_phases(out, d);
    for (size_t side = 0; side < 2; side++)
        if (d->difference->rows[side].left_out)
            fprintf(out, "%6s  and %zu more with fewer references\n", sides[side],
                    d->difference->rows[side].left_out);
    if (unknown)
        fprintf(
            out,
            "Of %zu, the code is not known: no burst began in them. Where everything was recorded, code is "
            "counted for the whole run, not by phase.\n",
            unknown);
}

/* Of a phase without counterpart, the fields of the other side are empty. */
static void put_phase_csv(FILE *out, const struct analysis_phase_pair *pair, size_t k, double size_bytes)
{
    const struct analysis_phase_row *const rows[] = {pair->before, pair->after};
    for (size_t side = 0; side < 2; side++) {
        if (rows[side])
            fprintf(out, "%" PRIu32, rows[side]->phase);
        putc(',', out);
    }
    report_csv_number(out, pair->alike);
    for (size_t side = 0; side < 2; side++)
        report_csv_next_number(out, rows[side] ? rows[side]->refs_share : NAN);
    fprintf(out, ",%.0f,", size_bytes);
    struct analysis_change change = {NAN, NAN, NAN, NAN, NAN, 0};
    if (pair->changes)
        change = pair->changes[k];
    else
        *(pair->before ? &change.before : &change.after) =
            (pair->before ? pair->before : pair->after)->points[k].miss_ratio;
    report_change_csv(out, &change);
}

static void put_phases_csv(FILE *out, const struct report_phases *d)
{
    fputs("phase_before,phase_after,alike,refs_share_before,refs_share_after,size_bytes,before,after,delta,"
          "significant,delta_low,delta_high\n",
          out);
    for (size_t i = 0; i < d->difference->npairs; i++)
        for (size_t k = 0; k < d->npoints; k++)
            put_phase_csv(out, &d->difference->pairs[i], k, d->points[k].size_bytes);
}

static void put_phase_json(FILE *out, const struct analysis_phase_row *row, size_t npoints)
{
    fprintf(out, "{\"phase\": %" PRIu32 ", \"windows\": %zu, \"bursts\": %zu, \"code_known\": %s", row->phase,
            row->windows, row->bursts, row->code_known ? "true" : "false");
    report_json_member_number(out, ", ", "refs_share", row->refs_share);
    fputs(",\n", out);
    report_points_json(out, row->points, npoints);
    putc('}', out);
}

static void put_pair_json(FILE *out, const struct analysis_phase_pair *pair, const struct report_phases *d)
{
    fprintf(out, "{\"phase_before\": %" PRIu32 ", \"phase_after\": %" PRIu32, pair->before->phase,
            pair->after->phase);
    report_json_member_number(out, ", ", "alike", pair->alike);
    fputs(", \"points\": [", out);
    for (size_t k = 0; k < d->npoints; k++) {
        fprintf(out, "%s{\"size_bytes\": %.0f, ", k ? ",\n" : "\n", d->points[k].size_bytes);
        report_change_json(out, &pair->changes[k]);
    }
    fputs("]}", out);
}

static void put_phases_json(FILE *out, const struct report_phases *d)
{
    size_t n = 0;
    report_files_json(out, d->before, d->after);
    fprintf(out, "%s  \"pairs\": [", report_threads_json(d->separate));
    for (size_t i = 0; i < d->difference->npairs; i++)
        if (d->difference->pairs[i].before && d->difference->pairs[i].after) {
            fputs(n++ ? ",\n" : "\n", out);
            put_pair_json(out, &d->difference->pairs[i], d);
        }
    putc(']', out);
    for (size_t side = 0; side < 2; side++) {
        fprintf(out, ",\n  \"phases_%s\": [", sides[side]);
        for (size_t i = 0; i < d->difference->rows[side].n; i++) {
            fputs(i ? ",\n" : "\n", out);
            put_phase_json(out, &d->difference->rows[side].list[i], d->npoints);
        }
        fprintf(out, "],\n  \"left_out_%s\": %zu", sides[side], d->difference->rows[side].left_out);
    }
    fputs("\n}\n", out);
}

void report_phase_difference(FILE *out, const struct report_phases *d, enum report_format format)
{
    if (format == REPORT_TEXT)
        put_phases_text(out, d);
    else if (format == REPORT_CSV)
        put_phases_csv(out, d);
    else
        put_phases_json(out, d);
}

/* The size with the largest significant change of a pair of phases; npoints: there is none. */
static size_t largest_of_phase(const struct analysis_phase_pair *pair, size_t npoints)
{
    size_t found = npoints;
    for (size_t k = 0; k < npoints && pair->changes; k++)
        if (pair->changes[k].significant && !isnan(pair->changes[k].delta) &&
            (found == npoints || fabs(pair->changes[k].delta) > fabs(pair->changes[found].delta)))
            found = k;
    return found;
}

int report_changed_phases(FILE *out, const struct report_difference *d)
{
    const char *threads = report_threads_option(d->curves->before->separate);
    char size[SIZE_TEXT];
    size_t found = 0;
    if (!d->phases) {
        fputs("Not compared by phase: ", out);
        report_plain(out, d->no_phases.text);
        putc('\n', out);
        return 0;
    }
    for (size_t i = 0; i < d->phases->npairs; i++) {
        const struct analysis_phase_pair *pair = &d->phases->pairs[i];
        size_t k = largest_of_phase(pair, d->npoints);
        if (k == d->npoints || found++ >= MOST_CHANGED)
            continue;
        if (found == 1)
            fputs("Phases with significant changes, and the largest of these:\n", out);
        fprintf(out,
                "  phase %" PRIu32 " (%.1f%% of the references) is now %" PRIu32
                " (%.1f%%): %+.3f points at %s\n",
                pair->before->phase, 100 * pair->before->refs_share, pair->after->phase,
                100 * pair->after->refs_share, 100 * pair->changes[k].delta,
                size_format((uint64_t)d->points[k].size_bytes, size));
    }
    if (found > MOST_CHANGED)
        fprintf(out, "and %zu more: --by phase%s\n", found - MOST_CHANGED, threads);
    else if (found == 0)
        fprintf(out, "By phase, no significant change of miss ratios (--by phase%s: all).\n", threads);
    return found > 0;
}
