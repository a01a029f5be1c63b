/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export-profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/page-data.h"
#include "report/export.h"
#include "report/hotspots.h"

struct text {
    char *data;
    size_t n;
};

static int put_hotspots(FILE *out, const char *file, double size_bytes, enum analysis_by by,
                        struct error *err)
{
    const struct analysis_hotspots_question question = {.size_bytes = size_bytes, .by = by, .calls = 1};
    struct analysis_hotspots h;
    struct profile *p;
    int code = cli_open_profile(file, &p, err);
    if (code != 0)
        return code;
    code = analysis_hotspots(p, file, &question, &h, err);
    profile_close(p, 0, NULL);
    if (code != 0)
        return code;
    if (by == ANALYSIS_BY_LINE)
        report_hotspots_collapsed(out, &h);
    else if ((code = report_pprof(out, &h)) != 0)
        error_set(err, code, "out of memory for the profile of pprof");
    analysis_hotspots_clear(&h);
    return code;
}

static int put_pprof(FILE *out, const char *file, double size_bytes, struct error *err)
{
    return put_hotspots(out, file, size_bytes, ANALYSIS_BY_INSN, err);
}

static int put_collapsed(FILE *out, const char *file, double size_bytes, struct error *err)
{
    return put_hotspots(out, file, size_bytes, ANALYSIS_BY_LINE, err);
}

static int put_prometheus(FILE *out, const char *file, double size_bytes, struct error *err)
{
    const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU};
    struct analysis_curve curve = {.profile = file};
    struct error why;
    struct profile *p;
    (void)size_bytes;
    struct analysis_summary *s = malloc(sizeof *s);
    curve.points = cli_points(CLI_DEFAULT_SIZES, &curve.n, err);
    int code = s && curve.points ? profile_open(file, &p, err) : error_set(err, -ENOMEM, "out of memory");
    if (code == 0) {
        code = analysis_summary_load(p, s, err);
        if (code == 0 && analysis_curve_compute(p, &question, &curve, &why) != 0)
            curve.n = 0; /* a short run has none */
        if (code == 0)
            code = profile_find_damage(p, err);
        profile_close(p, 0, NULL);
    }
    if (code == 0)
        report_prometheus(out, s, &curve);
    free(curve.points);
    free(s);
    return code;
}

static int put_json(FILE *out, const char *file, double size_bytes, struct error *err)
{
    const struct page_data_options options = {.profile = file, .tables_bytes = size_bytes};
    char *json;
    int code = page_data(&options, &json, err);
    if (code == 0)
        fputs(json, out);
    free(json);
    return code;
}

static const struct {
    const char *name;
    int (*put)(FILE *out, const char *file, double size_bytes, struct error *err);
} formats[] = {
    {"pprof", put_pprof}, {"collapsed", put_collapsed}, {"prometheus", put_prometheus}, {"json", put_json}};

const char export_profile_help[] =
    "\n"
    "Formats of profiles:\n"
    "  pprof            misses by instruction, for pprof (profile.proto)\n"
    "  collapsed        misses by line and callers as collapsed stacks, for flame graphs\n"
    "  prometheus       the run and its miss ratios, as Prometheus reads them\n"
    "  json             all results: curves, time, hotspots and causes at several sizes, the run; all "
    "tables\n"
    "  csv              all tables, a file each in the new folder -o FOLDER; or one of them, with --table\n"
    "  usf              sparse samples, of a profile made by 'cachegram sample'\n";

int export_profile_format(const char *format)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, format) == 0)
            return 1;
    return 0;
}

static void write_text(FILE *out, const void *ctx)
{
    const struct text *text = ctx;
    fwrite(text->data, 1, text->n, out);
}

int export_profile(const char *profile, const char *format, double size_bytes, const char *output)
{
    struct text text = {0};
    struct error err;
    int code = -ENOMEM;
    FILE *memory = open_memstream(&text.data, &text.n);
    if (!memory)
        error_set(&err, code, "out of memory");
    for (size_t i = 0; memory && i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, format) == 0)
            code = formats[i].put(memory, profile, size_bytes, &err);
    if (memory && fclose(memory) != 0 && code == 0)
        code = error_set(&err, -ENOMEM, "out of memory");
    if (code == 0 && strcmp(output, "-") == 0)
        write_text(stdout, &text);
    else if (code == 0)
        code = cli_replace_file(output, write_text, &text, &err);
    free(text.data);
    return code == 0 ? 0 : cli_fail(&err);
}
