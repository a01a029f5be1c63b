/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-corun.c - `cachegram corun`: programs that share a cache. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "cli/programs.h"
#include "report/corun.h"

enum { OPT_PARTITION = 1, OPT_WAYS, OPT_ERROR, OPT_NO_PHASES };

static const struct option options[] = {
    {"copies", required_argument, NULL, 'n'},
    {"partition", required_argument, NULL, OPT_PARTITION},
    {"ways", required_argument, NULL, OPT_WAYS},
    {"cpi-error", required_argument, NULL, OPT_ERROR},
    {"no-phases", no_argument, NULL, OPT_NO_PHASES},
    {"help", no_argument, NULL, 'h'},
    CLI_MEMORY_OPTIONS,
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram corun [OPTIONS] FILE FILE...\n"
    "\n"
    "Predicts miss ratios, cycles per instruction (CPI), slowdowns and shares of the cache when the\n"
    "programs of these profiles run together on one shared cache.\n"
    "\n"
    "  -n, --copies N          copies of each profile (default 1)\n"
    "  --partition LIST        partitions of the cache, one for each program in order: a size, a number of\n"
    "                          ways such as 4w, or 0 to share the rest\n"
    "  --ways N                ways of the shared cache, for partitions by ways (default 16, or the\n"
    "                          machine's)\n"
    "  --cpi-error PCT         report how results change if the CPI model is wrong by so much, such\n"
    "                          as 10%\n"
    "  --no-phases             assume that each program always behaves as it does on "
    "average\n" CLI_MEMORY_HELP CLI_OUTPUT_HELP "\n"
    "CSV columns: program,size_bytes,solo_miss_ratio,shared_miss_ratio,solo_cpi,shared_cpi,slowdown,\n"
    "cache_share_bytes,shared_low,shared_high,cpi_low,cpi_high,bytes_per_cycle,partition_bytes,\n"
    "wrong_cpi_change,cpi_base,overlap,base_from,phases,mean_miss_ratio,mean_cpi,threads. mean_: with\n"
    "--no-phases. Empty: not enough samples; low and high are the bounds.\n";

/* With more programs than this, CPI errors are tried one at a time, not in all combinations. */
#define ALL_COMBINATIONS 8u

struct corun_options {
    struct cli_output output;
    struct cli_memory memory;
    uint64_t copies, ways;
    const char *partition;
    double cpi_error;
    int no_phases;
};

struct corun_job {
    struct cli_programs profiles;
    struct statcc_machine machine;
    struct machine described;
    uint32_t n; /* programs: profiles times copies */
    struct statcc_program program[CLI_CURVES][STATCC_PROGRAMS];
    struct statcc_result result[CLI_CURVES][STATCC_PROGRAMS], solo[STATCC_PROGRAMS];
    struct statcc_solution solution;
    int by_phases; /* some program has phases: */
    struct statcc_phased phased[STATCC_PROGRAMS];
    struct statcc_result mean[STATCC_PROGRAMS], mean_solo[STATCC_PROGRAMS]; /* results without them */
    double change[STATCC_PROGRAMS];                                         /* by CPI errors */
};

static int parse_option(int opt, const char *value, void *ctx)
{
    struct corun_options *o = ctx;
    char *end;
    switch (opt) {
    case 'n':
        return cli_whole_option("corun", "--copies", value, 1, STATCC_PROGRAMS, &o->copies);
    case OPT_WAYS:
        return cli_whole_option("corun", "--ways", value, 1, 4096, &o->ways);
    case OPT_PARTITION:
        o->partition = value;
        return 0;
    case OPT_NO_PHASES:
        o->no_phases = 1;
        return 0;
    default:
        o->cpi_error = strtod(value, &end) / 100;
        if (end == value || (*end && strcmp(end, "%") != 0) || !(o->cpi_error > 0 && o->cpi_error < 0.9))
            return cli_misuse("corun", "--cpi-error %s: must be a percentage above 0 and below 90", value);
        return 0;
    }
}

/* The i-th item of a list, up to the comma; NULL if the list is too short. */
static const char *item(const char *list, uint32_t i, char text[64])
{
    for (; i > 0; i--) {
        list = strchr(list, ',');
        if (!list)
            return NULL;
        list++;
    }
    size_t length = strcspn(list, ",");
    if (length == 0 || length >= 64)
        return NULL;
    memcpy(text, list, length);
    text[length] = '\0';
    return text;
}

static int parse_partition(const char *text, double ways, const struct corun_job *job, double *lines)
{
    uint64_t value;
    size_t last = strlen(text) - 1;
    if (strcmp(text, "0") == 0) {
        *lines = 0;
        return 0;
    }
    if (text[last] == 'w') {
        char digits[64];
        memcpy(digits, text, last);
        digits[last] = '\0';
        if (cli_parse_whole(digits, (uint64_t)ways, &value) != 0)
            return cli_misuse("corun", "--partition %s: the cache has %g ways", text, ways);
        *lines = (double)value * job->machine.shared_lines / ways;
        return 0;
    }
    if (cli_size_option("corun", "--partition", text, &value) != 0)
        return 2;
    *lines = (double)value / job->profiles.line_bytes;
    return 0;
}

/* 0; 2 after a message about wrong usage; 1 after another message. */
static int set_partitions(const struct corun_options *o, struct corun_job *job)
{
    const struct machine *d = &job->described;
    double ways = o->ways                                     ? (double)o->ways
                  : d->levels && d->level[d->levels - 1].ways ? d->level[d->levels - 1].ways
                                                              : 16;
    uint32_t parts = 1;
    for (const char *c = o->partition; c && *c; c++)
        parts += *c == ',';
    if (o->partition && parts != job->profiles.n)
        return cli_misuse("corun", "--partition %s: must have one item for each of the %u profiles",
                          o->partition, job->profiles.n);
    for (uint32_t i = 0; o->partition && i < job->n; i++) {
        char text[64];
        double lines = 0;
        if (!item(o->partition, i % job->profiles.n, text))
            return cli_misuse("corun", "--partition %s: an item is a size, ways such as 4w, or 0",
                              o->partition);
        if (parse_partition(text, ways, job, &lines) != 0)
            return 2;
        for (int which = 0; which < CLI_CURVES; which++)
            job->program[which][i].partition_lines = lines;
    }
    return 0;
}

/* Solves once more with changed CPIs, and keeps the largest change. */
static int try_wrong(struct corun_job *job, const double *factors, struct error *err)
{
    struct statcc_program wrong[STATCC_PROGRAMS];
    struct statcc_result got[STATCC_PROGRAMS];
    struct statcc_solution solution;
    for (uint32_t i = 0; i < job->n; i++) {
        wrong[i] = job->program[CLI_CURVE_BEST][i];
        wrong[i].cpi_factor = factors[i];
    }
    int code = statcc_solve(&job->machine, wrong, job->n, got, &solution, err);
    for (uint32_t i = 0; i < job->n && code == 0; i++)
        job->change[i] = fmax(job->change[i], fabs(got[i].cpi / job->result[CLI_CURVE_BEST][i].cpi - 1));
    return code;
}

static int try_errors(double e, struct corun_job *job, struct error *err)
{
    double factors[STATCC_PROGRAMS];
    int code = 0;
    if (job->n <= ALL_COMBINATIONS) {
        for (uint32_t mask = 0; mask < 1u << job->n && code == 0; mask++) {
            for (uint32_t i = 0; i < job->n; i++)
                factors[i] = mask >> i & 1 ? 1 + e : 1 - e;
            code = try_wrong(job, factors, err);
        }
        return code;
    }
    for (uint32_t k = 0; k < 2 * job->n && code == 0; k++) {
        for (uint32_t i = 0; i < job->n; i++)
            factors[i] = i != k / 2 ? 1 : k % 2 ? 1 + e : 1 - e;
        code = try_wrong(job, factors, err);
    }
    return code;
}

/* Replaces the best estimates, and moves their bounds likewise. */
static int solve_phases(struct corun_job *job, struct error *err)
{
    memcpy(job->mean, job->result[CLI_CURVE_BEST], sizeof job->mean);
    memcpy(job->mean_solo, job->solo, sizeof job->mean_solo);
    int code = statcc_solve_phases(&job->machine, job->phased, job->n, job->result[CLI_CURVE_BEST],
                                   &job->solution, err);
    for (uint32_t i = 0; i < job->n && code == 0; i++) {
        struct statcc_phased alone = job->phased[i];
        struct statcc_solution solution;
        double miss = job->result[CLI_CURVE_BEST][i].miss_ratio - job->mean[i].miss_ratio,
               cpi = job->result[CLI_CURVE_BEST][i].cpi / job->mean[i].cpi;
        for (uint32_t a = 0; a < alone.n; a++)
            alone.program[a].partition_lines = 0;
        for (int which = CLI_CURVE_LOW; which < CLI_CURVES; which++) {
            struct statcc_result *bound = &job->result[which][i];
            bound->miss_ratio = fmin(fmax(bound->miss_ratio + miss, 0), 1);
            bound->cpi *= cpi;
        }
        code = statcc_solve_phases(&job->machine, &alone, 1, &job->solo[i], &solution, err);
    }
    return code;
}

static int solve(const struct corun_options *o, struct corun_job *job, struct error *err)
{
    int code = 0;
    for (uint32_t i = 0; i < job->n && code == 0; i++) {
        struct statcc_program alone = job->program[CLI_CURVE_BEST][i];
        struct statcc_solution solution;
        alone.partition_lines = 0;
        code = statcc_solve(&job->machine, &alone, 1, &job->solo[i], &solution, err);
    }
    for (int which = CLI_CURVES - 1; which >= CLI_CURVE_BEST && code == 0; which--)
        code =
            statcc_solve(&job->machine, job->program[which], job->n, job->result[which], &job->solution, err);
    if (code == 0 && o->cpi_error > 0)
        code = try_errors(o->cpi_error, job, err);
    if (code == 0 && job->by_phases)
        code = solve_phases(job, err);
    return code;
}

/* If one curve is unknown at its size, no result is known: all speeds depend on each other. */
static int any_unknown(const struct corun_job *job)
{
    for (uint32_t i = 0; i < job->n; i++)
        if (job->result[CLI_CURVE_BEST][i].unknown)
            return 1;
    return 0;
}

static int all_exact(const struct corun_job *job)
{
    for (uint32_t i = 0; i < job->profiles.n; i++)
        if (!job->profiles.program[i]->exact)
            return 0;
    return 1;
}

static struct report_corun_row make_row(const struct corun_options *o, const struct corun_job *job,
                                        uint32_t i, int unknown)
{
    const struct statcc_result *r = &job->result[CLI_CURVE_BEST][i], *low = &job->result[CLI_CURVE_LOW][i],
                               *high = &job->result[CLI_CURVE_HIGH][i], *solo = &job->solo[i];
    const struct analysis_program *profile = job->profiles.program[i % job->profiles.n];
    double line = job->profiles.line_bytes;
    int alone = !solo->unknown, mean = !unknown && job->by_phases;
    return (struct report_corun_row){
        .program = profile->name,
        .solo_miss_ratio = alone ? solo->miss_ratio : NAN,
        .solo_cpi = alone ? solo->cpi : NAN,
        .shared_miss_ratio = unknown ? NAN : r->miss_ratio,
        .shared_cpi = unknown ? NAN : r->cpi,
        .slowdown = unknown || !alone ? NAN : r->cpi / solo->cpi,
        .share_bytes = unknown ? NAN : r->lines * line,
        .shared_low = fmin(low->miss_ratio, high->miss_ratio),
        .shared_high = fmax(low->miss_ratio, high->miss_ratio),
        .cpi_low = fmin(low->cpi, high->cpi),
        .cpi_high = fmax(low->cpi, high->cpi),
        .bytes_per_cycle = unknown ? NAN : r->lines_per_cycle * line,
        .partition_bytes = job->program[CLI_CURVE_BEST][i].partition_lines * line,
        .wrong_cpi_change = o->cpi_error > 0 ? job->change[i] : NAN,
        .phases = job->by_phases ? job->phased[i].n : 1,
        .found_phases = o->no_phases ? 0 : profile->found_phases,
        .in_several = profile->in_several,
        .mean_miss_ratio = mean ? job->mean[i].miss_ratio : NAN,
        .mean_cpi = mean ? job->mean[i].cpi : NAN,
        .mean_slowdown = mean && alone ? job->mean[i].cpi / job->mean_solo[i].cpi : NAN,
    };
}

static void print(const struct corun_options *o, const struct corun_job *job)
{
    struct report_corun_row rows[STATCC_PROGRAMS];
    struct report_base bases[STATCC_PROGRAMS];
    struct report_style style = report_style_of(stdout, o->output.color);
    double line = job->profiles.line_bytes;
    int unknown = any_unknown(job);
    char machine[160];
    cli_machine_words(&o->memory, &job->described, machine);
    for (uint32_t i = 0; i < job->n; i++) {
        bases[i] = cli_base(&job->profiles, i % job->profiles.n);
        rows[i] = make_row(o, job, i, unknown);
    }
    struct report_corun report = {.rows = rows,
                                  .n = job->n,
                                  .profiles = job->profiles.n,
                                  .bases = bases,
                                  .size_bytes = (uint64_t)(job->machine.shared_lines * line),
                                  .machine = machine,
                                  .converged = job->solution.converged,
                                  .exact = all_exact(job),
                                  .iterations = job->solution.iterations,
                                  .residual = job->solution.residual,
                                  .wait_cycles = job->solution.wait_cycles,
                                  .utilisation =
                                      job->machine.bandwidth_lines > 0 ? job->solution.utilisation : NAN,
                                  .cpi_error = o->cpi_error};
    report_corun(stdout, &report, o->output.format, &style);
    if (unknown)
        fputs("cachegram: warning: not enough samples at these sizes: only bounds are reported; record with "
              "--mode full\n",
              stderr);
    if (!job->solution.converged)
        fputs("cachegram: warning: the solution did not converge; the results are not valid\n", stderr);
}

static int run(const struct corun_options *o, char **files, uint32_t nfiles)
{
    struct corun_job *job = calloc(1, sizeof *job);
    struct error err;
    int status;
    if (!job)
        return cli_misuse("corun", "out of memory");
    int code =
        cli_programs_prepare(&o->memory, files, nfiles, &job->profiles, &job->machine, &job->described, &err);
    if (code != 0) {
        status = cli_fail(&err);
    } else {
        job->n = nfiles * (uint32_t)o->copies;
        for (int which = 0; which < CLI_CURVES; which++)
            for (uint32_t i = 0; i < job->n; i++)
                job->program[which][i] = cli_program(&job->profiles, i % nfiles, (enum cli_curve)which);
        status = set_partitions(o, job);
        for (uint32_t i = 0; i < job->n && !o->no_phases; i++) {
            job->phased[i] = cli_program_phases(&job->profiles, i % nfiles);
            for (uint32_t a = 0; a < job->phased[i].n; a++)
                job->phased[i].program[a].partition_lines = job->program[CLI_CURVE_BEST][i].partition_lines;
            job->by_phases |= job->phased[i].n > 1;
        }
        if (status == 0 && solve(o, job, &err) != 0)
            status = cli_fail(&err);
        else if (status == 0)
            print(o, job);
    }
    cli_programs_free(&job->profiles);
    free(job);
    return status;
}

int cmd_corun(int argc, char **argv)
{
    struct corun_options o = {
        .output = {.format = REPORT_TEXT}, .memory = cli_memory_defaults(), .copies = 1};
    static const struct cli_syntax syntax = {"corun", usage, ":hn:", options, NULL};
    int status = cli_programs_options(&syntax, argc, argv, &o.output, &o.memory, parse_option, &o);
    if (status >= 0)
        return status;
    uint32_t n = cli_programs_count("corun", argc, o.copies, STATCC_PROGRAMS);
    return n > 0 ? run(&o, argv + optind, n) : 2;
}
