/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/page-data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/export-tables.h"
#include "cli/this-machine.h"
#include "report/annotate.h"
#include "report/causes.h"
#include "report/hotspots.h"
#include "report/page.h"
#include "report/timeline.h"

/* Defined for the whole build (meson.build). */
#ifndef CACHEGRAM_VERSION
#define CACHEGRAM_VERSION "unknown"
#endif

/* The size chosen at first, as in `hotspots`. */
#define CHOSEN_SIZE 0x1p20
/* Rows of each table and size: more are not read on a page, and make it large. */
#define MOST_ROWS 50u
#define MOST_CAUSES 100u
/* Parts of equal work into which the run is divided: on a usual screen each is at least two pixels wide. */
#define GRID_COLUMNS 300u
/* Hotspots of single phases: of those with most references, and rows of each of their tables. */
#define MOST_PHASES 8u
#define MOST_PHASE_ROWS 20u
/* With fewer windows there is nothing to see over time. */
#define WINDOWS_LEAST 2u
/* Lines of source shown before and after those with references. */
#define CONTEXT 3u
#define MOST_FILES 64u

/* What the page is made from. */
struct making {
    const struct page_data_options *args;
    struct profile *p;
    FILE *json;
    struct cli_machines machines;
    double sizes[PAGE_DATA_SIZES];
    size_t nsizes;
    struct report_page_names names;
    double own_below;             /* bytes: threads have smaller caches each for itself; 0: they share all */
    uint32_t phases[MOST_PHASES]; /* those with most references, that first */
    size_t nphases;
};

/* --- sizes of the slider --- */

static void add_size(struct making *m, double bytes)
{
    size_t at = 0;
    while (at < m->nsizes && m->sizes[at] < bytes)
        at++;
    if (m->nsizes == PAGE_DATA_SIZES || (at < m->nsizes && m->sizes[at] == bytes))
        return;
    memmove(&m->sizes[at + 1], &m->sizes[at], (m->nsizes - at) * sizeof m->sizes[0]);
    m->sizes[at] = bytes;
    m->nsizes++;
}

static int choose_sizes(struct making *m, struct error *err)
{
    size_t n = 0;
    struct curve_point *points = cli_points(m->args->sizes ? m->args->sizes : PAGE_DATA_USUAL_SIZES, &n, err);
    if (!points)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        add_size(m, points[i].size_bytes);
    free(points);
    for (size_t i = 0; i < m->machines.n && !m->args->sizes; i++)
        for (size_t k = 0; k < m->machines.list[i].nlevels; k++)
            add_size(m, (double)m->machines.list[i].level_bytes[k]);
    return 0;
}

static size_t chosen_size(const struct making *m)
{
    size_t best = 0;
    for (size_t i = 1; i < m->nsizes; i++)
        if (fabs(log2(m->sizes[i] / CHOSEN_SIZE)) < fabs(log2(m->sizes[best] / CHOSEN_SIZE)))
            best = i;
    return best;
}

static void put_sizes(const struct making *m)
{
    fputs(",\n\"sizes\": [", m->json);
    for (size_t i = 0; i < m->nsizes; i++)
        fprintf(m->json, "%s%.0f", i ? ", " : "", m->sizes[i]);
    fprintf(m->json, "],\n\"chosen\": %zu", chosen_size(m));
}

/* --- the curves and the run --- */

/* -ENODATA and the like: there is none, for the reason in *why. */
static int compute_curve(const struct making *m, enum analysis_model model, int separate,
                         struct analysis_curve *curve, struct error *why)
{
    const struct analysis_question question = {.model = model, .separate = separate};
    *curve = (struct analysis_curve){.profile = m->args->profile};
    curve->points = cli_points(CLI_DEFAULT_SIZES, &curve->n, why);
    if (!curve->points)
        return -ENOMEM;
    int code = analysis_curve_compute(m->p, &question, curve, why);
    if (code != 0)
        curve->n = 0;
    return code;
}

static void put_curve(const struct making *m, const char *key, const struct analysis_curve *curve)
{
    fprintf(m->json, ",\n\"%s\": ", key);
    if (curve->n > 0)
        report_curve_json(m->json, curve);
    else
        fputs("null", m->json);
}

/* As in `report`: threads at the same time have caches of their own, but for the machine's last level. */
static double find_own_below(const struct making *m, const struct analysis_curve *shared)
{
    const struct report_page_machine *machine = &m->machines.list[0];
    int has_own = shared->n > 0 && shared->busy_threads > 1 && shared->lines_rate >= 1;
    return has_own && m->machines.n > 0 && machine->nlevels > 1 /* else the only one is the last */
               ? (double)machine->level_bytes[machine->nlevels - 1]
               : 0;
}

static int put_run(struct making *m, struct error *err)
{
    struct analysis_curve lru, own = {.n = 0}, random;
    struct analysis_pirate pirate = {0};
    struct analysis_findings findings;
    struct error why = {""}, ignored;
    struct analysis_summary *summary = malloc(sizeof *summary);
    int code = summary ? analysis_summary_load(m->p, summary, err) : error_set(err, -ENOMEM, "out of memory");
    if (code == 0)
        code = analysis_pirate_load(m->p, &pirate, err);
    if (code != 0) {
        free(summary);
        return code;
    }
    code = compute_curve(m, ANALYSIS_MODEL_LRU, 0, &lru, &why);
    compute_curve(m, ANALYSIS_MODEL_RANDOM, 0, &random, &ignored);
    m->own_below = find_own_below(m, &lru);
    if (m->own_below > 0 && compute_curve(m, ANALYSIS_MODEL_LRU, 1, &own, &ignored) != 0)
        m->own_below = 0;
    /* As in `report`: without samples the rest is still of use. */
    if (code == -ENODATA || code == -ENOENT)
        code = 0;
    else if (code != 0)
        *err = why;
    if (code == 0) {
        struct analysis_answer found, *answer = NULL;
        if (cli_answer(m->p, &m->machines, m->own_below > 0 ? &own : &lru, &found))
            answer = &found;
        analysis_findings(m->p, m->args->profile, NULL, m->own_below > 0, &findings);
        fputs("\"version\": \"" CACHEGRAM_VERSION "\"", m->json);
        report_json_member_string(m->json, ",\n", "profile", m->args->profile);
        fputs(",\n\"summary\": ", m->json);
        report_summary_json(m->json, summary, &lru, &pirate, answer, &findings);
        fputs(",\n\"findings\": ", m->json);
        code = report_page_findings(m->json, answer, cli_this_machine(&m->machines), &findings);
        fputs(",\n\"facts\": ", m->json);
        code = code ? code : report_page_facts(m->json, summary, &lru);
        fputs(",\n\"notes\": ", m->json);
        code = code ? code : report_page_notes(m->json, &lru);
        fputs(",\n\"machines\": ", m->json);
        report_page_machines(m->json, m->machines.list, m->machines.n);
        fputs(",\n\"measured\": ", m->json);
        report_page_measured(m->json, &pirate);
        put_curve(m, "lru", &lru);
        put_curve(m, "lru_own", &own);
        put_curve(m, "random", &random);
        report_json_member_string(m->json, ",\n", "no_curve", lru.n > 0 ? "" : why.text);
        if (code != 0)
            error_set(err, code, "out of memory for the page");
    }
    free(lru.points);
    free(own.points);
    free(random.points);
    analysis_pirate_clear(&pirate);
    free(summary);
    return code;
}

/* --- over time --- */

static void choose_phases(struct making *m, const struct analysis_timeline *timeline)
{
    double refs[MOST_PHASES];
    for (size_t i = 0; i < timeline->nphases; i++) {
        const struct analysis_phase *phase = &timeline->phases[i];
        size_t at = m->nphases;
        if (phase->phase == 0)
            continue;
        while (at > 0 && refs[at - 1] < phase->refs)
            at--;
        if (at == MOST_PHASES)
            continue;
        if (m->nphases < MOST_PHASES)
            m->nphases++;
        memmove(&refs[at + 1], &refs[at], (m->nphases - at - 1) * sizeof refs[0]);
        memmove(&m->phases[at + 1], &m->phases[at], (m->nphases - at - 1) * sizeof m->phases[0]);
        refs[at] = phase->refs;
        m->phases[at] = phase->phase;
    }
}

/* {"grid": {"sizes": ..., "columns": [...]}, "phases": {...}}; null without windows. */
static int put_timeline(struct making *m, struct error *err)
{
    const struct report_style style = {.width = 80};
    struct analysis_timeline timeline = {.profile = m->args->profile, .separate = m->own_below > 0};
    struct analysis_grid grid = {0};
    size_t n = 0;
    struct curve_point *points = cli_points(CLI_DEFAULT_SIZES, &n, err);
    int code = points ? analysis_timeline_compute(m->p, points, n, &timeline, err) : -ENOMEM;
    fputs(",\n\"timeline\": ", m->json);
    if (code == -ENODATA || code == -ENOENT || (code == 0 && timeline.n < WINDOWS_LEAST)) {
        fputs("null", m->json);
        code = 0;
        m->nphases = 0;
    } else if (code == 0 &&
               (code = analysis_grid_compute(&timeline, ANALYSIS_AXIS_REFS, GRID_COLUMNS, &grid, err)) == 0) {
        fputs("{\"grid\": ", m->json);
        report_page_grid(m->json, &grid, timeline.sizes);
        fputs(",\n\"phases\": ", m->json);
        report_phases(m->json, &timeline, REPORT_JSON, &style);
        choose_phases(m, &timeline);
        putc('}', m->json);
    }
    analysis_timeline_clear(&timeline);
    analysis_grid_clear(&grid);
    free(points);
    return code;
}

/* --- hotspots --- */

static const struct {
    const char *name;
    enum analysis_by by;
    int objects;
} kinds[] = {{"function,object", ANALYSIS_BY_FUNCTION, 1},
             {"function", ANALYSIS_BY_FUNCTION, 0},
             {"line", ANALYSIS_BY_LINE, 0},
             {"object", ANALYSIS_BY_NOTHING, 1}};

/* The first `limit` rows. *part: of a phase, what was recorded completely is not in them. */
static int put_table(struct making *m, const struct analysis_hotspots_question *question, size_t limit,
                     int *part, struct error *err)
{
    const struct report_hotspots_view view = {.limit = limit};
    struct analysis_hotspots hotspots;
    int code = analysis_hotspots(m->p, m->args->profile, question, &hotspots, err);
    if (code != 0)
        return code;
    size_t left_out = report_hotspots_select(&hotspots, &view);
    if (m->args->brief)
        code = report_page_rows(m->json, &hotspots, left_out, &m->names);
    else
        report_hotspots(m->json, &hotspots, left_out, REPORT_JSON);
    *part = hotspots.part_left_out;
    analysis_hotspots_clear(&hotspots);
    return code == 0 ? 0 : error_set(err, code, "out of memory for the page");
}

static struct analysis_hotspots_question question_of(const struct making *m, size_t kind, size_t size)
{
    return (struct analysis_hotspots_question){.size_bytes = m->sizes[size],
                                               .by = kinds[kind].by,
                                               .objects = kinds[kind].objects,
                                               .separate = m->sizes[size] < m->own_below};
}

/* A profile without code, or without objects, has a page without them, which says why. */
static int put_hotspots(struct making *m, struct error *err)
{
    struct error why = {""};
    int part;
    fputs(",\n\"hotspots\": [", m->json);
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        int code = 0;
        fprintf(m->json, "%s\n{\"by\": \"%s\", \"tables\": [", kind ? "," : "", kinds[kind].name);
        for (size_t i = 0; i < m->nsizes && code == 0; i++) {
            struct analysis_hotspots_question question = question_of(m, kind, i);
            question.calls = m->args->brief; /* counted in caches that threads share, as the page says */
            question.call_rows = MOST_ROWS;
            fputs(i ? ",\n" : "\n", m->json);
            code = put_table(m, &question, MOST_ROWS, &part, i ? err : &why);
            if (code != 0 && i > 0)
                return code;
        }
        fputs("]}", m->json);
    }
    report_json_member_string(m->json, "],\n", "no_hotspots", why.text);
    return 0;
}

/* {"function": TABLE, ...}; *part: the phase has a part in which code is not counted by phase. */
static int put_phase_tables(struct making *m, uint32_t phase, size_t size, int *part, struct error *err)
{
    int n = 0, code = 0;
    putc('{', m->json);
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0] && code == 0; kind++) {
        struct analysis_hotspots_question question = question_of(m, kind, size);
        question.phase = phase;
        fprintf(m->json, "%s\"%s\": ", n++ ? ",\n" : "", kinds[kind].name);
        code = put_table(m, &question, MOST_PHASE_ROWS, part, err);
        if (code != 0)
            fputs("null", m->json);
    }
    putc('}', m->json);
    return code;
}

/* [{"phase": ..., "sizes": [TABLES, ...], "part": ..., "why": ""}, ...]; why: what the profile lacks, instead
 * of tables. */
static int put_phase_hotspots(struct making *m, struct error *err)
{
    int code = 0;
    fputs(",\n\"phase_hotspots\": [", m->json);
    for (size_t i = 0; i < m->nphases && code == 0; i++) {
        struct error why = {""};
        int part = 0;
        fprintf(m->json, "%s\n{\"phase\": %u, \"sizes\": [", i ? "," : "", m->phases[i]);
        for (size_t size = 0; size < m->nsizes && code == 0; size++) {
            fputs(size ? ",\n" : "\n", m->json);
            code = put_phase_tables(m, m->phases[i], size, &part, &why);
        }
        if (code == -ENOMEM)
            *err = why;
        else
            code = 0;
        fprintf(m->json, "], \"part\": %s", part ? "true" : "false");
        report_json_member_string(m->json, ", ", "why", why.text);
        putc('}', m->json);
    }
    putc(']', m->json);
    return code;
}

/* --- causes --- */

/* By data object. A profile without objects has none. */
static int put_causes(const struct making *m, struct error *err)
{
    fputs(",\n\"causes\": [", m->json);
    for (size_t i = 0; i < m->nsizes; i++) {
        const struct analysis_hotspots_question question = {
            .size_bytes = m->sizes[i], .by = ANALYSIS_BY_NOTHING, .objects = 1};
        struct analysis_causes causes;
        struct error why;
        int code = analysis_causes(m->p, m->args->profile, &question, &causes, i ? err : &why);
        if (code != 0 && i == 0)
            break;
        if (code != 0)
            return code;
        fputs(i ? ",\n" : "\n", m->json);
        report_causes(m->json, &causes, MOST_CAUSES, 0, REPORT_JSON);
        analysis_causes_clear(&causes);
    }
    fputs("]", m->json);
    return 0;
}

/* --- source --- */

/* The lines of a file that are shown. */
struct shown_lines {
    char *file;
    uint32_t first, last;
};

static int widen(struct shown_lines files[MOST_FILES], size_t *n, const struct annotated *part)
{
    size_t i = 0;
    while (i < *n && strcmp(files[i].file, part->file) != 0)
        i++;
    for (size_t k = 0; k < part->nlines; k++) {
        uint32_t line = part->lines[k].line;
        if (line == 0 || i == MOST_FILES)
            continue;
        if (i == *n) {
            if (!(files[i].file = strdup(part->file)))
                return -ENOMEM;
            files[i].first = files[i].last = line;
            (*n)++;
        }
        files[i].first = line < files[i].first ? line : files[i].first;
        files[i].last = line > files[i].last ? line : files[i].last;
    }
    return 0;
}

static int put_annotation(const struct making *m, size_t size, struct shown_lines files[MOST_FILES],
                          size_t *n, struct error *err)
{
    const struct analysis_annotate_question question = {.size_bytes = m->sizes[size],
                                                        .separate = m->sizes[size] < m->own_below};
    struct analysis_annotation a;
    struct error why;
    fputs(size ? ",\n" : "\n", m->json);
    int code = analysis_annotate(m->p, m->args->profile, &question, &a, &why);
    if (code == -ENOMEM) {
        *err = why;
        return code;
    }
    if (code != 0) { /* no function has misses enough */
        fputs("{\"parts\": []}", m->json);
        return 0;
    }
    /* Without the text of the lines, which is the same for all sizes. */
    struct report_part *parts = calloc(a.n + 1, sizeof *parts);
    code = parts ? 0 : -ENOMEM;
    for (size_t i = 0; i < a.n && code == 0; i++) {
        parts[i].part = &a.parts[i];
        if (*a.parts[i].file)
            code = widen(files, n, &a.parts[i]);
    }
    if (code == 0)
        report_annotation(m->json, &a, parts, a.n, REPORT_JSON);
    else
        error_set(err, code, "out of memory for the source");
    free(parts);
    analysis_annotation_clear(&a);
    return code;
}

static int put_source(const struct making *m, struct error *err)
{
    const struct source_search search = cli_source_search(&m->args->sources);
    time_t started = cli_started(m->p);
    struct shown_lines files[MOST_FILES];
    size_t n = 0;
    int code = 0, found = 0;
    fputs(",\n\"source\": ", m->json);
    if (!m->args->with_source) {
        fputs("null", m->json);
        return 0;
    }
    fputs("{\"annotations\": [", m->json);
    for (size_t i = 0; i < m->nsizes && code == 0; i++)
        code = put_annotation(m, i, files, &n, err);
    fputs("],\n\"files\": [", m->json);
    for (size_t i = 0; i < n; i++) {
        struct source source;
        if (source_load(files[i].file, &search, &source) == 0) {
            uint32_t first = files[i].first > CONTEXT ? files[i].first - CONTEXT : 1;
            fputs(found++ ? ",\n" : "\n", m->json);
            report_page_source(m->json, files[i].file, &source, first, files[i].last + CONTEXT,
                               started && source.changed.tv_sec > started);
            source_clear(&source);
        }
        free(files[i].file);
    }
    fputs("]}", m->json);
    return code;
}

/* --- all of it --- */

static int make(struct making *m, struct error *err)
{
    cli_machines_find(m->p, &m->machines);
    int code = choose_sizes(m, err);
    fputs("{", m->json);
    if (code == 0)
        code = put_run(m, err);
    if (code == 0)
        put_sizes(m);
    if (code == 0)
        code = put_timeline(m, err);
    if (code == 0)
        code = put_hotspots(m, err);
    if (code == 0)
        code = put_phase_hotspots(m, err);
    if (code == 0)
        code = put_causes(m, err);
    if (code == 0)
        code = put_source(m, err);
    if (code == 0 && m->args->tables_bytes > 0) {
        fputs(",\n\"tables\": ", m->json);
        code = export_tables_json(m->json, m->p, m->args->profile, m->args->tables_bytes, err);
    }
    if (m->args->brief) {
        fputs(",\n\"names\": ", m->json);
        report_page_names(m->json, &m->names);
    }
    fputs("}\n", m->json);
    return code;
}

int page_data(const struct page_data_options *options, char **json, struct error *err)
{
    struct making m = {.args = options};
    size_t size = 0;
    *json = NULL;
    int code = profile_open(options->profile, &m.p, err);
    if (code != 0)
        return code;
    m.json = open_memstream(json, &size);
    code = m.json ? make(&m, err) : error_set(err, -ENOMEM, "out of memory for the page");
    if (code == 0)
        code = profile_find_damage(m.p, err);
    profile_close(m.p, 0, NULL);
    if (m.json && fclose(m.json) != 0 && code == 0)
        code = error_set(err, -ENOMEM, "out of memory for the page");
    if (code != 0) {
        free(*json);
        *json = NULL;
    }
    return code;
}

static void put_page(FILE *out, const void *json)
{
    report_page(out, json);
}

int page_write(const char *file, const char *json, struct error *err)
{
    if (strcmp(file, "-") != 0)
        return cli_replace_file(file, put_page, json, err);
    report_page(stdout, json);
    return 0;
}
