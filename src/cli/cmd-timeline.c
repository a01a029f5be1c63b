/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-timeline.c - `cachegram timeline` and `cachegram phases`: the miss ratio over time, and of phases. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/phase-variation.h"
#include "report/timeline.h"

enum { OPT_SIZES = 1, OPT_AXIS, OPT_COMM, OPT_TID, OPT_THREADS };

static const struct option options[] = {
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"comm", required_argument, NULL, OPT_COMM},
    {"tid", required_argument, NULL, OPT_TID},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const struct option timeline_options[] = {
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"axis", required_argument, NULL, OPT_AXIS},
    {"comm", required_argument, NULL, OPT_COMM},
    {"tid", required_argument, NULL, OPT_TID},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

#define SIZES_HELP                                                                                           \
    "  --sizes LIST            cache sizes, such as 32K,1M,8M or 1K..64M (default, every power of two from " \
    "1K)\n"

#define SELECTION_HELP                                                    \
    "  --comm NAME             only processes that ran this executable\n" \
    "  --tid TID               only this thread\n"                        \
    "  --threads together|separate\n"                                     \
    "                          one cache for all threads (default), or one for each\n"

static const char timeline_usage[] =
    "usage: cachegram timeline [OPTIONS] [FILE]\n"
    "\n"
    "Draws the miss ratio over time and cache size, and the phases, from the profile FILE (default\n"
    "cachegram.db). Windows recorded in full mode are exact; others have the miss ratios of their own\n"
    "bursts or, if they have none, those of their phase.\n"
    "\n" SIZES_HELP "  --axis refs|time        columns of the picture have equally many references "
    "(default), or are equally\n"
    "                          long in elapsed time\n" SELECTION_HELP CLI_OUTPUT_HELP "\n"
    "CSV columns: window,start_refs,refs,start_ns,phase,size_bytes,miss_ratio,process,tid,exact,end_ns,\n"
    "bursts,cpu_ns; one row for each window of each thread and each size. An empty miss ratio: not enough\n"
    "samples; an empty cpu_ns: not known, in full mode.\n";

static const char phases_usage[] =
    "usage: cachegram phases [OPTIONS] [FILE]\n"
    "\n"
    "Lists the phases of the profile FILE (default cachegram.db): windows of time that execute the same\n"
    "code and use data alike. mrc --phase N prints the whole curve of one, with intervals.\n"
    "Variation within a phase is printed if it is significant: transition (the first windows after the "
    "phase\n"
    "was entered differ from the others), instance (it differs each time it is entered), or periodic (it\n"
    "repeats itself after some windows).\n"
    "\n" SIZES_HELP SELECTION_HELP CLI_OUTPUT_HELP "\n"
    "CSV columns: phase,windows,refs,size_bytes,miss_ratio,bursts,variation,cpu_ns. An empty phase: windows\n"
    "whose code is not known; an empty miss ratio: not enough samples; an empty cpu_ns: not known, in full\n"
    "mode. variation: one of these words, or several with + between, each at the size where it was found.\n";

static int run(const char *command, const char *usage, int argc, char **argv, int phases)
{
    const struct cli_syntax syntax = {command, usage, ":h", phases ? options : timeline_options, NULL};
    struct analysis_selection selection = {0};
    struct analysis_timeline timeline = {0};
    enum analysis_axis axis = ANALYSIS_AXIS_REFS;
    struct cli_output output = {.format = REPORT_TEXT};
    const char *sizes = CLI_TIMELINE_SIZES;
    struct profile *p;
    struct error err;
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, &output, &status)) != 0)
        if (opt == OPT_SIZES)
            sizes = optarg;
        else if (opt == OPT_COMM)
            selection.comm = optarg;
        else if (opt == OPT_TID) {
            if (cli_number_option(command, "--tid", "thread", optarg, &selection.tid) != 0)
                return 2;
        } else if (opt == OPT_THREADS) {
            if ((timeline.separate = cli_threads_option(command, optarg)) < 0)
                return 2;
        } else if (strcmp(optarg, "time") == 0 || strcmp(optarg, "refs") == 0)
            axis = optarg[0] == 't' ? ANALYSIS_AXIS_TIME : ANALYSIS_AXIS_REFS;
        else
            return cli_misuse(command, "--axis %s: must be refs or time", optarg);
    if (status >= 0)
        return status;
    const char *file = cli_one_file(command, argc, argv);
    if (!file)
        return 2;
    size_t n;
    struct curve_point *points = cli_points(sizes, &n, &err);
    if (!points)
        return cli_misuse(command, "%s", err.text);
    struct report_style style = report_style_of(stdout, output.color);
    timeline.profile = file;
    struct analysis_grid grid = {0};
    int code = cli_open_profile(file, &p, &err);
    if (code == 0) {
        if (!analysis_selection_is_all(&selection)) {
            timeline.selection = &selection;
            code = analysis_selection_find(p, &selection, &err);
        }
        if (code == 0)
            code = analysis_timeline_compute(p, points, n, &timeline, &err);
        profile_close(p, 0, NULL); /* before printing: a pager that waits must not block a recording */
    }
    if (code == 0)
        code = analysis_grid_compute(&timeline, axis, report_heatmap_columns(&style), &grid, &err);
    if (code == 0 && phases)
        code = analysis_phase_variations(&timeline, &err);
    if (code == 0 && phases)
        report_phases(stdout, &timeline, output.format, &style);
    else if (code == 0)
        report_timeline(stdout, &timeline, &grid, output.format, &style);
    analysis_timeline_clear(&timeline);
    analysis_grid_clear(&grid);
    analysis_selection_clear(&selection);
    free(points);
    return code == 0 ? 0 : cli_fail(&err);
}

int cmd_timeline(int argc, char **argv)
{
    return run("timeline", timeline_usage, argc, argv, 0);
}

int cmd_phases(int argc, char **argv)
{
    return run("phases", phases_usage, argc, argv, 1);
}
