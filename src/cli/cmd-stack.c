/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-stack.c - `cachegram stack`: the exact LRU curve of a trace by stack distances. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sizes.h"
#include "cli/progress.h"
#include "cli/trace-stack.h"
#include "report/stack.h"
#include "sim/stackset.h"
#include "trace/trace.h"

enum { OPT_SIZES = 1, OPT_LINE, OPT_THREADS, OPT_SHARDS, OPT_JOBS, OPT_FROM };

static const struct option options[] = {
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"line", required_argument, NULL, OPT_LINE},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"shards", required_argument, NULL, OPT_SHARDS},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"from", required_argument, NULL, OPT_FROM},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram stack [OPTIONS] TRACE\n"
    "\n"
    "Prints the miss ratio of a fully associative LRU cache as a function of its size, from the stack\n"
    "distances of all references of TRACE (- is standard input).\n"
    "\n"
    "  --sizes LIST            cache sizes, such as 32K,1M,8M or 1K..64M (default, every half power of two)\n"
    "  --line LIST             line sizes in bytes, such as 64 (default) or 32,64,128: a curve for each\n"
    "  --threads together|separate  one cache for all threads (default), or one for each\n"
    "  --shards RATE           use this share of the lines only, such as 0.01; reports an interval\n"
    "  --jobs N                threads that compute (default: one per core)\n"
    "  --from FORMAT           format of TRACE (default: by its first bytes; 'cachegram import --help' lists "
    "them)\n" CLI_OUTPUT_HELP "\n"
    "CSV columns: size_bytes,miss_ratio,ci_low,ci_high,line_bytes,pid,tid. Pid and tid are empty unless "
    "threads\n"
    "are separate. An empty miss ratio: not enough samples.\n"
    "Interrupted by Ctrl-C, it prints the results of what it has read.\n";

struct stack_options {
    struct cli_output output;
    const char *sizes, *from;
    unsigned *line_bytes;
    size_t nlines;
    int separate;
    double rate;
    uint64_t jobs;
};

/* --- options: 0, or 2 after a message --- */

static int parse_lines(const char *text, struct stack_options *o)
{
    struct error err;
    uint64_t *list;
    size_t n;
    if (size_parse_list(text, &list, &n, &err) < 0)
        return cli_misuse("stack", "%s", err.text);
    free(o->line_bytes);
    o->line_bytes = malloc(n * sizeof *o->line_bytes);
    o->nlines = n;
    int status = o->line_bytes ? 0 : cli_misuse("stack", "out of memory");
    for (size_t i = 0; i < n && status == 0; i++) {
        if (list[i] < 8 || list[i] > 4096 || (list[i] & (list[i] - 1)) != 0)
            status = cli_misuse("stack", "--line %s: must be powers of two from 8 to 4096 bytes", text);
        else
            o->line_bytes[i] = (unsigned)list[i];
    }
    free(list);
    return status;
}

static int parse_option(int opt, const char *value, struct stack_options *o)
{
    char *end;
    int word;
    switch (opt) {
    case OPT_SIZES:
        o->sizes = value;
        return 0;
    case OPT_LINE:
        return parse_lines(value, o);
    case OPT_THREADS:
        o->separate = (word = cli_threads_option("stack", value)) == 1;
        return word < 0 ? 2 : 0;
    case OPT_SHARDS:
        o->rate = strtod(value, &end);
        if (end != value && *end == '\0' && o->rate > 0 && o->rate <= 1)
            return 0;
        return cli_misuse("stack", "--shards %s: must be above 0 and at most 1", value);
    case OPT_JOBS:
        return cli_whole_option("stack", "--jobs", value, 1, 1024, &o->jobs);
    default:
        o->from = value;
        return 0;
    }
}

/* --- results --- */

static int make_curve(const struct stackset_result *result, double rate, struct report_stack_curve *curve,
                      const struct curve_point *sizes, size_t n, struct error *err)
{
    curve->line_bytes = result->line_bytes;
    curve->touches = result->touches;
    curve->sampled = result->sampled;
    curve->lines = result->lines;
    curve->cold = result->cold;
    curve->points = malloc(n * sizeof *curve->points);
    if (!curve->points)
        return error_set(err, -ENOMEM, "out of memory for the curves");
    memcpy(curve->points, sizes, n * sizeof *sizes);
    if (rate >= 1)
        return curve_exact(result->stack, result->cold, result->line_bytes, curve->points, n, err);
    struct curve_sample sample = {
        .rate = rate, .touches = result->touches, .stack = result->stack, .cold = result->cold};
    memcpy(sample.group_stack, result->group_stack, sizeof sample.group_stack);
    memcpy(sample.group_cold, result->group_cold, sizeof sample.group_cold);
    return curve_sampled(&sample, result->line_bytes, curve->points, n, err);
}

static int print_results(const struct stackset *set, const struct trace_reader *r, const char *file,
                         uint64_t references, const struct stack_options *o, const struct curve_point *sizes,
                         size_t n, struct error *err)
{
    struct report_style style = report_style_of(stdout, o->output.color);
    size_t ncurves = stackset_results(set);
    struct report_stack_curve *curves = calloc(ncurves + 1, sizeof *curves);
    int status = curves ? 0 : error_set(err, -ENOMEM, "out of memory for the curves");
    for (size_t i = 0; i < ncurves && status == 0; i++) {
        struct stackset_result result = stackset_result(set, i);
        curves[i].thread = trace_thread(r, result.thread);
        status = make_curve(&result, o->rate, &curves[i], sizes, n, err);
    }
    if (status == 0) {
        struct report_stack report = {.trace = file,
                                      .references = references,
                                      .separate = o->separate,
                                      .rate = o->rate,
                                      .memory_bytes = stackset_memory_bytes(set),
                                      .npoints = n,
                                      .ncurves = ncurves,
                                      .curves = curves};
        report_stack(stdout, &report, o->output.format, &style);
    }
    for (size_t i = 0; curves && i < ncurves; i++)
        free(curves[i].points);
    free(curves);
    return status;
}

static int run(const char *file, const struct stack_options *o, const struct curve_point *sizes, size_t n)
{
    struct stackset_options set_options = {.line_bytes = o->line_bytes,
                                           .nlines = o->nlines,
                                           .separate = o->separate,
                                           .rate = o->rate,
                                           .workers = (unsigned)o->jobs};
    struct stackset *set = NULL;
    struct error err;
    uint64_t references = 0;
    struct trace_reader *r = trace_open(file, o->from, &err);
    int status = r && (set = stackset_new(&set_options, &err)) ? 0 : -1;
    if (status == 0)
        status = trace_stack_read("stack", set, r, o->separate, &references, &err);
    if (status >= 0 && references == 0)
        status = trace_damage(r) ? error_set(&err, -EBADMSG, "%s", trace_damage(r)->text)
                                 : error_set(&err, -ENODATA, "%s holds no references", file);
    if (status >= 0)
        status = print_results(set, r, file, references, o, sizes, n, &err);
    int code = status < 0 ? cli_fail(&err) : 0;
    if (status >= 0 && trace_info(r)->sampled)
        fprintf(stderr,
                "cachegram: warning: %s holds bursts, with gaps between them: distances do not include what "
                "was touched in the gaps\n",
                file);
    if (status >= 0 && cli_interrupted()) {
        fprintf(stderr, "cachegram: interrupted: the results are those of the first %llu references\n",
                (unsigned long long)references);
        code = cli_interrupt_status();
    } else if (status >= 0 && trace_damage(r)) {
        error_set(&err, -EBADMSG, "%s; the results are those of the references before that",
                  trace_damage(r)->text);
        code = cli_fail(&err);
    }
    stackset_free(set);
    trace_close(r);
    return code;
}

/* -1, or the exit status if the command is to end now. */
static int take_options(int argc, char **argv, struct stack_options *o)
{
    static const struct cli_syntax syntax = {"stack", usage, ":h", options, NULL};
    int opt, status = parse_lines("64", o);
    if (status != 0)
        return status;
    while ((opt = cli_next_option(&syntax, argc, argv, &o->output, &status)) != 0)
        if (parse_option(opt, optarg, o) != 0)
            return 2;
    return status < 0 && !cli_one_trace("stack", argc, argv) ? 2 : status;
}

int cmd_stack(int argc, char **argv)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct stack_options o = {.output = {.format = REPORT_TEXT},
                              .sizes = CLI_DEFAULT_SIZES,
                              .rate = 1,
                              .jobs = cores > 0 ? (uint64_t)cores : 1};
    struct error err;
    int status = take_options(argc, argv, &o);
    if (status < 0) {
        size_t n;
        struct curve_point *sizes = cli_points(o.sizes, &n, &err);
        status = sizes ? run(argv[optind], &o, sizes, n) : cli_misuse("stack", "%s", err.text);
        free(sizes);
    }
    free(o.line_bytes);
    return status;
}
