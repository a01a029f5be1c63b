/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-mrc.c - `cachegram mrc`: the miss-ratio curve of a profile. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/hotspots-sizes.h"
#include "report/hotspot-names.h"

enum { OPT_MODEL = 1, OPT_SIZES, OPT_THREAD, OPT_THREADS, OPT_WAYS, OPT_PHASE, OPT_FUNCTION, OPT_OBJECT };

static const struct option options[] = {
    {"model", required_argument, NULL, OPT_MODEL},
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"thread", required_argument, NULL, OPT_THREAD},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"phase", required_argument, NULL, OPT_PHASE},
    {"ways", required_argument, NULL, OPT_WAYS},
    {"function", required_argument, NULL, OPT_FUNCTION},
    {"object", required_argument, NULL, OPT_OBJECT},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram mrc [OPTIONS] [FILE]\n"
    "\n"
    "Prints the miss ratio as a function of cache size, from the profile FILE (default cachegram.db).\n"
    "\n"
    "  --model lru|random|statstack\n"
    "                          replacement policy of the cache (default lru); statstack: LRU estimated from\n"
    "                          reuse distances (profiles of --mode full)\n"
    "  --sizes LIST            cache sizes, such as 32K,1M,8M or 1K..64M (default, every half power of two)\n"
    "  --ways N                a set-associative cache of N ways (1 to 32); each size must then have a power "
    "of two\n"
    "                          of sets. Conflicts between lines of a set are counted within bursts only\n"
    "  --phase N               only windows of this phase (see cachegram phases)\n"
    "  --thread TID            only this thread's references\n"
    "  --threads together|separate\n"
    "                          all threads of a process share the cache (default), or each has one of that "
    "size\n"
    "                          for itself, as the first levels of most processors are\n"
    "  --function NAME         only references by this function, with what was inlined into it, named as "
    "for\n"
    "                          'cachegram annotate'; or by all that match a pattern, such as 'deflate*'\n"
    "  --object NAME           only references to this data object (hotspots --by object); or a "
    "pattern\n" CLI_OUTPUT_HELP "\n"
    "CSV columns: size_bytes,miss_ratio,ci_low,ci_high. An empty miss ratio: not enough samples.\n";

/* Sizes for a number of ways: a power of two of sets, from 1K (or one set) to 64M. */
static struct curve_point *points_of_ways(struct profile *p, unsigned ways, size_t *n, struct error *err)
{
    unsigned line_bytes;
    if (profile_line_bytes(p, &line_bytes, err) != 0)
        return NULL;
    struct curve_point *points = calloc(64, sizeof *points);
    if (!points) {
        error_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    *n = 0;
    for (double size = (double)line_bytes * ways; size <= 0x1p26 && *n < 64; size *= 2)
        if (size >= 1024)
            points[(*n)++].size_bytes = size;
    return points;
}

/* What --function and --object select. */
struct selection {
    const char *function, *object;
    char found[512]; /* the function that was selected first */
    int several;
};

static int selects(void *ctx, const struct analysis_hotspots *h, const struct analysis_hotspot *row)
{
    struct selection *s = ctx;
    if (!report_hotspot_is(h, row, s->function, s->object))
        return 0;
    const char *name = row->outer ? row->outer->function : "";
    if (!*s->found)
        snprintf(s->found, sizeof s->found, "%s", name);
    s->several |= strcmp(s->found, name) != 0;
    return 1;
}

/* The lines of a function that the compiler has inlined wherever it is called. */
static int selects_inlined(void *ctx, const struct analysis_hotspots *h, const struct analysis_hotspot *row)
{
    const struct selection *s = ctx;
    return report_hotspot_is_inlined(h, row, s->function) && report_hotspot_is(h, row, NULL, s->object);
}

/* The curve of a function or an object; the rest of *curve is that of the whole program. */
static int compute_selected(struct profile *p, const struct analysis_question *question,
                            struct selection *selection, struct analysis_curve *curve, struct error *err)
{
    struct analysis_hotspots_question hotspots = {
        .by = curve->function ? ANALYSIS_BY_FUNCTION : ANALYSIS_BY_NOTHING,
        .objects = curve->object != NULL,
        .separate = question->separate,
        .tid = question->tid,
        .phase = question->phase,
    };
    *selection = (struct selection){.function = curve->function, .object = curve->object};
    int code = analysis_hotspots_curve(p, curve->profile, &hotspots, selects, selection, curve->points,
                                       curve->n, &curve->selected, err);
    if (code == -ENODATA && curve->function) {
        hotspots.by = ANALYSIS_BY_LINE;
        code = analysis_hotspots_curve(p, curve->profile, &hotspots, selects_inlined, selection,
                                       curve->points, curve->n, &curve->selected, err);
    }
    if (code == 0 && !selection->several && *selection->found)
        curve->whole_name = selection->found;
    return code;
}

struct arguments {
    struct cli_output output;
    struct analysis_question question;
    const char *sizes; /* NULL: not given */
    struct analysis_curve curve;
};

/* 0, or the exit status of wrong usage. */
static int take_option(int opt, const char *value, struct arguments *a)
{
    static const char *const models[] = {"lru", "random", "statstack", NULL};
    uint64_t ways;
    int word;
    switch (opt) {
    case OPT_MODEL:
        if ((word = cli_word_option("mrc", "--model", value, models)) < 0)
            return 2;
        a->question.model = (enum analysis_model)word;
        return 0;
    case OPT_SIZES:
        a->sizes = value;
        return 0;
    case OPT_THREAD:
        return cli_number_option("mrc", "--thread", "thread", value, &a->question.tid);
    case OPT_THREADS:
        return (a->question.separate = cli_threads_option("mrc", value)) < 0 ? 2 : 0;
    case OPT_PHASE:
        return cli_number_option("mrc", "--phase", "phase", value, &a->question.phase);
    case OPT_FUNCTION:
        a->curve.function = value;
        return 0;
    case OPT_OBJECT:
        a->curve.object = value;
        return 0;
    default: /* OPT_WAYS */
        if (cli_whole_option("mrc", "--ways", value, 1, CURVE_SETS_WAYS, &ways) != 0)
            return 2;
        a->question.ways = (uint32_t)ways;
        return 0;
    }
}

/* Likewise. */
static int check_options(const struct arguments *a)
{
    const struct analysis_question *q = &a->question;
    int other_model = q->model != ANALYSIS_MODEL_LRU, selected = a->curve.function || a->curve.object;
    if (q->phase && (other_model || q->tid || q->ways))
        return cli_misuse("mrc", "--phase cannot be combined with --model, --thread or --ways");
    if (q->separate && other_model)
        return cli_misuse("mrc", "--threads separate cannot be combined with --model");
    if (selected && (other_model || q->ways))
        return cli_misuse("mrc", "--function and --object cannot be combined with --model or --ways");
    return 0;
}

static int compute(struct arguments *a, struct selection *selection, struct error *err)
{
    struct analysis_curve *curve = &a->curve;
    struct profile *p;
    int code = cli_open_profile(curve->profile, &p, err);
    if (code != 0)
        return code;
    if (!curve->points && !(curve->points = points_of_ways(p, a->question.ways, &curve->n, err)))
        code = -ENOMEM;
    if (code == 0)
        code = analysis_curve_compute(p, &a->question, curve, err);
    if (code == 0 && (curve->function || curve->object))
        code = compute_selected(p, &a->question, selection, curve, err);
    /* Closed before printing: a pager that waits must not block a recording. */
    profile_close(p, 0, NULL);
    return code;
}

static void print(const struct arguments *a)
{
    struct report_style style = report_style_of(stdout, a->output.color);
    if (a->output.format == REPORT_CSV)
        report_curve_csv(stdout, &a->curve);
    else if (a->output.format == REPORT_JSON)
        report_curve_json(stdout, &a->curve);
    else
        report_curve_text(stdout, &a->curve, &style);
}

int cmd_mrc(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"mrc", usage, ":h", options, NULL};
    struct arguments a = {.output = {.format = REPORT_TEXT}, .question = {.model = ANALYSIS_MODEL_LRU}};
    struct selection selection; /* the curve points to its name */
    struct error err;
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, &a.output, &status)) != 0)
        if (take_option(opt, optarg, &a) != 0)
            return 2;
    if (status >= 0)
        return status;
    if (check_options(&a) != 0 || !(a.curve.profile = cli_one_file("mrc", argc, argv)))
        return 2;
    if (a.sizes || !a.question.ways) {
        a.curve.points = cli_points(a.sizes ? a.sizes : CLI_DEFAULT_SIZES, &a.curve.n, &err);
        if (!a.curve.points)
            return cli_misuse("mrc", "%s", err.text);
    }
    int code = compute(&a, &selection, &err);
    if (code == 0)
        print(&a);
    free(a.curve.points);
    return code == 0 ? 0 : cli_fail(&err);
}
