/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-predict.c - `cachegram predict`: estimates a program's speed on another machine. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "cli/programs.h"
#include "report/machine.h"

enum { OPT_WHAT_IF = 1 };

static const struct option options[] = {
    {"what-if", required_argument, NULL, OPT_WHAT_IF},
    {"help", no_argument, NULL, 'h'},
    CLI_MEMORY_OPTIONS,
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram predict [OPTIONS] [FILE]\n"
    "\n"
    "Predicts how the program of the profile FILE (default cachegram.db) would run on another machine: miss\n"
    "ratios of each level, cycles per instruction (CPI), time per reference, and what takes the time.\n"
    "\n"
    "  --what-if llc=SIZE      assume this size of the last level, such as llc=64M\n" CLI_MEMORY_HELP
        CLI_OUTPUT_HELP "\n"
    "CSV columns: level,size_bytes,latency_cycles,miss_ratio,ci_low,ci_high,cycles_share,cpi,ns_per_ref,\n"
    "cpi_base,overlap,base_from,threads. An empty miss ratio: not enough samples.\n";

struct predict_options {
    struct cli_output output;
    struct cli_memory memory;
    uint64_t what_if_bytes;
    const char *what_if;
};

static int parse_option(int opt, const char *value, void *ctx)
{
    struct predict_options *o = ctx;
    (void)opt;
    if (strncmp(value, "llc=", 4) != 0)
        return cli_misuse("predict", "--what-if %s: must be llc=SIZE, such as llc=64M", value);
    o->what_if = value;
    return cli_size_option("predict", "--what-if", value + 4, &o->what_if_bytes);
}

struct prediction {
    struct statcc_program program[CLI_CURVES];
    struct statcc_result result[CLI_CURVES];
    struct statcc_solution solution;
    double was_cpi;
};

static int solve(const struct predict_options *o, const struct cli_programs *programs,
                 struct statcc_machine *machine, struct prediction *p, struct error *err)
{
    int code = 0;
    p->was_cpi = NAN;
    for (int which = CLI_CURVES - 1; which >= CLI_CURVE_BEST; which--)
        p->program[which] = cli_program(programs, 0, (enum cli_curve)which);
    for (int pass = o->what_if ? 0 : 1; pass < 2 && code == 0; pass++) {
        if (pass == 1 && o->what_if)
            machine->shared_lines = (double)o->what_if_bytes / programs->line_bytes;
        for (int which = CLI_CURVES - 1; which >= CLI_CURVE_BEST && code == 0; which--)
            code = statcc_solve(machine, &p->program[which], 1, &p->result[which], &p->solution, err);
        if (pass == 0 && code == 0 && !p->result[CLI_CURVE_BEST].unknown)
            p->was_cpi = p->result[CLI_CURVE_BEST].cpi;
    }
    return code;
}

static double miss_of(const struct statcc_machine *machine, const struct statcc_result *result,
                      uint32_t level)
{
    return level < machine->privates ? result->private_miss[level] : result->miss_ratio;
}

/* What takes most of the time, in words. */
static const char *bottleneck(const struct report_predict *p)
{
    static char text[64];
    double most = p->base_share;
    snprintf(text, sizeof text, "the instructions themselves");
    for (size_t i = 0; i < p->n; i++)
        if (p->rows[i].cycles_share > most) {
            most = p->rows[i].cycles_share;
            snprintf(text, sizeof text, i + 1 < p->n ? "hits in %s" : "waiting for %s", p->rows[i].level);
        }
    if (p->utilisation > 0.8)
        return "the memory's bandwidth";
    return isnan(p->base_share) ? "not known" : text;
}

static void print(const struct predict_options *o, const struct cli_programs *programs,
                  const struct statcc_machine *machine, const struct machine *described,
                  const struct prediction *p)
{
    static const char *const names[] = {"L1", "L2", "L3", "L4"};
    const struct statcc_result *best = &p->result[CLI_CURVE_BEST];
    const struct statcc_program *program = &p->program[CLI_CURVE_BEST];
    struct report_predict_row rows[STATCC_PRIVATE + 2];
    double line = programs->line_bytes, mix = program->references_per_instruction, left = 1;
    for (uint32_t l = 0; l <= machine->privates + 1; l++) {
        int memory = l == machine->privates + 1;
        double lines = l < machine->privates ? machine->private_lines[l] : machine->shared_lines;
        double known = (l < machine->privates ? program->private_curve : program->curve)->known_lines;
        double miss = memory ? 0 : miss_of(machine, best, l), cycles = machine->latency_cycles[l];
        if (program->pipelined)
            cycles -= machine->latency_cycles[0];
        if (memory)
            cycles += p->solution.wait_cycles * program->overlap;
        rows[l] = (struct report_predict_row){
            .level = memory ? "memory" : names[l],
            .size_bytes = memory ? NAN : lines * line,
            .latency_cycles = machine->latency_cycles[l],
            .miss_ratio = memory || lines > known ? NAN : miss,
            .low = memory ? NAN : miss_of(machine, &p->result[CLI_CURVE_LOW], l),
            .high = memory ? NAN : miss_of(machine, &p->result[CLI_CURVE_HIGH], l),
            .cycles_share =
                best->unknown ? NAN : mix * (left - miss) * cycles / program->overlap / best->cpi};
        left = miss;
    }
    char words[160];
    cli_machine_words(&o->memory, described, words);
    struct report_base base = cli_base(programs, 0);
    struct report_predict report = {
        .base = &base,
        .machine = words,
        .what_if = o->what_if,
        .rows = rows,
        .n = machine->privates + 2,
        .cpi = best->unknown ? NAN : best->cpi,
        .cpi_low = p->result[CLI_CURVE_LOW].cpi,
        .cpi_high = p->result[CLI_CURVE_HIGH].cpi,
        .ns_per_reference =
            best->unknown || !(described->clock_hz > 0) ? NAN : best->cpi / mix / described->clock_hz * 1e9,
        .base_share = best->unknown ? NAN : program->cpi_base / best->cpi,
        .wait_cycles = p->solution.wait_cycles,
        .utilisation = machine->bandwidth_lines > 0 && !best->unknown ? p->solution.utilisation : NAN,
        .was_cpi = p->was_cpi};
    report.bottleneck = bottleneck(&report);
    report_predict(stdout, &report, o->output.format);
}

static int run(const struct predict_options *o, const char *file)
{
    static struct machine described; /* large */
    struct cli_programs programs = {0};
    struct statcc_machine machine;
    struct prediction prediction;
    struct error err;
    char *files[1] = {(char *)file};
    int code = cli_programs_prepare(&o->memory, files, 1, &programs, &machine, &described, &err);
    if (code == 0)
        code = solve(o, &programs, &machine, &prediction, &err);
    if (code == 0)
        print(o, &programs, &machine, &described, &prediction);
    cli_programs_free(&programs);
    return code == 0 ? 0 : cli_fail(&err);
}

int cmd_predict(int argc, char **argv)
{
    struct predict_options o = {.output = {.format = REPORT_TEXT}, .memory = cli_memory_defaults()};
    static const struct cli_syntax syntax = {"predict", usage, ":h", options, NULL};
    int status = cli_programs_options(&syntax, argc, argv, &o.output, &o.memory, parse_option, &o);
    if (status >= 0)
        return status;
    const char *file = cli_one_file("predict", argc, argv);
    return file ? run(&o, file) : 2;
}
