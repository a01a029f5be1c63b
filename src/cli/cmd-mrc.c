/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-mrc.c - `cachegram mrc`: the miss-ratio curve of a profile. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_MODEL = 1, OPT_SIZES, OPT_THREAD };

static const struct option options[] = {
    {"model", required_argument, NULL, OPT_MODEL},
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"thread", required_argument, NULL, OPT_THREAD},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram mrc [OPTIONS] [FILE]\n"
    "\n"
    "Prints the miss ratio as a function of cache size, from the profile FILE (default cachegram.db).\n"
    "\n"
    "  --model lru|random      replacement policy of the cache (default lru); statstack: LRU estimated from\n"
    "                          reuse distances (profiles of --mode full)\n"
    "  --sizes LIST            cache sizes, such as 32K,1M,8M or 1K..64M (default, every half power of two)\n"
    "  --thread TID            only this thread's samples\n" CLI_OUTPUT_HELP "\n"
    "CSV columns: size_bytes,miss_ratio,ci_low,ci_high. An empty miss ratio: not enough samples.\n";

static int parse_model(const char *text, enum report_model *model)
{
    static const char *const names[] = {"lru", "random", "statstack"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *model = (enum report_model)i;
            return 0;
        }
    }
    return -1;
}

int cmd_mrc(int argc, char **argv)
{
    struct cli_output output = {REPORT_TEXT, REPORT_COLOR_AUTO};
    enum report_model model = REPORT_MODEL_LRU;
    const char *sizes = CLI_DEFAULT_SIZES;
    struct report_curve curve = {0};
    struct profile *p;
    struct error err;
    uint32_t tid = 0;
    int opt;
    while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        int taken = cli_output_option("mrc", opt, optarg, &output);
        if (taken < 0)
            return 2;
        if (taken)
            continue;
        switch (opt) {
        case OPT_MODEL:
            if (parse_model(optarg, &model) != 0)
                return cli_misuse("mrc", "'%s' is not a model: lru, random or statstack", optarg);
            break;
        case OPT_SIZES:
            sizes = optarg;
            break;
        case OPT_THREAD: {
            char *end;
            unsigned long value = strtoul(optarg, &end, 10);
            if (*optarg < '0' || *optarg > '9' || *end || value == 0 || value > UINT32_MAX)
                return cli_misuse("mrc", "'%s' is not a thread's number", optarg);
            tid = (uint32_t)value;
            break;
        }
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            return cli_misuse_option("mrc", opt, argv);
        }
    }
    const char *file = cli_one_file("mrc", argc, argv);
    if (!file)
        return 2;
    curve.points = cli_points(sizes, &curve.n, &err);
    if (!curve.points)
        return cli_misuse("mrc", "%s", err.text);

    int code = profile_open(file, &p, &err);
    if (code == 0) {
        curve.profile = file;
        code = report_curve_compute(p, model, tid, &curve, &err);
        /* Closed before printing: a reader at rest in a pager must not hold up a recording. */
        profile_close(p, 0, NULL);
    }
    if (code == 0) {
        struct report_style style = report_style_of(stdout, output.color);
        if (output.format == REPORT_CSV)
            report_curve_csv(stdout, &curve);
        else if (output.format == REPORT_JSON)
            report_curve_json(stdout, &curve);
        else
            report_curve_text(stdout, &curve, &style);
    }
    free(curve.points);
    return code == 0 ? 0 : cli_fail(&err);
}
