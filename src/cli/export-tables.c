/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export-tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/evictions.h"
#include "analysis/phase-variation.h"
#include "analysis/pirate.h"
#include "analysis/timeline.h"
#include "cli/cli.h"
#include "report/causes.h"
#include "report/hotspots.h"
#include "report/pirate.h"
#include "report/timeline.h"

/* What a table is made from. */
struct source {
    struct profile *p;
    const char *name;
    double size_bytes; /* of the cache, for misses by code and data */
    enum report_format format;
};

struct table {
    const char *name, *what;
    int (*put)(FILE *out, const struct source *s, const struct table *t, struct error *err);
    int variant;    /* the model; or which of the tables that `put` makes */
    const char *by; /* of hotspots, with call paths as variant 1 */
};

/* Each writes a table: 0; -ENODATA, -ENOENT or -EINVAL if the profile does not hold it, with the reason in
 * err; or another negative code. */

static int put_run(FILE *out, const struct source *s, const struct table *t, struct error *err)
{
    (void)t;
    struct analysis_summary *summary = malloc(sizeof *summary);
    int code = summary ? analysis_summary_load(s->p, summary, err) : error_set(err, -ENOMEM, "out of memory");
    if (code == 0 && s->format == REPORT_CSV)
        report_summary_csv(out, summary);
    else if (code == 0)
        report_run_json(out, summary);
    free(summary);
    return code;
}

static int put_curve(FILE *out, const struct source *s, const struct table *t, struct error *err)
{
    const struct analysis_question question = {.model = (enum analysis_model)t->variant};
    struct analysis_curve curve = {.profile = s->name};
    curve.points = cli_points(CLI_DEFAULT_SIZES, &curve.n, err);
    int code = curve.points ? analysis_curve_compute(s->p, &question, &curve, err) : -ENOMEM;
    if (code == 0 && s->format == REPORT_CSV)
        report_curve_csv(out, &curve);
    else if (code == 0)
        report_curve_json(out, &curve);
    free(curve.points);
    return code;
}

static int put_time(FILE *out, const struct source *s, const struct table *t, struct error *err)
{
    const struct report_style style = {.width = 80};
    const struct analysis_grid none = {0};
    struct analysis_timeline timeline = {.profile = s->name};
    size_t n = 0;
    struct curve_point *points = cli_points(CLI_TIMELINE_SIZES, &n, err);
    int code = points ? analysis_timeline_compute(s->p, points, n, &timeline, err) : -ENOMEM;
    if (code == 0 && t->variant)
        code = analysis_phase_variations(&timeline, err);
    if (code == 0 && t->variant)
        report_phases(out, &timeline, s->format, &style);
    else if (code == 0)
        report_timeline(out, &timeline, &none, s->format, &style);
    analysis_timeline_clear(&timeline);
    free(points);
    return code;
}

static int put_hotspots(FILE *out, const struct source *s, const struct table *t, struct error *err)
{
    struct analysis_hotspots_question question = {.size_bytes = s->size_bytes, .calls = t->variant};
    struct analysis_hotspots hotspots;
    if (cli_by_option("export", t->by, &question) != 0)
        return error_set(err, -EIO, "no such table");
    int code = analysis_hotspots(s->p, s->name, &question, &hotspots, err);
    if (code != 0)
        return code;
    if (t->variant && hotspots.ncalls == 0)
        code = error_set(err, -ENODATA, "the profile '%s' holds no call paths", s->name);
    else
        report_hotspots(out, &hotspots, 0, s->format);
    analysis_hotspots_clear(&hotspots);
    return code;
}

static int put_causes(FILE *out, const struct source *s, const struct table *t, struct error *err)
{
    (void)t;
    const struct analysis_hotspots_question question = {
        .size_bytes = s->size_bytes, .by = ANALYSIS_BY_NOTHING, .objects = 1};
    struct analysis_causes causes;
    int code = analysis_causes(s->p, s->name, &question, &causes, err);
    if (code != 0)
        return code;
    report_causes(out, &causes, 0, 0, s->format);
    analysis_causes_clear(&causes);
    return 0;
}

static int put_places(FILE *out, const struct source *s, const struct table *t, struct error *err)
{
    static const struct {
        size_t (*find)(struct profile *p, const char *name, const char *wrappers,
                       struct analysis_place places[PLACES_MOST]);
        const char *what;
    } kinds[] = {{analysis_shared, "false sharing"},
                 {analysis_shared_truly, "true sharing"},
                 {analysis_conflicts, "conflicts within sets"}};
    struct analysis_place places[PLACES_MOST];
    size_t n = kinds[t->variant].find(s->p, s->name, NULL, places);
    if (n == 0)
        return error_set(err, -ENODATA, "the profile '%s' shows no %s", s->name, kinds[t->variant].what);
    if (s->format == REPORT_CSV) {
        report_places_csv(out, places, n);
    } else {
        fputs("{\n", out);
        report_places_json(out, "rows", places, n);
        fputs("\n}\n", out);
    }
    return 0;
}

static int put_pirate(FILE *out, const struct source *s, const struct table *t, struct error *err)
{
    (void)t;
    const struct report_style style = {.width = 80};
    struct analysis_pirate pirate;
    int code = analysis_pirate_load(s->p, &pirate, err);
    if (code != 0)
        return code;
    if (pirate.n > 0)
        report_pirate(out, &pirate, NULL, s->format, &style);
    else
        code =
            error_set(err, -ENODATA, "the profile '%s' holds no measurements of cachegram pirate", s->name);
    analysis_pirate_clear(&pirate);
    return code;
}

static const struct table tables[] = {
    {"run", "what ran and how it was recorded, as report --format csv", put_run, 0, NULL},
    {"curve", "miss ratios of LRU, as mrc", put_curve, ANALYSIS_MODEL_LRU, NULL},
    {"curve-random", "of random replacement, as mrc --model random", put_curve, ANALYSIS_MODEL_RANDOM, NULL},
    {"timeline", "as timeline", put_time, 0, NULL},
    {"phases", "as phases", put_time, 1, NULL},
    {"hotspots-function", "as hotspots, at --size", put_hotspots, 0, "function"},
    {"hotspots-line", "likewise, by line", put_hotspots, 0, "line"},
    {"hotspots-object", "likewise, by data object", put_hotspots, 0, "object"},
    {"hotspots-function-object", "likewise, by function,object", put_hotspots, 0, "function,object"},
    {"hotspots-calls", "likewise, by function, with --call-graph", put_hotspots, 1, "function"},
    {"causes", "as causes, at --size", put_causes, 0, NULL},
    {"false-sharing", "data that threads share falsely, most first", put_places, 0, NULL},
    {"true-sharing", "data whose same bytes threads use by turns, most first", put_places, 1, NULL},
    {"conflicts", "data with conflicts within sets, most first", put_places, 2, NULL},
    {"pirate", "what pirate measured", put_pirate, 0, NULL},
};
#define TABLES (sizeof tables / sizeof tables[0])

static int is_missing(int code)
{
    return code == -ENODATA || code == -ENOENT || code == -EINVAL;
}

/* *text: NULL, or what the caller frees. */
static int make_table(size_t i, const struct source *s, char **text, struct error *err)
{
    size_t size;
    *text = NULL;
    FILE *memory = open_memstream(text, &size);
    int code = memory ? tables[i].put(memory, s, &tables[i], err) : error_set(err, -ENOMEM, "out of memory");
    if (memory && fclose(memory) != 0 && code == 0)
        code = error_set(err, -ENOMEM, "out of memory");
    if (code != 0) {
        free(*text);
        *text = NULL;
    }
    return code;
}

static int write_one(const struct source *s, const char *table, const char *output, struct error *err)
{
    char *text;
    size_t i = 0;
    while (strcmp(tables[i].name, table) != 0)
        i++;
    int code = make_table(i, s, &text, err);
    if (code == 0)
        code = cli_write_text(output, text, err);
    free(text);
    return code;
}

/* All are made before the first one is written: a damaged profile leaves nothing. */
static int write_all(const struct source *s, const char *folder, struct error *err)
{
    char *texts[TABLES] = {NULL};
    char path[4096];
    int code = 0, found = 0;
    for (size_t i = 0; i < TABLES && code == 0; i++) {
        code = make_table(i, s, &texts[i], err);
        found += code == 0 && i > 0;
        code = is_missing(code) ? 0 : code;
    }
    if (code == 0 && !found && (code = analysis_refuse_unprofiled(s->p, s->name, err)) == 0)
        code = error_set(err, -ENODATA, "the profile '%s' holds no results", s->name);
    if (code == 0) /* not noticed by what needs it least */
        code = profile_find_damage(s->p, err);
    if (code == 0 && mkdir(folder, 0777) != 0)
        code =
            error_set(err, -errno, "cannot create the folder '%s': %s%s", folder, strerror(errno),
                      errno == EEXIST ? "; give a new one, so that it holds the tables of one profile" : "");
    for (size_t i = 0; i < TABLES && code == 0; i++) {
        int n = snprintf(path, sizeof path, "%s/%s.csv", folder, tables[i].name);
        if (n < 0 || (size_t)n >= sizeof path)
            code = error_set(err, -ENAMETOOLONG, "the name '%s' is too long", folder);
        else if (texts[i])
            code = cli_write_text(path, texts[i], err);
    }
    for (size_t i = 0; i < TABLES; i++)
        free(texts[i]);
    return code;
}

void export_tables_list(FILE *out)
{
    fputs("\nTables of csv and json; without --table, those that the profile holds:\n", out);
    for (size_t i = 0; i < TABLES; i++)
        fprintf(out, "  %-24s  %s\n", tables[i].name, tables[i].what);
}

int export_is_table(const char *table)
{
    for (size_t i = 0; i < TABLES; i++)
        if (strcmp(tables[i].name, table) == 0)
            return 1;
    return 0;
}

int export_tables_json(FILE *out, struct profile *p, const char *name, double size_bytes, struct error *err)
{
    const struct source s = {p, name, size_bytes, REPORT_JSON};
    const char *separator = "";
    putc('{', out);
    for (size_t i = 0; i < TABLES; i++) {
        char *text;
        int code = make_table(i, &s, &text, err);
        if (code != 0 && !is_missing(code))
            return code;
        if (code == 0) {
            fprintf(out, "%s\n\"%s\": ", separator, tables[i].name);
            fputs(text, out);
            separator = ",";
        }
        free(text);
    }
    putc('}', out);
    return 0;
}

int export_tables(const char *profile, const char *table, enum report_format format, double size_bytes,
                  const char *output)
{
    struct source s = {.name = profile, .size_bytes = size_bytes, .format = format};
    struct error err;
    if (!table && strcmp(output, "-") == 0)
        return cli_misuse("export", "csv is several tables: a folder is needed (-o FOLDER), or --table NAME");
    int code = cli_open_profile(profile, &s.p, &err);
    if (code == 0) {
        code = table ? write_one(&s, table, output, &err) : write_all(&s, output, &err);
        profile_close(s.p, 0, NULL);
    }
    return code == 0 ? 0 : cli_fail(&err);
}
