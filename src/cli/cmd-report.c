/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-report.c - `cachegram report`: the summary of a profile. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "report/pirate.h"

static const struct option options[] = {
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram report [OPTIONS] [FILE]\n"
    "\n"
    "Prints what ran, what was recorded, warnings, and the cost, and draws the miss-ratio curve, from the\n"
    "profile FILE (default cachegram.db).\n"
    "\n" CLI_OUTPUT_HELP;

int cmd_report(int argc, char **argv)
{
    struct cli_output output = {REPORT_TEXT, REPORT_COLOR_AUTO};
    const struct analysis_question question = {ANALYSIS_MODEL_LRU, 0, 0};
    struct analysis_curve curve = {0};
    struct analysis_pirate pirate = {0};
    struct analysis_finding findings[FINDINGS_MOST];
    size_t nfindings = 0;
    struct profile *p;
    struct error err, why = {""};
    int opt;
    while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        int taken = cli_output_option("report", opt, optarg, &output);
        if (taken < 0)
            return 2;
        if (taken)
            continue;
        if (opt != 'h')
            return cli_misuse_option("report", opt, argv);
        fputs(usage, stdout);
        return 0;
    }
    const char *file = cli_one_file("report", argc, argv);
    if (!file)
        return 2;
    struct analysis_summary *summary = malloc(sizeof *summary);
    curve.points = cli_points(CLI_DEFAULT_SIZES, &curve.n, &err);
    int code = summary && curve.points ? 0 : error_set(&err, -ENOMEM, "out of memory");
    if (code == 0 && (code = profile_open(file, &p, &err)) == 0) {
        curve.profile = file;
        code = analysis_summary_load(p, summary, &err);
        if (code == 0)
            code = analysis_pirate_load(p, &pirate, &err);
        if (code == 0) {
            code = analysis_curve_compute(p, &question, &curve, &why);
            /* Without samples, the rest of the summary is still printed. */
            if (code == -ENODATA || code == -ENOENT) {
                curve.n = 0;
                code = 0;
            } else if (code != 0) {
                err = why;
            }
        }
        if (code == 0 && output.format != REPORT_CSV)
            nfindings = analysis_findings(p, file, findings);
        /* Closed before printing: a pager that waits must not block a recording. */
        profile_close(p, 0, NULL);
    }
    if (code == 0) {
        struct report_style style = report_style_of(stdout, output.color);
        if (output.format == REPORT_CSV)
            report_summary_csv(stdout, summary);
        else if (output.format == REPORT_JSON)
            report_summary_json(stdout, summary, &curve, &pirate, findings, nfindings);
        else {
            report_findings_text(stdout, findings, nfindings);
            report_summary_text(stdout, summary, &curve, why.text, &pirate, &style);
        }
        if (output.format == REPORT_TEXT && pirate.n > 0) {
            if (curve.n > 0)
                putchar('\n');
            report_pirate(stdout, &pirate, &curve, REPORT_TEXT, &style);
        }
    }
    free(summary);
    analysis_pirate_clear(&pirate);
    free(curve.points);
    return code == 0 ? 0 : cli_fail(&err);
}
