/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-hotspots.c - `cachegram hotspots`: misses by function, line, module or instruction. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "cli/levels.h"
#include "report/hotspots.h"

#define DEFAULT_SIZE (1u << 20)
#define DEFAULT_ROWS 20 /* in text */

enum {
    OPT_SIZE = 1,
    OPT_BY,
    OPT_SORT,
    OPT_LIMIT,
    OPT_PERCENT,
    OPT_COMM,
    OPT_THREADS,
    OPT_TID,
    OPT_WRAPPERS,
    OPT_DSO,
    OPT_PHASE,
    OPT_MACHINE,
    OPT_CALL_GRAPH
};

static const struct option options[] = {
    {"size", required_argument, NULL, OPT_SIZE},
    {"by", required_argument, NULL, OPT_BY},
    {"sort", required_argument, NULL, OPT_SORT},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"percent-limit", required_argument, NULL, OPT_PERCENT},
    {"comm", required_argument, NULL, OPT_COMM},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"tid", required_argument, NULL, OPT_TID},
    {"alloc-wrappers", required_argument, NULL, OPT_WRAPPERS},
    {"dso", required_argument, NULL, OPT_DSO},
    {"phase", required_argument, NULL, OPT_PHASE},
    {"machine", required_argument, NULL, OPT_MACHINE},
    {"call-graph", no_argument, NULL, OPT_CALL_GRAPH},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram hotspots [OPTIONS] [FILE]\n"
    "\n"
    "Prints which code misses in a cache of one size, and on which data, from the profile FILE (default\n"
    "cachegram.db): each function's share of all misses, its miss ratio, and its share of all references.\n"
    "\n"
    "  --size SIZE             of the cache, such as 32K or 1M (default 1M)\n"
    "  --by function|line|module|insn|object|field\n"
    "                          what a row is (default function). A function includes what was inlined\n"
    "                          into it; an object is a variable, a stack, a mapped file, ...; field: also\n"
    "                          by field of structures. function,object: a pair of both; function,field\n"
    "                          likewise\n"
    "  --sort misses|ratio|refs|name|stall\n"
    "                          order of the rows (default misses)\n"
    "  --limit N               at most so many rows; 0: all (default 20 in text, all in csv and json)\n"
    "  --percent-limit P       only rows with at least P% of the misses\n"
    "  --comm NAME             only processes that ran this executable\n"
    "  --threads together|separate\n"
    "                          one cache for all threads of a process (default), or one for each, as\n"
    "                          first-level caches usually are\n"
    "  --tid TID               only this thread\n"
    "  --phase N               only this phase of 'cachegram phases', from its bursts\n"
    "  --alloc-wrappers NAME,...\n"
    "                          functions that allocate for others, besides the usual ones such as xmalloc:\n"
    "                          blocks are named by their callers. Names may be patterns, such as my_*\n"
    "  --machine NAME|FILE     also estimate each row's share of the time that misses cost on that machine:\n"
    "                          the misses in each of its caches times the additional cycles of the next\n"
    "                          level (cachegram machine --list, --output)\n"
    "  --call-graph            also the call paths by which the misses of each row were reached\n"
    "  --dso FILE              only code (--by object: data) of this executable or library\n" CLI_OUTPUT_HELP
    "  --format collapsed      collapsed stacks for flame graphs, by line unless --by says otherwise:\n"
    "                          module;function;inlined function;file:line and millionths of all misses;\n"
    "                          with --call-graph the callers come first, instead of the module\n"
    "\n"
    "CSV columns: function,file,line,object,refs_share,size_bytes,miss_ratio,miss_share,stall_share,module,\n"
    "offset,inlined_into,misses_per_1000_refs,recorded_refs,miss_share_low,miss_share_high,miss_ratio_low,\n"
    "miss_ratio_high,enough_samples,object_kind,object_module,object_offset,object_size,field,field_type,\n"
    "line_used_share,stride_bytes,conflict_share. stall_share: only with --machine; columns that\n"
    "--by does not ask for are empty. With --call-graph, a row has one line for each call path, innermost\n"
    "call first, and columns call_path, call_share (of the row's misses).\n";

struct arguments {
    struct cli_output output;
    struct analysis_hotspots_question question;
    struct report_hotspots_view view;
    int limited, by_given;
    const char *machine; /* NULL: not given */
};

/* 0, or the exit status of wrong usage. */
static int take_option(int opt, const char *value, struct arguments *a)
{
    static const char *const sort[] = {"misses", "ratio", "refs", "name", "stall", NULL};
    uint64_t number;
    int word;
    switch (opt) {
    case OPT_SIZE:
        if (cli_size_option("hotspots", NULL, value, &number) != 0)
            return 2;
        a->question.size_bytes = (double)number;
        return 0;
    case OPT_BY:
        a->by_given = 1;
        return cli_by_option("hotspots", value, &a->question);
    case OPT_SORT:
        if ((word = cli_word_option("hotspots", "--sort", value, sort)) < 0)
            return 2;
        a->view.sort = (enum report_hotspots_sort)word;
        return 0;
    case OPT_LIMIT:
        if (cli_parse_whole(value, UINT32_MAX, &number) != 0)
            return cli_misuse("hotspots", "--limit %s: must be a number of rows; 0: all", value);
        a->view.limit = (size_t)number;
        a->limited = 1;
        return 0;
    case OPT_PERCENT:
        return cli_percent_limit_option("hotspots", value, &a->view.least_percent);
    case OPT_COMM:
        a->question.comm = value;
        return 0;
    case OPT_THREADS:
        return (a->question.separate = cli_threads_option("hotspots", value)) < 0 ? 2 : 0;
    case OPT_TID:
        return cli_number_option("hotspots", "--tid", "thread", value, &a->question.tid);
    case OPT_PHASE:
        return cli_number_option("hotspots", "--phase", "phase", value, &a->question.phase);
    case OPT_MACHINE:
        a->machine = value;
        return 0;
    case OPT_CALL_GRAPH:
        a->question.calls = 1;
        return 0;
    case OPT_WRAPPERS:
        a->question.wrappers = value;
        return 0;
    default:
        a->view.dso = value;
        return 0;
    }
}

/* 0, or 2 after a message. */
static int check_arguments(const struct arguments *a)
{
    if (a->view.sort == REPORT_SORT_STALL && !a->machine)
        return cli_misuse("hotspots", "--sort stall needs --machine, which says what misses cost");
    if (a->question.calls && a->question.separate)
        return cli_misuse("hotspots", "--call-graph cannot be combined with --threads separate");
    if (a->question.calls && a->question.by == ANALYSIS_BY_NOTHING)
        return cli_misuse("hotspots", "--call-graph needs rows of code, such as --by function,object");
    return 0;
}

/* Whether there is what was asked for. 0 or -ENODATA. */
static int check_rows(const char *file, const struct arguments *a, const struct analysis_hotspots *hotspots,
                      struct error *err)
{
    int data = a->question.by == ANALYSIS_BY_NOTHING;
    if (a->question.calls && hotspots->ncalls == 0)
        return error_set(err, -ENODATA, "the profile '%s' holds no call paths: record with --call-graph on",
                         file);
    if (a->view.dso && !report_hotspots_have_file(hotspots, a->view.dso))
        return error_set(
            err, -ENODATA,
            "the profile '%s' holds no %s of the file '%s'; 'cachegram hotspots --by %s' lists %s", file,
            data ? "data" : "code", a->view.dso, data ? "object" : "module",
            data ? "the data that it has" : "the files that it has");
    return 0;
}

static int compute(const char *file, const struct arguments *a, struct analysis_hotspots *hotspots,
                   struct error *err)
{
    const struct analysis_hotspots_question *q = &a->question;
    struct cli_levels levels;
    struct profile *p;
    int code = a->machine ? cli_find_levels(a->machine, &levels, err) : 0;
    if (code == 0)
        code = cli_open_profile(file, &p, err);
    if (code != 0)
        return code;
    code = analysis_hotspots(p, file, q, hotspots, err);
    if (code == 0) {
        if (a->machine)
            code = analysis_hotspots_stall(p, q, levels.list, levels.n, hotspots, err);
        if (code == 0)
            analysis_hotspots_widen(p, q, hotspots);
        if (code == 0)
            code = check_rows(file, a, hotspots, err);
        if (code != 0)
            analysis_hotspots_clear(hotspots);
    }
    /* Closed before printing: a pager that waits must not block a recording. */
    profile_close(p, 0, NULL);
    return code;
}

int cmd_hotspots(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"hotspots", usage, ":h", options, "collapsed"};
    struct arguments a = {.output = {.format = REPORT_TEXT}, .question = {.size_bytes = DEFAULT_SIZE}};
    struct analysis_hotspots hotspots;
    struct error err;
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, &a.output, &status)) != 0)
        if (take_option(opt, optarg, &a) != 0)
            return 2;
    if (status >= 0)
        return status;
    int collapsed = a.output.other_format;
    if (collapsed && !a.by_given)
        a.question.by = ANALYSIS_BY_LINE;
    if (check_arguments(&a) != 0)
        return 2;
    const char *file = cli_one_file("hotspots", argc, argv);
    if (!file)
        return 2;
    if (compute(file, &a, &hotspots, &err) != 0)
        return cli_fail(&err);
    if (!a.limited && a.output.format == REPORT_TEXT && !collapsed)
        a.view.limit = DEFAULT_ROWS;
    size_t left_out = report_hotspots_select(&hotspots, &a.view);
    if (collapsed)
        report_hotspots_collapsed(stdout, &hotspots);
    else
        report_hotspots(stdout, &hotspots, left_out, a.output.format);
    analysis_hotspots_clear(&hotspots);
    return 0;
}
