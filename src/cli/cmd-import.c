/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-import.c - `cachegram import`: converts other tools' traces to cachegram's format. */
#include "cli/cli.h"

#include "cli/convert.h"

#define DEFAULT_TRACE "cachegram.trace"

enum { OPT_FROM = 1, OPT_PARTIAL };

static const struct option options[] = {
    {"from", required_argument, NULL, OPT_FROM},
    {"output", required_argument, NULL, 'o'},
    {"partial", no_argument, NULL, OPT_PARTIAL},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram import [OPTIONS] FILE\n"
    "\n"
    "Converts the trace FILE of another tool (- is standard input) to cachegram's format.\n"
    "\n"
    "  --from FORMAT      format of FILE (default: by its first bytes)\n"
    "  -o, --output FILE  the trace to write (default " DEFAULT_TRACE "; - is standard output)\n"
    "  --partial          if FILE is damaged or import is interrupted, keep what was converted before\n"
    "  --help             this text\n"
    "\n"
    "Formats:\n";

int cmd_import(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"import", usage, ":o:h", options, NULL};
    struct convert_options o = {.output = DEFAULT_TRACE, .to = "cachegram"};
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, NULL, &status)) != 0) {
        switch (opt) {
        case OPT_FROM:
            o.from = optarg;
            break;
        case 'o':
            o.output = optarg;
            break;
        default: /* OPT_PARTIAL */
            o.partial = 1;
        }
    }
    if (status == 0) /* after --help */
        convert_list_formats(0);
    if (status >= 0)
        return status;
    o.input = cli_one_trace("import", argc, argv);
    if (!o.input)
        return 2;
    return convert(&o);
}
