/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c - the summary of a run: what ran, what was recorded, warnings, the cost. */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "profile/names.h"
#include "report/pirate.h"

#define STARTS_SHOWN 0.01 /* share of the CPU time from which on the agent's starts have their own line */
#define END_CODES (sizeof((struct analysis_summary *)0)->end / sizeof(uint64_t))

/* --- text --- */

static uint64_t counter_of(const struct analysis_summary *s, const char *name)
{
    for (size_t i = 0; i < s->ncounters; i++)
        if (strcmp(s->counter[i].name, name) == 0)
            return s->counter[i].value;
    return 0;
}

/* Counters that remain 0 in an undisturbed run, and what they mean otherwise. */
static const struct {
    const char *name, *what, *meaning; /* what: of one */
    double least_share;                /* of all `of` from which on it is reported; 0: always */
    const char *of;
} trouble_counters[] = {
    /* In the part that follows full mode, where bursts are dense at first, some find no free buffer: of perl
     * counting words 3 to 25, beside some 80 that were recorded; without such a part (--allowance 0) none. */
    {"skipped_buffer", "burst",
     " left out, as the recorder had no free buffer: record with a smaller --overhead", 0.5, "bursts"},
    {"skipped_code", "trigger", " ignored, in code that cannot be translated", 0.02, "triggers"},
    {"skipped_busy", "trigger", " ignored, at moments when a burst could not begin safely", 0.05, "triggers"},
    {"skipped_gs", "trigger", " ignored, in threads that use the GS register themselves", 0, "triggers"},
    {"skipped_handlers", "trigger",
     " ignored, as the program had replaced handlers by system calls that bypassed libc", 0.02, "triggers"},
    {"flushes", "time",
     " that all translated code was discarded, as code was mapped or unmapped or the code cache was full", 0,
     "triggers"},
    {"lost_buffers", "buffer", " of references lost", 0, "triggers"},
    {"bad_records", "invalid record", ", ignored", 0, "triggers"},
};

static void put_troubles(FILE *out, const struct analysis_summary *s)
{
    for (size_t i = 0; i < sizeof trouble_counters / sizeof trouble_counters[0]; i++) {
        uint64_t value = counter_of(s, trouble_counters[i].name);
        double share = trouble_counters[i].least_share;
        if (value > 0 &&
            (share <= 0 || (double)value >= share * (double)counter_of(s, trouble_counters[i].of)))
            fprintf(out, "  note        %" PRIu64 " %s%s%s\n", value, trouble_counters[i].what,
                    value == 1 ? "" : "s", trouble_counters[i].meaning);
    }
    if (counter_of(s, "disabled") && !*s->warning) /* a warning says more */
        fputs("  note        profiling was disabled in at least one process\n", out);
}

static void put_warnings(FILE *out, const struct analysis_summary *s, const struct report_style *style)
{
    const char *bold = style->color ? "\033[1;33m" : "", *plain = style->color ? "\033[0m" : "";
    char text[sizeof s->warning];
    memcpy(text, s->warning, sizeof text);
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (!*line)
            continue;
        fprintf(out, "  %swarning%s     ", bold, plain);
        report_plain(out, line);
        putc('\n', out);
    }
    /* A recorder that was not killed stores the elapsed time at the end, also if it ended early: then a
     * warning says why. */
    if (strcmp(s->complete, "yes") != 0 && isnan(s->wall_seconds))
        fprintf(out, "  %swarning%s     the recording is not complete: it is still running, or was killed\n",
                bold, plain);
}

/* Clock `cputime`: it was asked for, or the processor has no AVX2. */
static int has_no_rates(const struct analysis_summary *s)
{
    return strcmp(s->clock, "cputime") == 0;
}

/* How bursts are weighted. */
static void put_clock(FILE *out, const struct analysis_summary *s)
{
    if (has_no_rates(s))
        fputs(
            "  clock       CPU time: the rate of references at each burst is not known, so code that is slow "
            "counts for too much\n",
            out);
    else if (!isnan(s->clock_references))
        fprintf(out, "  clock       counted always: %.0f references%s\n", s->clock_references,
                s->missed_percent > ANALYSIS_MISSED_PERCENT ? "" : " in all");
    else if (*s->clock && !isnan(s->clock_error))
        fprintf(out, "  clock       counted before each burst: rates %s%.0f%%\n",
                report_is_utf8() ? "±" : "+-", 100 * s->clock_error);
}

/*
 * CPU time of the program itself, and what profiling added to it: within the program's processes, and the
 * recorder's. 0 if that is not known.
 */
static int find_added(const struct analysis_summary *s, double *seconds, double *added)
{
    if (isnan(s->overhead_percent) || isnan(s->cpu_seconds))
        return 0;
    *seconds = s->cpu_seconds / (1 + s->overhead_percent / 100);
    *added = s->cpu_seconds - *seconds;
    if (!isnan(s->recorder_cpu_seconds))
        *added += s->recorder_cpu_seconds;
    return 1;
}

static void put_overhead(FILE *out, const struct analysis_summary *s, int with_allowance)
{
    const char *included = with_allowance ? "cold caches after bursts and the allowance included"
                                          : "cold caches after bursts included";
    double seconds, added;
    if (!find_added(s, &seconds, &added))
        return;
    if (seconds < REPORT_PERCENT_SECONDS)
        fprintf(out, "  overhead    %.1f ms of CPU time, %s\n", 1e3 * added, included);
    else
        fprintf(out, "  overhead    %.2f%% of CPU time, %s\n", 100 * added / seconds, included);
    if (!isnan(s->recorder_cpu_seconds))
        fprintf(out, "  recorder    %.1f ms of these\n", 1e3 * s->recorder_cpu_seconds);
}

static void put_ends(FILE *out, const struct analysis_summary *s)
{
    static const char *const words[] = {
        "in the next buffer",
        "at full length",
        "at a system call",
        "at an unknown instruction",
        "at code that may change",
        "at a fault",
        "at a signal",
        "at the thread's end",
        "with a full code cache",
        "at a restartable sequence",
    };
    const char *separator = "";
    fputs("  bursts end  ", out);
    for (size_t code = 0; code < END_CODES; code++) {
        if (!s->end[code])
            continue;
        double share = 100 * (double)s->end[code] / (double)s->bursts;
        fprintf(out, share >= 1 ? "%s%.0f%% %s" : "%s%.1f%% %s", separator, share,
                code < sizeof words / sizeof words[0] ? words[code] : "for another reason");
        separator = ", ";
    }
    putc('\n', out);
}

#define SIZE_RATIO 64     /* bytes of a miss ratio with its interval */
#define SHARED_COLUMNS 32 /* of the longest */

static void put_ratio(const struct curve_point *point, char text[SIZE_RATIO])
{
    int n = isnan(point->miss_ratio) ? snprintf(text, SIZE_RATIO, "not enough samples")
                                     : snprintf(text, SIZE_RATIO, "%7.3f%%", point->miss_ratio * 100);
    if (point->high > point->low)
        snprintf(text + n, (size_t)(SIZE_RATIO - n), "  (%.3f%% to %.3f%%)", point->low * 100,
                 point->high * 100);
}

/* Below the drawing: some sizes, and which of this machine's caches has them. */
static void put_sizes(FILE *out, const struct report_summary *parts)
{
    if (parts->separate)
        fprintf(out, "              %-*s  %s\n", SHARED_COLUMNS, "shared by the threads",
                "one for each thread");
    for (size_t i = 0; i < parts->nsizes; i++) {
        const struct curve_point *point = &parts->sizes[i];
        char text[SIZE_TEXT], level[32] = "";
        for (size_t k = 0; k < parts->nlevels; k++)
            if (parts->levels[k] == point->size_bytes)
                snprintf(level, sizeof level, "L%zu", k + 1);
        fprintf(out, "  %2s  %6s  ", level, size_format((uint64_t)point->size_bytes, text));
        char shared[SIZE_RATIO];
        put_ratio(point, shared);
        if (!parts->separate) {
            fprintf(out, "%s\n", shared);
            continue;
        }
        char own[SIZE_RATIO];
        put_ratio(&parts->separate[i], own);
        fprintf(out, "%-*s  %s\n", SHARED_COLUMNS, shared, own);
    }
}

/* What the agent's start costs in each process. */
static void put_starts(FILE *out, const struct analysis_summary *s)
{
    if (s->start_cpu_seconds > STARTS_SHOWN * s->cpu_seconds)
        fprintf(out, "  starts      %.3f s of CPU time to load the agent into %zu process%s\n",
                s->start_cpu_seconds, s->processes, s->processes == 1 ? "" : "es");
}

/* What the profile lacks. */
static void put_limits(FILE *out, const struct analysis_summary *s)
{
    if (s->few_bursts[0] && s->bursts > 0) {
        fputs("  note        few bursts: ", out);
        report_plain(out, s->few_bursts);
        putc('\n', out);
    }
    if (s->missed_percent > ANALYSIS_MISSED_PERCENT) {
        fprintf(out, "  missed      about %.*f%% of the references: ", s->missed_percent < 10 ? 2 : 0,
                s->missed_percent);
        report_plain(out, s->missed);
        putc('\n', out);
    }
    put_troubles(out, s);
}

static void put_command(FILE *out, const struct analysis_summary *s)
{
    fputs("  command     ", out);
    report_plain(out, *s->command ? s->command : "(unknown)");
    putc('\n', out);
}

/* Mode full in the list of facts; how much was recorded in the report's first lines; report_extent(). */
static const struct {
    const char *mode, *recorded, *limit;
} extents[] = {
    [EXTENT_ALL] = {"full: every reference; the curve is exact", "all, the curve is exact", ""},
    [EXTENT_PROFILED] = {"full, but not of all programs", "not of all programs", " of the profiled programs"},
    [EXTENT_GAPS] = {"full, but references are missing", "some are missing", " (some are missing)"},
    [EXTENT_BEGINNING] = {"full: every reference until the recording ended early",
                          "all until the recording ended early", " until the recording ended early"},
};

const char *report_extent(enum analysis_extent extent)
{
    return extents[extent].limit;
}

/* A loss too small to matter to the curve is shown by put_limits, and is one nevertheless. Of threads that
 * share a cache, the order of references is that of this run (the curve's notes). */
static const char *full_mode_text(const struct analysis_summary *s, const struct analysis_curve *curve)
{
    return s->extent != EXTENT_ALL                       ? extents[s->extent].mode
           : s->missed_percent > ANALYSIS_MISSED_PERCENT ? "full: nearly every reference"
           : curve->busy_threads > 1                     ? "full: every reference"
                                                         : extents[EXTENT_ALL].mode;
}

static const char *recorded_text(const struct analysis_summary *s, const struct analysis_curve *curve)
{
    return s->extent != EXTENT_ALL                       ? extents[s->extent].recorded
           : s->missed_percent > ANALYSIS_MISSED_PERCENT ? "nearly all"
           : curve->busy_threads > 1                     ? "all"
                                                         : extents[EXTENT_ALL].recorded;
}

void report_facts(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve)
{
    int full = strcmp(s->mode, "full") == 0, sparse = strcmp(s->mode, "sparse") == 0;
    int measured = strcmp(s->mode, "pirate") == 0, lines = strcmp(s->mode, "lines") == 0;
    put_command(out, s);
    fputs("  started     ", out);
    report_plain(out, *s->started ? s->started : "(unknown)");
    fprintf(out, "\n  mode        %s\n",
            full       ? full_mode_text(s, curve)
            : lines    ? "full, on a sample of lines: every reference was counted, distances are estimates"
            : sparse   ? "sparse: reuse distances of single references"
            : measured ? "pirate: measured next to a Pirate, not recorded"
            : curve->full_references ? "burst: every reference at first, then samples"
                                     : "burst: samples of the run");
    if (!isnan(s->references)) {
        fprintf(out, "  references  %.0f recorded", s->references);
        if (!isnan(s->loads) && !isnan(s->stores))
            fprintf(out, " (%.0f loads, %.0f stores)", s->loads, s->stores);
        putc('\n', out);
    }
    if (curve->full_references)
        fprintf(out, "  at first    %" PRIu64 " references, recorded without gaps\n", curve->full_references);
    if (s->counted_references > 0)
        fprintf(out, "  counted     the next %.0f references, bursts included\n", s->counted_references);
    if (sparse) {
        fprintf(out, "  samples     %zu in %zu windows\n", curve->samples, curve->windows);
    } else if (lines) {
        fprintf(out, "  lines       1 in %g was measured\n  processes   %zu\n", 1 / curve->lines_rate,
                s->processes);
    } else if (!full && !measured) {
        fprintf(out, "  bursts      %zu in %zu thread%s, %zu process%s\n", s->bursts, s->threads,
                s->threads == 1 ? "" : "s", s->processes, s->processes == 1 ? "" : "es");
        if (s->bursts)
            put_ends(out, s);
        put_clock(out, s);
        if (curve->watches)
            fprintf(out, "  watched     %zu lines after their bursts\n", curve->watches);
    } else if (full) {
        fprintf(out, "  processes   %zu\n", s->processes);
    }
    if (!isnan(s->cpu_seconds) && !isnan(s->wall_seconds))
        fprintf(out, "  time        %.3f s of CPU time, %.3f s elapsed\n", s->cpu_seconds, s->wall_seconds);
    put_overhead(out, s, curve->full_references != 0);
    put_starts(out, s);
    if (s->memory_bytes > 0)
        fprintf(out, "  memory      at most %.1f MB added to a process\n", s->memory_bytes / (1 << 20));
    if (!isnan(s->exit_status))
        fprintf(out, "  exit        %.0f\n", s->exit_status);
    if (*s->seed) {
        fputs("  seed        ", out);
        report_plain(out, s->seed);
        putc('\n', out);
    }
    put_limits(out, s);
}

/* How much was recorded, and how. */
static void put_recorded(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve)
{
    char count[REPORT_COUNT];
    const char *threads = s->threads == 1 ? "" : "s", *processes = s->processes == 1 ? "" : "es";
    if (strcmp(s->mode, "pirate") == 0)
        return;
    fputs("  recorded    ", out);
    if (strcmp(s->mode, "sparse") == 0) {
        fprintf(out, "%zu reuse distances of single references (sparse), in %zu window%s\n", curve->samples,
                curve->windows, curve->windows == 1 ? "" : "s");
        return;
    }
    if (s->references == 0) {
        fprintf(out, "no references; %zu process%s\n", s->processes, processes);
        return;
    }
    if (!isnan(s->references)) {
        fputs(report_count(s->references, count), out);
        fputs(" references: ", out);
    }
    if (strcmp(s->mode, "lines") == 0)
        fprintf(out, "all, on a sample of lines (1 in %g)", 1 / curve->lines_rate);
    else if (strcmp(s->mode, "full") == 0)
        fputs(recorded_text(s, curve), out);
    else if (curve->full_references)
        fprintf(out, s->bursts > 0 ? "the first %s of the run, then %zu burst%s" : "the first %s of the run",
                report_count((double)curve->full_references, count), s->bursts, s->bursts == 1 ? "" : "s");
    else
        fprintf(out, "%zu burst%s", s->bursts, s->bursts == 1 ? "" : "s");
    if (s->threads > 0) /* those with bursts: there may be fewer than processes */
        fprintf(out, " in %zu thread%s", s->threads, threads);
    fprintf(out, "; %zu process%s\n", s->processes, processes);
}

static void put_time(FILE *out, const struct analysis_summary *s)
{
    double seconds, added;
    int timed = !isnan(s->cpu_seconds) && !isnan(s->wall_seconds), costs = find_added(s, &seconds, &added);
    if (!timed && !costs)
        return;
    fputs("  time        ", out);
    if (timed)
        fprintf(out, "%.3f s CPU, %.3f s elapsed%s", s->cpu_seconds, s->wall_seconds, costs ? "; " : "");
    if (costs && seconds < REPORT_PERCENT_SECONDS)
        fprintf(out, "profiling added %.1f ms", 1e3 * added);
    else if (costs)
        fprintf(out, "profiling added %.2f s (%.2f%%)", added, 100 * added / seconds);
    if (costs && !isnan(s->recorder_cpu_seconds))
        fputs(", recorder included", out);
    putc('\n', out);
}

/* The most important of report_facts, in fewer lines. */
static void put_brief_facts(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve)
{
    put_command(out, s);
    put_recorded(out, s, curve);
    put_time(out, s);
    put_starts(out, s);
    if (!isnan(s->exit_status) && s->exit_status != 0)
        fprintf(out, "  exit        %.0f\n", s->exit_status);
    if (s->bursts > 0 && has_no_rates(s))
        put_clock(out, s);
    put_limits(out, s);
}

void report_summary_text(FILE *out, const struct analysis_summary *s, const struct report_summary *parts,
                         const struct report_style *style)
{
    const struct analysis_curve *curve = parts->curve;
    put_warnings(out, s, style);
    if (parts->verbose)
        report_facts(out, s, curve);
    else
        put_brief_facts(out, s, curve);
    if (curve->n > 0)
        report_curve_notes(out, curve, "  note        ", parts->verbose);
    putc('\n', out);
    if (curve->n == 0 && strcmp(s->mode, "pirate") == 0)
        return; /* no curve is expected */
    if (curve->n == 0) {
        fputs("  no curve: ", out);
        report_plain(out, parts->why_no_curve);
        putc('\n', out);
        return;
    }
    fprintf(out, "Miss ratio by cache size (%s, %u-byte lines)\n", curve->model, curve->line_bytes);
    struct report_plot_marks over = {.levels = parts->levels, .nlevels = parts->nlevels};
    struct curve_point *marks = analysis_pirate_marks(parts->pirate, &over.npoints);
    over.points = marks;
    report_plot_over(out, curve->points, curve->n, &over, parts->rows, style);
    if (over.npoints > 0)
        fprintf(out, "\n  %s measured, with part of the cache occupied\n", report_is_utf8() ? "●" : "o");
    free(marks);
    put_sizes(out, parts);
}

/* --- for scripts --- */

struct field {
    const char *name, *text; /* text NULL: a number */
    double number;
};

/* In the order of both formats; append new ones. */
#define FIELDS 20
static void list_fields(const struct analysis_summary *s, struct field fields[FIELDS])
{
    const struct field list[FIELDS] = {
        {"command", s->command, 0},
        {"started", s->started, 0},
        {"mode", s->mode, 0},
        {"complete", s->complete, 0},
        {"warning", s->warning, 0},
        {"references", NULL, s->references},
        {"loads", NULL, s->loads},
        {"stores", NULL, s->stores},
        {"bursts", NULL, (double)s->bursts},
        {"threads", NULL, (double)s->threads},
        {"processes", NULL, (double)s->processes},
        {"cpu_seconds", NULL, s->cpu_seconds},
        {"wall_seconds", NULL, s->wall_seconds},
        {"overhead_percent", NULL, s->overhead_percent},
        {"exit_status", NULL, s->exit_status},
        {"memory_bytes", NULL, s->memory_bytes},
        {"start_cpu_seconds", NULL, s->start_cpu_seconds},
        {"missed_percent", NULL, s->missed_percent},
        {"missed", s->missed, 0},
        {"recorder_cpu_seconds", NULL, s->recorder_cpu_seconds},
    };
    memcpy(fields, list, sizeof list);
}

void report_summary_csv(FILE *out, const struct analysis_summary *s)
{
    struct field fields[FIELDS];
    list_fields(s, fields);
    fputs("key,value\n", out);
    for (size_t i = 0; i < FIELDS; i++) {
        fprintf(out, "%s,", fields[i].name);
        if (fields[i].text)
            report_csv_lines(out, fields[i].text);
        else
            report_csv_number(out, fields[i].number);
        putc('\n', out);
    }
    for (size_t code = 0; code < END_CODES; code++)
        if (s->end[code])
            fprintf(out, "end.%s,%" PRIu64 "\n", profile_end_name((uint32_t)code), s->end[code]);
    for (size_t i = 0; i < s->ncounters; i++) {
        fputs("counter.", out);
        report_csv_plain(out, s->counter[i].name);
        fprintf(out, ",%" PRIu64 "\n", s->counter[i].value);
    }
}

/* The run's members of a JSON object. */
static void put_run_json(FILE *out, const struct analysis_summary *s)
{
    struct field fields[FIELDS];
    list_fields(s, fields);
    for (size_t i = 0; i < FIELDS; i++) {
        fprintf(out, "  \"%s\": ", fields[i].name);
        if (fields[i].text)
            report_json_string(out, fields[i].text);
        else
            report_json_number(out, fields[i].number);
        fputs(",\n", out);
    }
    fputs("  \"ends\": {", out);
    const char *separator = "";
    for (size_t code = 0; code < END_CODES; code++) {
        if (!s->end[code])
            continue;
        fprintf(out, "%s\"%s\": %" PRIu64, separator, profile_end_name((uint32_t)code), s->end[code]);
        separator = ", ";
    }
    fputs("},\n  \"counters\": {", out);
    for (size_t i = 0; i < s->ncounters; i++) {
        fputs(i ? ", " : "", out);
        report_json_string(out, s->counter[i].name);
        fprintf(out, ": %" PRIu64, s->counter[i].value);
    }
    putc('}', out);
}

void report_run_json(FILE *out, const struct analysis_summary *s)
{
    fputs("{\n", out);
    put_run_json(out, s);
    fputs("\n}\n", out);
}

void report_summary_json(FILE *out, const struct analysis_summary *s, const struct analysis_curve *curve,
                         const struct analysis_pirate *pirate, const struct analysis_answer *answer,
                         const struct analysis_findings *findings)
{
    fputs("{\n", out);
    put_run_json(out, s);
    fprintf(out, ",\n  \"line_bytes\": %u,\n", curve->line_bytes);
    report_points_json(out, curve->points, curve->n);
    if (pirate->n > 0) {
        fputs(",\n", out);
        report_pirate_rows_json(out, pirate, curve);
    }
    fputs(",\n", out);
    if (answer) {
        report_answer_json(out, answer);
        fputs(",\n", out);
    }
    report_findings_json(out, findings);
    fputs("\n}\n", out);
}
