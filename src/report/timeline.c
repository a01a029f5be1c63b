/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline.h"

#include <inttypes.h>
#include <math.h>

#include "base/sizes.h"

/* With a smaller share of the CPU time in windows, that is said. */
#define COVERED_LEAST 0.5
/* A phase with that share of the CPU time, and that many times less of the references, is reported. */
#define SLOW_SHARE 0.1
#define SLOW_FACTOR 4
#define SHOWN_PHASES 20u /* in text, those with most references */

static void put_ns(FILE *out, double ns, const char *unknown)
{
    if (isnan(ns))
        fputs(unknown, out);
    else
        fprintf(out, "%.0f", ns);
}

static void put_csv(FILE *out, const struct analysis_timeline *t)
{
    fputs("window,start_refs,refs,start_ns,phase,size_bytes,miss_ratio,process,tid,exact,end_ns,bursts,cpu_"
          "ns\n",
          out);
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->nsizes; k++) {
            const struct analysis_time_window *w = &t->windows[i];
            fprintf(out, "%" PRIu64 ",%.0f,%.0f,%" PRIu64 ",", w->id, w->start_refs, w->refs, w->start_ns);
            if (w->phase != 0)
                fprintf(out, "%" PRIu32, w->phase);
            fprintf(out, ",%.0f,", t->sizes[k]);
            report_csv_number(out, t->miss_ratio[i * t->nsizes + k]);
            fprintf(out, ",%" PRIu64 ",%" PRIu32 ",%d,%" PRIu64 ",%zu,", w->process, w->tid, w->exact,
                    w->end_ns, w->bursts);
            put_ns(out, w->cpu_ns, "");
            putc('\n', out);
        }
}

static void put_ratios(FILE *out, const double *ratios, size_t n)
{
    fputs("\"miss_ratio\": [", out);
    for (size_t k = 0; k < n; k++) {
        fputs(k ? ", " : "", out);
        report_json_number(out, ratios[k]);
    }
    putc(']', out);
}

static void put_json_head(FILE *out, const struct analysis_timeline *t)
{
    report_json_member_string(out, "{\n  ", "profile", t->profile);
    fprintf(out, ",\n  \"complete\": %s", t->incomplete ? "false" : "true");
    if (t->separate)
        fputs(",\n  \"threads\": \"separate\"", out);
    report_json_member_number(out, ",\n  ", "cpu_time_share", t->covered);
    fprintf(out, ",\n  \"line_bytes\": %u,\n  \"bursts\": %zu,\n  \"exact_windows\": %zu,\n  \"sizes\": [",
            t->line_bytes, t->bursts, t->exact);
    for (size_t k = 0; k < t->nsizes; k++)
        fprintf(out, "%s%.0f", k ? ", " : "", t->sizes[k]);
    fputs("],\n", out);
}

/* --- variation within phases --- */

static int is_transition(const struct variation *v)
{
    return v->first != v->others;
}

static void put_variations(FILE *out, const struct analysis_timeline *t)
{
    int any = 0;
    for (size_t i = 0; i < t->nphases; i++) {
        const struct variation *v = &t->phases[i].variation;
        char size[SIZE_TEXT];
        if (t->phases[i].phase == 0 || (!is_transition(v) && v->instance <= 0 && v->period == 0))
            continue;
        fprintf(out, "%sWithin phase %" PRIu32 ", at %s:", any ? "" : "\n", t->phases[i].phase,
                size_format((uint64_t)t->sizes[t->phases[i].variation_size], size));
        any = 1;
        const char *and = "";
        if (is_transition(v)) {
            fprintf(out, " the first windows after it was entered miss in %.3f%%, the others in %.3f%%",
                    100 * v->first, 100 * v->others);
            and = ";";
        }
        if (v->instance > 0) {
            fprintf(out, "%s it misses differently each time it is entered (standard deviation %.0f%%)", and,
                    100 * v->instance);
            and = ";";
        }
        if (v->period > 0)
            fprintf(out, "%s the miss ratio repeats itself every %zu windows", and, v->period);
        fputs(".\n", out);
    }
}

static void put_csv_variation(FILE *out, const struct variation *v)
{
    const struct {
        int is;
        const char *name;
    } kinds[] = {
        {is_transition(v), "transition"}, {v->instance > 0, "instance"}, {v->period > 0, "periodic"}};
    for (size_t i = 0, n = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].is)
            fprintf(out, "%s%s", n++ > 0 ? "+" : "", kinds[i].name);
}

static void put_json_variation(FILE *out, const struct analysis_timeline *t, const struct analysis_phase *p)
{
    const struct variation *v = &p->variation;
    if (!is_transition(v) && v->instance <= 0 && v->period == 0)
        return;
    fprintf(out, ", \"variation\": {\"size_bytes\": %.0f", t->sizes[p->variation_size]);
    if (is_transition(v)) {
        report_json_member_number(out, ", ", "first_windows_miss_ratio", v->first);
        report_json_member_number(out, ", ", "other_windows_miss_ratio", v->others);
    }
    if (v->instance > 0)
        report_json_member_number(out, ", ", "instance_deviation", v->instance);
    if (v->period > 0)
        fprintf(out, ", \"period_windows\": %zu", v->period);
    putc('}', out);
}

static void put_json_phases(FILE *out, const struct analysis_timeline *t)
{
    fputs("  \"phases\": [", out);
    for (size_t i = 0; i < t->nphases; i++) {
        const struct analysis_phase *p = &t->phases[i];
        fprintf(out,
                "%s\n    {\"phase\": %" PRIu32 ", \"windows\": %zu, \"refs\": %.0f, \"bursts\": %zu, "
                "\"cpu_ns\": ",
                i ? "," : "", p->phase, p->windows, p->refs, p->bursts);
        put_ns(out, p->cpu_ns, "null");
        fputs(", ", out);
        put_ratios(out, t->of_phase + i * t->nsizes, t->nsizes);
        put_json_variation(out, t, p);
        putc('}', out);
    }
    fputs("\n  ]", out);
}

static void put_json(FILE *out, const struct analysis_timeline *t)
{
    put_json_head(out, t);
    fputs("  \"windows\": [", out);
    for (size_t i = 0; i < t->n; i++) {
        const struct analysis_time_window *w = &t->windows[i];
        fprintf(out,
                "%s\n    {\"window\": %" PRIu64 ", \"process\": %" PRIu64 ", \"tid\": %" PRIu32
                ", \"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
                ", \"start_refs\": %.0f, \"refs\": %.0f, \"phase\": %" PRIu32
                ", \"exact\": %s, \"bursts\": %zu, \"cpu_ns\": ",
                i ? "," : "", w->id, w->process, w->tid, w->start_ns, w->end_ns, w->start_refs, w->refs,
                w->phase, w->exact ? "true" : "false", w->bursts);
        put_ns(out, w->cpu_ns, "null");
        fputs(", ", out);
        put_ratios(out, t->miss_ratio + i * t->nsizes, t->nsizes);
        putc('}', out);
    }
    fputs("\n  ],\n", out);
    put_json_phases(out, t);
    fputs("\n}\n", out);
}

/* Columns of a table: of all sizes, as many as fit. */
static void put_phase_table(FILE *out, const struct analysis_timeline *t, const struct report_style *style)
{
    double all = 0, cpu_ns = 0;
    for (size_t i = 0; i < t->nphases; i++) {
        all += t->phases[i].refs;
        cpu_ns += t->phases[i].cpu_ns;
    }
    int timed = cpu_ns > 0; /* not NaN */
    unsigned before = timed ? 41 : 32;
    size_t fit = style->width > before + 9 ? (style->width - before) / 9 : 1;
    size_t step = t->nsizes > fit ? (t->nsizes + fit - 1) / fit : 1;
    fprintf(out, "%6s %8s %s%8s %7s", "phase", "refs", timed ? "CPU time " : "", "windows", "bursts");
    for (size_t k = 0; k < t->nsizes; k += step) {
        char text[SIZE_TEXT];
        fprintf(out, " %8s", size_format((uint64_t)t->sizes[k], text));
    }
    putc('\n', out);
    double seen = 0;
    unsigned shown = 0;
    for (size_t i = 0; i < t->nphases; i++) {
        const struct analysis_phase *p = &t->phases[i];
        size_t larger = 0;
        for (size_t k = 0; k < t->nphases; k++)
            larger += t->phases[k].refs > p->refs || (t->phases[k].refs == p->refs && k < i);
        if (larger >= SHOWN_PHASES)
            continue;
        shown++;
        seen += p->refs;
        if (p->phase != 0)
            fprintf(out, "%6" PRIu32, p->phase);
        else
            fprintf(out, "%6s", "none");
        fprintf(out, " %7.2f%%", all > 0 ? 100 * p->refs / all : 0);
        if (timed)
            fprintf(out, " %7.2f%%", 100 * p->cpu_ns / cpu_ns);
        fprintf(out, " %8zu %7zu", p->windows, p->bursts);
        for (size_t k = 0; k < t->nsizes; k += step) {
            double ratio = t->of_phase[i * t->nsizes + k];
            report_percent(out, " ", 8, 3, ratio, "");
        }
        putc('\n', out);
    }
    if (shown < t->nphases)
        fprintf(out, "%zu more with %.2f%% of the references\n", t->nphases - shown,
                all > 0 ? 100 - 100 * seen / all : 0);
}

static int is_without_burst(const struct analysis_timeline *t, size_t phase)
{
    return t->nsizes > 0 && t->phases[phase].bursts == 0 && isnan(t->of_phase[phase * t->nsizes]);
}

/* Phases of which nothing is known, and what a dash in the table of the others means. */
static void put_unknown(FILE *out, const struct analysis_timeline *t)
{
    size_t unknown = 0, k = 0, few = 0;
    for (size_t i = 0; i < t->nphases * t->nsizes; i++)
        few += isnan(t->of_phase[i]) && t->phases[i / t->nsizes].bursts > 0;
    if (few > 0)
        fputs("\n-: not enough samples\n", out);
    for (size_t i = 0; i < t->nphases; i++)
        unknown += is_without_burst(t, i) != 0;
    if (unknown == 0)
        return;
    fputs(unknown > 1 ? "\nPhases " : "\nPhase ", out);
    for (size_t i = 0; i < t->nphases; i++) {
        if (!is_without_burst(t, i))
            continue;
        fputs(k == 0 ? "" : k + 1 < unknown ? ", " : " and ", out);
        k++;
        if (t->phases[i].phase != 0)
            fprintf(out, "%" PRIu32, t->phases[i].phase);
        else
            fputs("none", out);
    }
    fprintf(out, " had no burst: %s miss ratios are not known.\n", unknown > 1 ? "their" : "its");
}

/* What is in no window. */
static void put_missing(FILE *out, const struct analysis_timeline *t)
{
    if (t->incomplete)
        fputs("\nNote: the recording is not complete: it is still running, or was killed.\n", out);
    if (t->covered < COVERED_LEAST)
        fprintf(
            out,
            "\nNote: windows contain %.0f%% of the CPU time: the other threads were too short to be seen.\n"
            "A larger --allowance of record, or --mode full, sees more.\n",
            100 * t->covered);
}

static void put_origin(FILE *out, const struct analysis_timeline *t)
{
    fprintf(out, "%zu window%s of %u-byte lines, %s", t->n, t->n == 1 ? "" : "s", t->line_bytes,
            t->separate ? "a cache for each thread, " : "");
    if (t->exact == t->n) {
        fputs("all exact\n\n", out);
        return;
    }
    if (t->exact > 0)
        fprintf(out, "%zu of them exact, the others ", t->exact);
    fprintf(out, "from %zu burst%s\n\n", t->bursts, t->bursts == 1 ? "" : "s");
}

void report_slow_phase(FILE *out, const struct analysis_timeline *t)
{
    const struct analysis_phase *slow = NULL;
    double refs = 0, cpu_ns = 0;
    for (size_t i = 0; i < t->nphases; i++) {
        refs += t->phases[i].refs;
        cpu_ns += t->phases[i].cpu_ns;
    }
    for (size_t i = 0; i < t->nphases && refs > 0 && cpu_ns > 0; i++) {
        const struct analysis_phase *p = &t->phases[i];
        double share = p->cpu_ns / cpu_ns;
        if (p->phase != 0 && share >= SLOW_SHARE && share >= SLOW_FACTOR * p->refs / refs &&
            (!slow || p->cpu_ns > slow->cpu_ns))
            slow = p;
    }
    if (slow)
        fprintf(out,
                "Phase %" PRIu32
                ", with %.1f%% of the references, has %.0f%% of the CPU time: see timeline --axis time\n",
                slow->phase, 100 * slow->refs / refs, 100 * slow->cpu_ns / cpu_ns);
}

void report_timeline(FILE *out, const struct analysis_timeline *t, const struct analysis_grid *grid,
                     enum report_format format, const struct report_style *style)
{
    if (format == REPORT_CSV) {
        put_csv(out, t);
    } else if (format == REPORT_JSON) {
        put_json(out, t);
    } else {
        fprintf(out,
                "Miss ratio by cache size and %stime: ", grid->axis == ANALYSIS_AXIS_TIME ? "elapsed " : "");
        put_origin(out, t);
        report_heatmap(out, t, grid, style);
        putc('\n', out);
        put_phase_table(out, t, style);
        put_unknown(out, t);
        put_missing(out, t);
    }
}

void report_phases(FILE *out, const struct analysis_timeline *t, enum report_format format,
                   const struct report_style *style)
{
    if (format == REPORT_CSV) {
        fputs("phase,windows,refs,size_bytes,miss_ratio,bursts,variation,cpu_ns\n", out);
        for (size_t i = 0; i < t->nphases; i++)
            for (size_t k = 0; k < t->nsizes; k++) {
                const struct analysis_phase *p = &t->phases[i];
                if (p->phase != 0)
                    fprintf(out, "%" PRIu32, p->phase);
                fprintf(out, ",%zu,%.0f,%.0f,", p->windows, p->refs, t->sizes[k]);
                report_csv_number(out, t->of_phase[i * t->nsizes + k]);
                fprintf(out, ",%zu,", p->bursts);
                if (k == p->variation_size)
                    put_csv_variation(out, &p->variation);
                putc(',', out);
                put_ns(out, p->cpu_ns, "");
                putc('\n', out);
            }
    } else if (format == REPORT_JSON) {
        put_json_head(out, t);
        put_json_phases(out, t);
        fputs("\n}\n", out);
    } else {
        fputs("Miss ratio by phase and cache size: ", out);
        put_origin(out, t);
        put_phase_table(out, t, style);
        put_unknown(out, t);
        put_missing(out, t);
        put_variations(out, t);
    }
}
