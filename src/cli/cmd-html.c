/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-html.c - `cachegram html`: a profile as one page for the browser. */
#include "cli/cli.h"

#include <stdlib.h>

#include "cli/page-data.h"

#define DEFAULT_OUTPUT "cachegram.html"

enum { OPT_SIZES = 1, OPT_SOURCE };

static const struct option options[] = {
    {"output", required_argument, NULL, 'o'},  {"sizes", required_argument, NULL, OPT_SIZES},
    {"source", no_argument, NULL, OPT_SOURCE}, CLI_SOURCE_OPTIONS,
    {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram html [OPTIONS] [FILE]\n"
    "\n"
    "Writes a page for the browser from the profile FILE (default cachegram.db): the miss-ratio curve, "
    "phases\n"
    "over time, which code misses on which data, the run. It is one file that loads nothing from the "
    "network.\n"
    "\n"
    "  -o, --output OUT        the page (default " DEFAULT_OUTPUT "); -: standard output\n"
    "  --sizes LIST            cache sizes between which the page can choose for hotspots, at most 16 "
    "(default\n"
    "                          " PAGE_DATA_USUAL_SIZES " and the sizes of the machine's caches)\n"
    "  --source                the source code of the functions with most of the misses, too. Whoever has "
    "the\n"
    "                          page can read it\n" CLI_SOURCE_HELP "  --help                  this text\n";

struct arguments {
    struct page_data_options data;
    const char *output;
};

/* -1, or the exit status if the command is to end now. */
static int take_options(int argc, char **argv, struct arguments *a)
{
    static const struct cli_syntax syntax = {"html", usage, ":o:h", options, NULL};
    struct curve_point *points;
    struct error err;
    size_t n = 0;
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, NULL, &status)) != 0) {
        switch (opt) {
        case 'o':
            a->output = optarg;
            break;
        case OPT_SIZES:
            a->data.sizes = optarg;
            if (!(points = cli_points(optarg, &n, &err)))
                return cli_misuse("html", "%s", err.text);
            free(points);
            if (n > PAGE_DATA_SIZES)
                return cli_misuse("html", "--sizes %s: these are %zu sizes, more than %u", optarg, n,
                                  PAGE_DATA_SIZES);
            break;
        case OPT_SOURCE:
            a->data.with_source = 1;
            break;
        default: /* CLI_OPT_SOURCE_DIR, CLI_OPT_PREFIX_MAP */
            if (cli_source_option("html", opt, optarg, &a->data.sources) != 0)
                return 2;
        }
    }
    if (status >= 0)
        return status;
    a->data.profile = cli_one_file("html", argc, argv);
    return a->data.profile ? -1 : 2;
}

int cmd_html(int argc, char **argv)
{
    struct arguments a = {.data.brief = 1, .output = DEFAULT_OUTPUT};
    struct error err;
    char *json;
    int status = take_options(argc, argv, &a);
    if (status >= 0)
        return status;
    int code = page_data(&a.data, &json, &err);
    if (code == 0)
        code = page_write(a.output, json, &err);
    free(json);
    return code == 0 ? 0 : cli_fail(&err);
}
