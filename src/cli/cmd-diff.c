/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-diff.c - `cachegram diff`: what changed between two profiles. */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/difference.h"
#include "base/sizes.h"
#include "cli/diff-page.h"
#include "cli/diff-parts.h"
#include "cli/page-data.h"
#include "report/difference.h"

#define CONDITIONS_MAX 64u
#define TEXT_ROWS 20u
#define STATUS_CONDITION 3

/* In text they must fit a line. */
#define PHASE_SIZES "32K,256K,1M,4M,16M"

enum { OPT_SIZES = 1, OPT_BY, OPT_SIZE, OPT_LIMIT, OPT_FAIL_IF, OPT_THREADS };

static const struct option options[] = {
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"by", required_argument, NULL, OPT_BY},
    {"size", required_argument, NULL, OPT_SIZE},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"fail-if", required_argument, NULL, OPT_FAIL_IF},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram diff [OPTIONS] BEFORE AFTER\n"
    "\n"
    "Prints how the miss ratio changed from the profile BEFORE to the profile AFTER, by cache size, and\n"
    "which functions, data objects and phases changed. Changes are significant if their 95% interval does\n"
    "not contain 0. --format json has all of this, csv the curves only.\n"
    "\n"
    "  --sizes LIST            cache sizes, such as 32K,1M,8M or 1K..64M (default, every half power of two;\n"
    "                          text shows some of these)\n"
    "  --by function|object|phase\n"
    "                          only this part, with all rows: misses per 1000 references by function or\n"
    "                          data object, at one cache size; or the phases of both, paired by their\n"
    "                          code, by cache size (default " PHASE_SIZES ")\n"
    "  --size SIZE             with --by function or object: that size (default 1M)\n"
    "  --limit N               likewise: at most N rows in text; 0: all (default 20)\n"
    "  --threads together|separate\n"
    "                          one cache for all threads of a process (default), or one for each, as\n"
    "                          first-level caches usually are\n"
    "  --fail-if CONDITION     exit status 3 if it holds; can be repeated. 'mr@1M > 5%' is about the miss\n"
    "                          ratio in AFTER; 'mr@1M > +0.5%', with a sign, about the change in percentage\n"
    "                          points, which must be significant. Operators: > < >= <=\n" CLI_OUTPUT_HELP
    "  --format html           a page for the browser: both curves, functions, data, phases; it is one file\n"
    "                          that loads nothing from the network\n"
    "  -o, --output FILE       with --format html: the page (default: standard output)\n"
    "\n"
    "CSV columns: size_bytes,before,after,delta,significant,delta_low,delta_high; with --by function:\n"
    "function,module and the same; --by object: object,module and the same; with --by phase:\n"
    "phase_before,phase_after,alike,refs_share_before,refs_share_after and the same. Empty: not enough "
    "samples,\n"
    "or the phase has no counterpart.\n";

struct condition {
    const char *text;
    double size_bytes;
    int greater, or_equal;
    int of_change;    /* with a sign: of the change, otherwise of the value after */
    double threshold; /* a ratio */
};

struct arguments {
    struct cli_output output;
    const char *sizes;
    const char *page; /* file for --format html; NULL: standard output */
    int by_function, by_object, by_phase, limited, sized;
    int separate; /* a cache for each thread */
    uint64_t size_bytes, limit;
    struct condition conditions[CONDITIONS_MAX];
    size_t nconditions;
};

static const char *skip_spaces(const char *s)
{
    return s + strspn(s, " \t");
}

/* 0, or -1: not a condition. */
static int parse_condition(const char *text, struct condition *c)
{
    char size[SIZE_TEXT];
    uint64_t bytes;
    char *end;
    const char *s = skip_spaces(text);
    if (strncmp(s, "mr@", 3) != 0)
        return -1;
    s += 3;
    size_t length = strcspn(s, " \t<>=");
    if (length == 0 || length >= sizeof size)
        return -1;
    snprintf(size, sizeof size, "%.*s", (int)length, s);
    if (size_parse(size, &bytes, NULL) != 0)
        return -1;
    s = skip_spaces(s + length);
    if (*s != '>' && *s != '<')
        return -1;
    *c = (struct condition){.text = text, .size_bytes = (double)bytes, .greater = *s == '>'};
    c->or_equal = *++s == '=';
    s = skip_spaces(s + c->or_equal);
    c->of_change = *s == '+' || *s == '-';
    if (!strchr("0123456789.", s[c->of_change]) || !s[c->of_change])
        return -1;
    c->threshold = strtod(s, &end);
    if (*end == '%') {
        c->threshold /= 100;
        end++;
    }
    return *skip_spaces(end) == '\0' && isfinite(c->threshold) ? 0 : -1;
}

/* 0, or the exit status of wrong usage. */
static int take_option(int opt, const char *value, struct arguments *a)
{
    static const char *const parts[] = {"function", "object", "phase", NULL};
    int word;
    switch (opt) {
    case 'o':
        a->page = value;
        return 0;
    case OPT_SIZES:
        a->sizes = value;
        return 0;
    case OPT_BY:
        word = cli_word_option("diff", "--by", value, parts);
        a->by_function = word == 0;
        a->by_object = word == 1;
        a->by_phase = word == 2;
        return word < 0 ? 2 : 0;
    case OPT_SIZE:
        a->sized = 1;
        return cli_size_option("diff", NULL, value, &a->size_bytes);
    case OPT_LIMIT:
        a->limited = 1;
        return cli_parse_whole(value, UINT32_MAX, &a->limit) != 0
                   ? cli_misuse("diff", "--limit %s: must be a number of rows; 0: all", value)
                   : 0;
    case OPT_THREADS:
        return (a->separate = cli_threads_option("diff", value)) < 0 ? 2 : 0;
    default:
        if (a->nconditions == CONDITIONS_MAX)
            return cli_misuse("diff", "--fail-if: at most %u conditions", CONDITIONS_MAX);
        if (parse_condition(value, &a->conditions[a->nconditions]) != 0)
            return cli_misuse("diff", "--fail-if %s: must be a condition such as 'mr@1M > +0.5%%'", value);
        if (fabs(a->conditions[a->nconditions++].threshold) > 1)
            return cli_misuse("diff",
                              "--fail-if %s: must be a condition on a ratio of at most 1, or a percentage of "
                              "at most 100%%, such as 5%%",
                              value);
        return 0;
    }
}

/* 0, or 2 after a message. */
static int check_arguments(int argc, char **argv, const struct arguments *a)
{
    if (argc - optind != 2)
        return cli_misuse("diff", "two profiles are needed, before and after%s%s",
                          argc - optind > 2 ? "; surplus: " : "", argc - optind > 2 ? argv[optind + 2] : "");
    int by_size = !a->by_function && !a->by_object; /* sizes are rows or columns */
    if (a->output.other_format && (a->by_phase || !by_size))
        return cli_misuse("diff", "--format html has functions, data and phases, too: it needs no --by");
    if (a->page && !a->output.other_format)
        return cli_misuse("diff", "--output needs --format html");
    if (!by_size && a->sizes)
        return cli_misuse("diff", "--by %s is for one cache size: --size instead of --sizes",
                          a->by_function ? "function" : "object");
    if (by_size && (a->sized || a->limited))
        return cli_misuse("diff", "%s needs --by function or object", a->sized ? "--size" : "--limit");
    return 0;
}

static int read_curve(const char *file, int separate, struct analysis_curve *curve, struct error *err)
{
    const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU, .separate = separate};
    struct profile *p;
    int code = cli_open_profile(file, &p, err);
    if (code != 0)
        return code;
    curve->profile = file;
    code = analysis_curve_compute(p, &question, curve, err);
    profile_close(p, 0, NULL);
    return code;
}

/* Both curves at the sizes of the list and of the conditions, and their changes; the caller frees points of
 * both and *changes. */
static int compare_curves(char **files, const struct arguments *a, struct analysis_curve curves[2],
                          struct analysis_change **changes, struct error *err)
{
    char *list = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&list, &bytes);
    int code = 0;
    if (!memory)
        return error_set(err, -ENOMEM, "out of memory");
    fputs(a->sizes ? a->sizes : CLI_DEFAULT_SIZES, memory);
    for (size_t i = 0; i < a->nconditions; i++)
        fprintf(memory, ",%.0f", a->conditions[i].size_bytes);
    if (fclose(memory) != 0)
        code = error_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < 2 && code == 0; i++) {
        curves[i].points = cli_points(list, &curves[i].n, err);
        code = curves[i].points ? read_curve(files[i], a->separate, &curves[i], err) : -EINVAL;
    }
    free(list);
    if (code == 0)
        code = cli_check_lines(files[0], curves[0].line_bytes, files[1], curves[1].line_bytes, err);
    if (code == 0 && !(*changes = calloc(curves[0].n, sizeof **changes)))
        code = error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; code == 0 && i < curves[0].n; i++)
        (*changes)[i] = analysis_change_of(&curves[0].points[i], &curves[1].points[i]);
    return code;
}

static int is_beyond(const struct condition *c, double value)
{
    if (c->or_equal && value == c->threshold)
        return 1;
    return c->greater ? value > c->threshold : value < c->threshold;
}

/* Reports each condition that holds, or that cannot be decided. Returns the exit status. */
static int check_conditions(const struct arguments *a, const struct analysis_curve *after,
                            const struct analysis_change *changes)
{
    int status = 0;
    for (size_t i = 0; i < a->nconditions; i++) {
        const struct condition *c = &a->conditions[i];
        size_t k = 0;
        while (k + 1 < after->n && after->points[k].size_bytes != c->size_bytes)
            k++;
        double value = c->of_change ? changes[k].delta : changes[k].after;
        if (isnan(value)) {
            fprintf(stderr, "cachegram: diff: '%s' cannot be decided: not enough samples at this size\n",
                    c->text);
            status = status ? status : 1;
        } else if (is_beyond(c, value) && (!c->of_change || changes[k].significant)) {
            fprintf(stderr,
                    c->of_change ? "cachegram: diff: '%s' holds: the change is %+.3f points\n"
                                 : "cachegram: diff: '%s' holds: the miss ratio is %.3f%%\n",
                    c->text, 100 * value);
            status = STATUS_CONDITION;
        }
    }
    return status;
}

static int open_both(char **files, struct profile *profiles[2], struct error *err)
{
    unsigned lines[2] = {0, 0};
    int code = 0;
    for (int i = 0; i < 2 && code == 0; i++) {
        code = cli_open_profile(files[i], &profiles[i], err);
        if (code == 0)
            code = profile_line_bytes(profiles[i], &lines[i], err);
    }
    return code == 0 ? cli_check_lines(files[0], lines[0], files[1], lines[1], err) : code;
}

static int print_functions(char **files, const struct arguments *a, struct error *err)
{
    struct profile *profiles[2] = {NULL, NULL};
    struct diff_table table;
    int code = open_both(files, profiles, err);
    if (code == 0)
        code = diff_table_load(profiles, (const char *const[]){files[0], files[1]}, (double)a->size_bytes,
                               a->separate, a->by_object, &table, err);
    for (int i = 0; i < 2; i++)
        profile_close(profiles[i], 0, NULL);
    if (code != 0)
        return code;
    struct report_functions view = {files[0],
                                    files[1],
                                    (double)a->size_bytes,
                                    &table.changes,
                                    a->limited ? (size_t)a->limit : TEXT_ROWS,
                                    a->by_object,
                                    a->separate};
    report_function_difference(stdout, &view, a->output.format);
    diff_table_clear(&table);
    return 0;
}

static int print_phases(char **files, const struct arguments *a, struct error *err)
{
    struct profile *profiles[2] = {NULL, NULL};
    struct analysis_phase_difference difference = {0};
    struct report_phases view = {
        .before = files[0], .after = files[1], .separate = a->separate, .difference = &difference};
    struct curve_point *points = cli_points(a->sizes ? a->sizes : PHASE_SIZES, &view.npoints, err);
    view.points = points;
    int code = points ? open_both(files, profiles, err) : -EINVAL;
    if (code == 0)
        code = analysis_phase_difference(profiles, (const char *const[]){files[0], files[1]}, a->separate,
                                         points, view.npoints, &difference, err);
    if (code == 0)
        report_phase_difference(stdout, &view, a->output.format);
    analysis_phase_difference_clear(&difference);
    for (int i = 0; i < 2; i++)
        profile_close(profiles[i], 0, NULL);
    free(points);
    return code;
}

static int print_page(const struct report_curves *curves, const char *file, struct error *err)
{
    char *json;
    int code = diff_page_data(curves, &json, err);
    if (code == 0)
        code = page_write(file ? file : "-", json, err);
    free(json);
    return code;
}

int cmd_diff(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"diff", usage, ":o:h", options, "html"};
    struct arguments a = {.output = {.format = REPORT_TEXT}, .size_bytes = 1u << 20};
    struct analysis_curve curves[2] = {{0}};
    struct analysis_change *changes = NULL;
    struct error err;
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, &a.output, &status)) != 0)
        if ((status = take_option(opt, optarg, &a)) != 0)
            return status;
    if (status >= 0)
        return status;
    if ((status = check_arguments(argc, argv, &a)) != 0)
        return status;
    if (a.sizes) {
        uint64_t *sizes;
        size_t n;
        if (size_parse_list(a.sizes, &sizes, &n, &err) != 0)
            return cli_misuse("diff", "%s", err.text);
        free(sizes);
    }
    int code = 0;
    if ((!a.by_function && !a.by_object && !a.by_phase) || a.nconditions)
        code = compare_curves(argv + optind, &a, curves, &changes, &err);
    if (code == 0 && (a.by_function || a.by_object))
        code = print_functions(argv + optind, &a, &err);
    else if (code == 0 && a.by_phase)
        code = print_phases(argv + optind, &a, &err);
    else if (code == 0 && a.output.other_format)
        code = print_page(&(struct report_curves){&curves[0], &curves[1], changes}, a.page, &err);
    else if (code == 0 && a.output.format == REPORT_CSV)
        report_difference(stdout, &(struct report_curves){&curves[0], &curves[1], changes}, REPORT_CSV);
    else if (code == 0)
        code = diff_parts_print(&(struct report_curves){&curves[0], &curves[1], changes}, a.sizes != NULL,
                                a.output.format, &err);
    status = code != 0 ? cli_fail(&err) : a.nconditions ? check_conditions(&a, &curves[1], changes) : 0;
    free(curves[0].points);
    free(curves[1].points);
    free(changes);
    return status;
}
