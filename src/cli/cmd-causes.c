/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-causes.c - `cachegram causes`: why misses happen: cold misses, and which data evicted which. */
#include "cli/cli.h"

#include "report/causes.h"

#define DEFAULT_SIZE (1u << 20)
#define DEFAULT_ROWS 20 /* in text */

enum { OPT_SIZE = 1, OPT_BY, OPT_LIMIT, OPT_PERCENT, OPT_COMM, OPT_WRAPPERS };

static const struct option options[] = {
    {"size", required_argument, NULL, OPT_SIZE},
    {"by", required_argument, NULL, OPT_BY},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"percent-limit", required_argument, NULL, OPT_PERCENT},
    {"comm", required_argument, NULL, OPT_COMM},
    {"alloc-wrappers", required_argument, NULL, OPT_WRAPPERS},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram causes [OPTIONS] [FILE]\n"
    "\n"
    "Prints why misses happen in a cache of one size, from the profile FILE (default cachegram.db): because\n"
    "lines were never touched before (cold), or because they were evicted, and by which data.\n"
    "\n"
    "  --size SIZE             of the cache, such as 32K or 1M (default 1M)\n"
    "  --by object|field|function|line|module|insn\n"
    "                          what misses, and what evicts (default object); also pairs such as\n"
    "                          function,object\n"
    "  --limit N               at most so many rows; 0: all (default 20 in text, all in csv and json)\n"
    "  --percent-limit P       only rows with at least P% of the misses\n"
    "  --comm NAME             only processes that ran this executable\n"
    "  --alloc-wrappers NAME,...\n"
    "                          as for hotspots\n" CLI_OUTPUT_HELP "\n"
    "The cache is fully associative with LRU replacement. A line is evicted because others are touched\n"
    "between two touches of it, and each of these gets an equal part of the miss. The recorder sampled one\n"
    "in 64 reuses, each with one of these lines. ~: the victim has too few samples, so its misses are\n"
    "divided among all data in proportion to the misses of that data. Cold misses are exact in full mode;\n"
    "from bursts they are estimated by the watched lines that were never touched again.\n"
    "Conflicts, which only a cache with sets has, are listed for 64 sets of 8 lines.\n"
    "CSV columns: victim,evictor,size_bytes,share,sampled_reuses,victim_conflict_share. The evictor of cold\n"
    "misses is (cold); the last column is a share of all references.\n";

int cmd_causes(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"causes", usage, ":h", options, NULL};
    struct cli_output output = {.format = REPORT_TEXT};
    struct analysis_hotspots_question question = {
        .size_bytes = DEFAULT_SIZE, .by = ANALYSIS_BY_NOTHING, .objects = 1};
    struct analysis_causes causes;
    struct profile *p;
    struct error err;
    uint64_t number, limit = 0;
    double least_percent = 0;
    int opt, status, limited = 0;
    while ((opt = cli_next_option(&syntax, argc, argv, &output, &status)) != 0) {
        switch (opt) {
        case OPT_SIZE:
            if (cli_size_option("causes", NULL, optarg, &number) != 0)
                return 2;
            question.size_bytes = (double)number;
            break;
        case OPT_BY:
            if (cli_by_option("causes", optarg, &question) != 0)
                return 2;
            break;
        case OPT_LIMIT:
            if (cli_whole_option("causes", "--limit", optarg, 0, UINT32_MAX, &limit) != 0)
                return 2;
            limited = 1;
            break;
        case OPT_PERCENT:
            if (cli_percent_limit_option("causes", optarg, &least_percent) != 0)
                return 2;
            break;
        case OPT_COMM:
            question.comm = optarg;
            break;
        default: /* OPT_WRAPPERS */
            question.wrappers = optarg;
        }
    }
    if (status >= 0)
        return status;
    const char *file = cli_one_file("causes", argc, argv);
    if (!file)
        return 2;
    int code = cli_open_profile(file, &p, &err);
    if (code == 0) {
        code = analysis_causes(p, file, &question, &causes, &err);
        /* Closed before printing: a pager that waits must not block a recording. */
        profile_close(p, 0, NULL);
    }
    if (code != 0)
        return cli_fail(&err);
    if (!limited && output.format == REPORT_TEXT)
        limit = DEFAULT_ROWS;
    report_causes(stdout, &causes, (size_t)limit, least_percent, output.format);
    analysis_causes_clear(&causes);
    return 0;
}
