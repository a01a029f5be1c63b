/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-report.c - `cachegram report`: the summary of a profile. */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/this-machine.h"
#include "report/hotspots.h"
#include "report/pirate.h"
#include "report/timeline.h"

enum { OPT_WRAPPERS = 1 };

static const struct option options[] = {
    {"verbose", no_argument, NULL, 'v'},
    {"alloc-wrappers", required_argument, NULL, OPT_WRAPPERS},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram report [OPTIONS] [FILE]\n"
    "\n"
    "Prints what a programmer should know first, warnings, what ran, the miss-ratio curve, the miss ratio\n"
    "over time, and which code misses, from the profile FILE (default cachegram.db).\n"
    "\n"
    "  -v, --verbose           also how the recording went: how bursts ended, clock, watched lines, memory, "
    "seed\n"
    "  --alloc-wrappers NAME,...\n"
    "                          as for hotspots\n" CLI_OUTPUT_HELP;

/* Sizes printed below the curve besides those of this machine's caches; not those within NEAR_FACTOR of such
 * a cache. */
static const double usual_sizes[] = {0x1p15, 0x1p18, 0x1p20, 0x1p23, 0x1p25};
#define NEAR_FACTOR 4.
/* For larger caches, bursts do not show how the miss ratio changes over time. */
#define LARGEST_OVER_TIME 0x1p24
/* Two screens of a usual terminal. The curve gets the lines that the rest of the report does not need. */
#define MOST_LINES 48u
#define MOST_CURVE_ROWS 11u
#define LEAST_CURVE_ROWS 4u
#define MOST_HOTSPOTS 4u
#define LEAST_PERCENT 1. /* of the misses, to be a hotspot here */
/* Hotspots are printed for a cache with at least this miss ratio. */
#define LEAST_RATIO 0.001
/* Then it is said of them that so many are cold. */
#define MOSTLY_COLD 0.5
/* With fewer windows the run is not drawn over time. */
#define WINDOWS_LEAST 4

struct reading {
    const char *file, *wrappers; /* the latter NULL: none */
    struct profile *p;
    struct analysis_summary summary;
    struct analysis_curve curve, sizes; /* the latter of the sizes printed */
    struct analysis_curve separate;     /* of these, with a cache for each thread; points NULL: none */
    struct analysis_pirate pirate;
    struct analysis_answer answer;
    int answered;
    struct analysis_findings findings;
    struct cli_machines machines;
    double levels[MACHINE_LEVELS]; /* of this machine */
    size_t nlevels;
    struct analysis_timeline timeline;
    struct analysis_grid grid; /* columns 0: not known */
    struct analysis_hotspots hotspots;
    double cold;            /* part of the misses of hotspots on lines not touched before; NaN: not known */
    size_t left_out, level; /* of hotspots; of this machine's caches, the one that they are of */
    struct error why;       /* there is no curve */
};

/* Whether one of this machine's caches is about as large. */
static int near_level(const struct reading *r, double bytes)
{
    for (size_t i = 0; i < r->nlevels; i++)
        if (bytes < NEAR_FACTOR * r->levels[i] && r->levels[i] < NEAR_FACTOR * bytes)
            return 1;
    return 0;
}

/* Points for the caches of this machine, and for usual sizes between them. */
static int load_sizes(struct reading *r, struct error *err)
{
    char list[512] = "";
    size_t used = 0;
    cli_machines_find(r->p, &r->machines);
    const struct report_page_machine *machine = cli_this_machine(&r->machines);
    for (size_t i = 0; machine && i < machine->nlevels; i++) {
        r->levels[r->nlevels++] = (double)machine->level_bytes[i];
        used += (size_t)snprintf(list + used, sizeof list - used, ",%" PRIu64, machine->level_bytes[i]);
    }
    for (size_t i = 0; i < sizeof usual_sizes / sizeof usual_sizes[0]; i++)
        if (!near_level(r, usual_sizes[i]))
            used += (size_t)snprintf(list + used, sizeof list - used, ",%.0f", usual_sizes[i]);
    r->sizes.points = cli_points(list + 1, &r->sizes.n, err);
    return r->sizes.points ? 0 : -ENOMEM;
}

/* The points of the curve and of the sizes, one after the other, with one computation: a profile of thousands
 * of bursts takes seconds. */
static int compute_points(struct reading *r)
{
    const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU};
    struct analysis_curve all = {.profile = r->file, .n = r->curve.n + r->sizes.n};
    all.points = malloc(all.n * sizeof *all.points);
    if (!all.points)
        return error_set(&r->why, -ENOMEM, "out of memory");
    memcpy(all.points, r->curve.points, r->curve.n * sizeof *all.points);
    memcpy(all.points + r->curve.n, r->sizes.points, r->sizes.n * sizeof *all.points);
    int code = analysis_curve_compute(r->p, &question, &all, &r->why);
    memcpy(r->curve.points, all.points, r->curve.n * sizeof *all.points);
    memcpy(r->sizes.points, all.points + r->curve.n, r->sizes.n * sizeof *all.points);
    free(all.points);
    all.points = r->curve.points;
    all.n = r->curve.n;
    r->curve = all;
    return code;
}

/* Where threads work at the same time, the first levels of a machine's caches are usually not shared. */
static int load_separate(struct reading *r, struct error *err)
{
    static const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU, .separate = 1};
    struct error ignored;
    if (r->curve.n == 0 || r->curve.busy_threads < 2 || r->curve.lines_rate < 1)
        return 0;
    r->separate.profile = r->file;
    r->separate.n = r->sizes.n;
    if (!(r->separate.points = malloc(r->sizes.n * sizeof *r->separate.points)))
        return error_set(err, -ENOMEM, "out of memory");
    memcpy(r->separate.points, r->sizes.points, r->sizes.n * sizeof *r->separate.points);
    if (analysis_curve_compute(r->p, &question, &r->separate, &ignored) == 0)
        return 0;
    free(r->separate.points);
    r->separate.points = NULL;
    return 0;
}

static int load_curve(struct reading *r, struct error *err)
{
    r->curve.points = cli_points(CLI_DEFAULT_SIZES, &r->curve.n, err);
    int code = r->curve.points ? load_sizes(r, err) : -ENOMEM;
    if (code != 0)
        return code;
    code = compute_points(r);
    /* Without samples, the rest of the summary is still printed. */
    if (code == -ENODATA || code == -ENOENT) {
        r->curve.n = 0;
        return 0;
    }
    if (code != 0)
        *err = r->why;
    return code;
}

/* Whether threads at the same time have a cache of that level each: all but the last one usually are of one
 * core. */
static int is_separate(const struct reading *r, size_t level)
{
    return r->separate.points != NULL && level + 1 < r->nlevels;
}

/* The point of the n-th level of this machine's caches; NULL: there is none. */
static const struct curve_point *point_of_level(const struct reading *r, size_t level)
{
    const struct curve_point *points = is_separate(r, level) ? r->separate.points : r->sizes.points;
    for (size_t i = 0; i < r->sizes.n && level < r->nlevels; i++)
        if (points[i].size_bytes == r->levels[level])
            return &points[i];
    return NULL;
}

/* In the largest of this machine's caches that the program misses at all. */
static void load_hotspots(struct reading *r)
{
    struct analysis_hotspots_question question = {
        .by = ANALYSIS_BY_FUNCTION, .wrappers = r->wrappers, .causes = 1};
    struct report_hotspots_view view = {.limit = MOST_HOTSPOTS, .least_percent = LEAST_PERCENT};
    struct error ignored;
    for (size_t i = r->nlevels; i-- > 0;) {
        const struct curve_point *point = point_of_level(r, i);
        question.size_bytes = r->levels[i];
        question.separate = is_separate(r, i);
        r->level = i + 1;
        if (point && point->miss_ratio >= LEAST_RATIO && point->low > 0)
            break;
    }
    if (question.size_bytes == 0 || analysis_hotspots(r->p, r->file, &question, &r->hotspots, &ignored) != 0)
        return;
    r->cold = r->hotspots.cold_samples >= ANALYSIS_COLD_LEAST ? 0 : NAN;
    for (size_t i = 0; i < r->hotspots.n; i++)
        r->cold += r->hotspots.rows[i].cold * r->hotspots.rows[i].shares.misses_share;
    r->left_out = report_hotspots_select(&r->hotspots, &view);
}

/* Of threads that work at the same time, in caches of their own: first-level caches are. */
static void find_answer(struct reading *r)
{
    static const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU, .separate = 1};
    struct analysis_curve own = {.profile = r->file, .n = r->curve.n};
    struct error ignored;
    if (is_separate(r, 0) && (own.points = malloc(own.n * sizeof *own.points)) != NULL) {
        memcpy(own.points, r->curve.points, own.n * sizeof *own.points);
        if (analysis_curve_compute(r->p, &question, &own, &ignored) == 0)
            r->answered = cli_answer(r->p, &r->machines, &own, &r->answer);
        free(own.points);
    }
    if (!r->answered)
        r->answered = cli_answer(r->p, &r->machines, &r->curve, &r->answer);
}

/* The run over time, as a grid of that many columns. */
static int load_grid(struct reading *r, size_t columns, struct error *err)
{
    size_t n = r->sizes.n;
    while (n > 0 && r->sizes.points[n - 1].size_bytes > LARGEST_OVER_TIME)
        n--;
    r->timeline.profile = r->file;
    r->timeline.separate = r->separate.points != NULL;
    int code = analysis_timeline_compute(r->p, r->sizes.points, n, &r->timeline, err);
    if (code == -ENODATA || code == -ENOENT || (code == 0 && r->timeline.n < WINDOWS_LEAST))
        return 0;
    return code == 0 ? analysis_grid_compute(&r->timeline, ANALYSIS_AXIS_REFS, columns, &r->grid, err) : code;
}

static int load(struct reading *r, enum report_format format, size_t columns, struct error *err)
{
    int code = analysis_summary_load(r->p, &r->summary, err);
    if (code == 0)
        code = analysis_pirate_load(r->p, &r->pirate, err);
    if (code == 0)
        code = load_curve(r, err);
    if (code != 0 || format == REPORT_CSV)
        return code;
    if ((code = load_separate(r, err)) != 0)
        return code;
    analysis_findings(r->p, r->file, r->wrappers, r->separate.points != NULL, &r->findings);
    find_answer(r);
    if (format != REPORT_TEXT)
        return 0;
    load_hotspots(r);
    return load_grid(r, columns, err);
}

/* The answer and the findings: sentences, broken between words on a terminal only. */
static void put_answer(FILE *out, const struct reading *r, const struct report_style *style)
{
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return;
    if (r->answered)
        report_answer_text(memory, &r->answer, "this machine's L1");
    report_findings_text(memory, &r->findings);
    int made = fclose(memory) == 0;
    if (made && isatty(STDOUT_FILENO))
        report_wrapped(out, text, style->width);
    else if (made)
        fputs(text, out);
    free(text);
}

static void put_text(FILE *out, const struct reading *r, const struct report_style *style, int verbose,
                     unsigned rows)
{
    const struct report_summary parts = {.curve = &r->curve,
                                         .why_no_curve = r->why.text,
                                         .pirate = &r->pirate,
                                         .levels = r->levels,
                                         .nlevels = r->nlevels,
                                         .sizes = r->sizes.points,
                                         .nsizes = r->sizes.n,
                                         .separate = r->separate.points,
                                         .verbose = verbose,
                                         .rows = rows};
    put_answer(out, r, style);
    if (r->answered || r->findings.nmisses > 0 || r->findings.nspread > 0 || r->findings.nshared > 0 ||
        r->findings.ntruly > 0 || r->findings.nconflicts > 0)
        putc('\n', out);
    report_summary_text(out, &r->summary, &parts, style);
    if (r->grid.columns > 0) {
        fprintf(out, "\nMiss ratio by cache size%s and time, with phases (see cachegram timeline)\n",
                r->timeline.separate ? ", one cache for each thread," : "");
        report_heatmap(out, &r->timeline, &r->grid, style);
        report_slow_phase(out, &r->timeline);
    }
    if (r->hotspots.n > 0) {
        fprintf(out, "\nIn a cache as large as this machine's L%zu", r->level);
        if (r->cold >= MOSTLY_COLD)
            fprintf(out, " (%.0f%% of these misses are cold)", 100 * r->cold);
        putc('\n', out);
        if (verbose)
            report_hotspots(out, &r->hotspots, r->left_out, REPORT_TEXT);
        else
            report_hotspots_brief(out, &r->hotspots, r->left_out, style->width);
    }
    if (r->pirate.n > 0) {
        if (r->curve.n > 0)
            putc('\n', out);
        report_pirate(out, &r->pirate, &r->curve, REPORT_TEXT, style);
    }
}

/* Lines on a terminal, where longer ones go on in the next one. */
static size_t count_lines(const char *text, unsigned width)
{
    size_t lines = 0;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        size_t columns = report_columns(text, (size_t)(end - text));
        lines += columns == 0 ? 1 : (columns - 1) / width + 1;
    }
    return lines;
}

static void put_report(const struct reading *r, const struct report_style *style, int verbose)
{
    struct report_style plain = *style;
    unsigned rows = MOST_CURVE_ROWS;
    char *text = NULL;
    size_t size, lines = 0;
    FILE *memory = open_memstream(&text, &size);
    plain.color = 0;
    if (memory) {
        put_text(memory, r, &plain, verbose, rows);
        if (fclose(memory) == 0)
            lines = count_lines(text, style->width);
        free(text);
    }
    while (rows > LEAST_CURVE_ROWS && lines > MOST_LINES)
        rows--, lines--;
    put_text(stdout, r, style, verbose, verbose ? MOST_CURVE_ROWS : rows);
}

int cmd_report(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"report", usage, ":hv", options, NULL};
    struct cli_output output = {.format = REPORT_TEXT};
    struct error err;
    const char *wrappers = NULL;
    int opt, status, verbose = 0;
    while ((opt = cli_next_option(&syntax, argc, argv, &output, &status)) != 0) {
        if (opt == OPT_WRAPPERS)
            wrappers = optarg;
        else
            verbose = 1;
    }
    if (status >= 0)
        return status;
    const char *file = cli_one_file("report", argc, argv);
    if (!file)
        return 2;
    struct report_style style = report_style_of(stdout, output.color);
    struct reading *r = calloc(1, sizeof *r);
    if (!r) {
        error_set(&err, -ENOMEM, "out of memory");
        return cli_fail(&err);
    }
    r->file = file;
    r->wrappers = wrappers;
    int code = profile_open(file, &r->p, &err);
    if (code == 0) {
        code = load(r, output.format, report_heatmap_columns(&style), &err);
        if (code == 0) /* also in parts that may be missing */
            code = profile_find_damage(r->p, &err);
        /* Closed before printing: a pager that waits must not block a recording. */
        profile_close(r->p, 0, NULL);
    }
    if (code == 0) {
        if (output.format == REPORT_CSV)
            report_summary_csv(stdout, &r->summary);
        else if (output.format == REPORT_JSON)
            report_summary_json(stdout, &r->summary, &r->curve, &r->pirate, r->answered ? &r->answer : NULL,
                                &r->findings);
        else
            put_report(r, &style, verbose);
    }
    analysis_hotspots_clear(&r->hotspots);
    analysis_timeline_clear(&r->timeline);
    analysis_grid_clear(&r->grid);
    analysis_pirate_clear(&r->pirate);
    free(r->curve.points);
    free(r->separate.points);
    free(r->sizes.points);
    free(r);
    return code == 0 ? 0 : cli_fail(&err);
}
