/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-export.c - `cachegram export`: writes a trace, or a profile's results, in another tool's format. */
#include "cli/cli.h"

#include <string.h>

#include "cli/convert.h"
#include "cli/export-profile.h"
#include "cli/export-samples.h"
#include "cli/export-tables.h"

#define DEFAULT_SIZE (1u << 20)

enum { OPT_FROM = 1, OPT_TO, OPT_LINE, OPT_PARTIAL, OPT_SIZE, OPT_TABLE };

static const struct option options[] = {
    {"from", required_argument, NULL, OPT_FROM},
    {"to", required_argument, NULL, OPT_TO},
    {"output", required_argument, NULL, 'o'},
    {"line", required_argument, NULL, OPT_LINE},
    {"size", required_argument, NULL, OPT_SIZE},
    {"table", required_argument, NULL, OPT_TABLE},
    {"partial", no_argument, NULL, OPT_PARTIAL},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram export --to FORMAT [OPTIONS] TRACE\n"
    "       cachegram export --to FORMAT [OPTIONS] [PROFILE]\n"
    "\n"
    "Writes TRACE (- is standard input), or results of PROFILE (default cachegram.db), in another tool's "
    "format.\n"
    "\n"
    "  --to FORMAT        see below\n"
    "  -o, --output FILE  output file (default -, standard output)\n"
    "  --line BYTES       size of a line, for formats that hold lines instead of references (default 64)\n"
    "  --size SIZE        of the cache whose misses are written, for pprof, collapsed, csv, and the tables "
    "of\n"
    "                     json (default 1M)\n"
    "  --table NAME       with --to csv or json: only this table, to a file or standard output\n"
    "  --from FORMAT      format of TRACE (default: by its first bytes)\n"
    "  --partial          if TRACE is damaged or export is interrupted, keep what was converted before\n"
    "  --help             this text\n"
    "\n"
    "Formats of traces:\n";

int cmd_export(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"export", usage, ":o:h", options, NULL};
    struct convert_options o = {.output = "-", .line_bytes = 64};
    uint64_t size_bytes = DEFAULT_SIZE;
    const char *table = NULL;
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, NULL, &status)) != 0) {
        switch (opt) {
        case OPT_FROM:
            o.from = optarg;
            break;
        case OPT_TO:
            o.to = optarg;
            break;
        case 'o':
            o.output = optarg;
            break;
        case OPT_LINE:
            if (cli_line_option("export", optarg, &o.line_bytes) != 0)
                return 2;
            break;
        case OPT_SIZE:
            if (cli_size_option("export", NULL, optarg, &size_bytes) != 0)
                return 2;
            break;
        case OPT_TABLE:
            table = optarg;
            break;
        default: /* OPT_PARTIAL */
            o.partial = 1;
        }
    }
    if (status == 0) { /* after --help */
        convert_list_formats(1);
        fputs(export_profile_help, stdout);
        export_tables_list(stdout);
    }
    if (status >= 0)
        return status;
    if (!o.to)
        return cli_misuse("export", "no output format given: use --to");
    if (!export_profile_format(o.to) && !convert_writes(o.to))
        return cli_misuse("export", "'%s' is not a format that can be written", o.to);
    int csv = strcmp(o.to, "csv") == 0, json = strcmp(o.to, "json") == 0;
    if (table && !csv && !json)
        return cli_misuse("export", "--table needs --to csv or json");
    if (table && !export_is_table(table))
        return cli_misuse("export", "'%s' is not a table", table);
    /* Of a trace, csv is its references. */
    if (table || (csv && (optind == argc || (!o.from && cli_is_database(argv[optind]))))) {
        const char *profile = cli_one_file("export", argc, argv);
        return profile ? export_tables(profile, table, json ? REPORT_JSON : REPORT_CSV, (double)size_bytes,
                                       o.output)
                       : 2;
    }
    if (export_profile_format(o.to)) {
        const char *profile = cli_one_file("export", argc, argv);
        return profile ? export_profile(profile, o.to, (double)size_bytes, o.output) : 2;
    }
    o.input = cli_one_trace("export", argc, argv);
    if (!o.input)
        return 2;
    if (strcmp(o.to, "usf") == 0 && cli_is_database(o.input))
        return export_samples(o.input, o.output);
    return convert(&o);
}
