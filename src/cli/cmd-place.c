/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-place.c - `cachegram place`: assigns programs to shared caches. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "cli/programs.h"
#include "report/place.h"

enum { OPT_CACHES = 1, OPT_GOAL, OPT_SEED, OPT_NO_PHASES };

/* Combinations of phases, over all groups of programs, that are solved at most: some seconds. With more, mean
 * behaviour is used. */
#define MOST_COMBINATIONS 20000.0

static const struct option options[] = {
    {"caches", required_argument, NULL, OPT_CACHES},
    {"goal", required_argument, NULL, OPT_GOAL},
    {"seed", required_argument, NULL, OPT_SEED},
    {"no-phases", no_argument, NULL, OPT_NO_PHASES},
    {"copies", required_argument, NULL, 'n'},
    {"help", no_argument, NULL, 'h'},
    CLI_MEMORY_OPTIONS,
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram place [OPTIONS] FILE FILE...\n"
    "\n"
    "Assigns the programs of these profiles to shared caches so that their co-run slowdown is minimal.\n"
    "Optimal for up to 12 programs.\n"
    "\n"
    "  --caches LIST           the shared caches, SIZE:CORES each, such as 8M:4,8M:4 (default: two like\n"
    "                          --llc, with cores for half of the programs each)\n"
    "  --goal total|worst      minimise the sum of slowdowns (default), or the largest one\n"
    "  -n, --copies N          copies of each profile (default 1)\n"
    "  --seed N                seed of the search and of the random assignments (default 1)\n"
    "  --no-phases             assume that each program always behaves as it does on average\n"
    "                          (always, if there are many programs)\n" CLI_MEMORY_HELP CLI_OUTPUT_HELP "\n"
    "CSV columns: cache,size_bytes,program,slowdown,cpi_base,overlap,base_from,"
    "threads.\n";

struct place_options {
    struct cli_output output;
    struct cli_memory memory;
    struct assignment_cache cache[ASSIGNMENT_CACHES];
    uint32_t ncaches;
    enum assignment_goal goal;
    uint64_t copies, seed;
    int no_phases;
};

static int parse_caches(const char *text, struct place_options *o)
{
    char part[64];
    for (o->ncaches = 0; *text; o->ncaches++) {
        size_t length = strcspn(text, ",");
        if (o->ncaches == ASSIGNMENT_CACHES)
            return cli_misuse("place", "--caches: at most %u caches", ASSIGNMENT_CACHES);
        if (length == 0 || length >= sizeof part)
            return cli_misuse("place", "--caches: each item must be SIZE:CORES, such as 8M:4");
        memcpy(part, text, length);
        part[length] = '\0';
        char *colon = strchr(part, ':');
        uint64_t cores;
        if (!colon || cli_parse_whole(colon + 1, ASSIGNMENT_PROGRAMS, &cores) != 0 || cores == 0)
            return cli_misuse("place", "--caches %s: must be SIZE:CORES, such as 8M:4", part);
        *colon = '\0';
        if (cli_size_option("place", "--caches", part, &o->cache[o->ncaches].size_bytes) != 0)
            return 2;
        o->cache[o->ncaches].cores = (uint32_t)cores;
        text += length + (text[length] == ',');
    }
    return o->ncaches ? 0 : cli_misuse("place", "--caches: must list the caches, such as 8M:4,8M:4");
}

static int parse_option(int opt, const char *value, void *ctx)
{
    static const char *const goals[] = {"total", "worst", NULL};
    struct place_options *o = ctx;
    int word;
    switch (opt) {
    case OPT_CACHES:
        return parse_caches(value, o);
    case OPT_GOAL:
        word = cli_word_option("place", "--goal", value, goals);
        o->goal = word == 1 ? ASSIGNMENT_WORST : ASSIGNMENT_TOTAL;
        return word < 0 ? 2 : 0;
    case OPT_NO_PHASES:
        o->no_phases = 1;
        return 0;
    case OPT_SEED:
        return cli_seed_option("place", value, &o->seed);
    default:
        return cli_whole_option("place", "--copies", value, 1, ASSIGNMENT_PROGRAMS, &o->copies);
    }
}

struct job {
    struct cli_programs profiles;
    struct statcc_machine machine;
    int by_phases;
    double alone[ASSIGNMENT_PROGRAMS]; /* CPI on the largest cache */
};

static int solve_group(const struct job *job, const struct statcc_machine *machine, const uint32_t *programs,
                       uint32_t n, struct statcc_result *result, struct statcc_solution *solution,
                       struct error *err)
{
    static struct statcc_phased phased[ASSIGNMENT_PROGRAMS]; /* large */
    struct statcc_program model[ASSIGNMENT_PROGRAMS];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t profile = programs[i] % job->profiles.n;
        if (job->by_phases)
            phased[i] = cli_program_phases(&job->profiles, profile);
        else
            model[i] = cli_program(&job->profiles, profile, CLI_CURVE_BEST);
    }
    return job->by_phases ? statcc_solve_phases(machine, phased, n, result, solution, err)
                          : statcc_solve(machine, model, n, result, solution, err);
}

/* Slowdowns are relative to running alone on the largest of the caches, so that a small cache counts as a
 * slowdown. */
static int slowdowns(void *context, const uint32_t *programs, uint32_t n,
                     const struct assignment_cache *cache, double *slowdown, struct error *err)
{
    const struct job *job = context;
    struct statcc_machine machine = job->machine;
    struct statcc_result result[ASSIGNMENT_PROGRAMS];
    struct statcc_solution solution;
    machine.shared_lines = (double)cache->size_bytes / job->profiles.line_bytes;
    int code = solve_group(job, &machine, programs, n, result, &solution, err);
    if (code == 0 && !solution.converged)
        return error_set(err, -EDOM, "the solution for %u programs in a cache of %llu bytes did not converge",
                         n, (unsigned long long)cache->size_bytes);
    for (uint32_t i = 0; i < n && code == 0; i++) {
        if (result[i].unknown)
            return error_set(err, -ENODATA,
                             "not enough samples in '%s' for the sizes of these caches; record with "
                             "--mode full",
                             job->profiles.program[programs[i] % job->profiles.n]->profile);
        double alone = job->alone[programs[i]];
        slowdown[i] = alone > 0 ? result[i].cpi / alone : result[i].cpi;
    }
    return code;
}

static int find_alone(struct job *job, const struct assignment_problem *problem, struct error *err)
{
    struct assignment_cache largest = problem->caches[0];
    int code = 0;
    for (uint32_t m = 1; m < problem->ncaches; m++)
        if (problem->caches[m].size_bytes > largest.size_bytes)
            largest = problem->caches[m];
    for (uint32_t i = 0; i < problem->programs && code == 0; i++) {
        double cpi; /* alone[i] is still 0, so that the result is the CPI */
        code = slowdowns(job, &i, 1, &largest, &cpi, err);
        job->alone[i] = code == 0 ? cpi : 0;
    }
    return code;
}

/* Whether there are phases, and few enough combinations of them in all groups of programs. */
static int has_phases(const struct cli_programs *profiles, uint32_t programs)
{
    double combinations = 1;
    uint32_t most = 1;
    for (uint32_t i = 0; i < programs; i++) {
        uint32_t phases = profiles->program[i % profiles->n]->phases;
        most = phases > most ? phases : most;
        combinations *= 1 + (phases > 1 ? phases : 1);
    }
    return most > 1 && combinations <= MOST_COMBINATIONS;
}

static int assign(struct job *job, const struct assignment_problem *problem, int by_phases, uint64_t seed,
                  struct assignment_result *result, struct error *err)
{
    job->by_phases = by_phases;
    memset(job->alone, 0, sizeof job->alone);
    int code = find_alone(job, problem, err);
    return code == 0 ? assignment_solve(problem, seed, result, err) : code;
}

static int run(struct place_options *o, char **files, uint32_t nfiles)
{
    static struct job job;           /* its members are freed below */
    static struct machine described; /* large */
    struct report_base bases[ASSIGNMENT_PROGRAMS];
    struct assignment_result result, mean;
    struct error err;
    int by_phases = 0;
    job = (struct job){0};
    struct assignment_problem problem = {.programs = nfiles * (uint32_t)o->copies,
                                         .caches = o->cache,
                                         .goal = o->goal,
                                         .slowdowns = slowdowns,
                                         .context = &job};
    int code = cli_programs_prepare(&o->memory, files, nfiles, &job.profiles, &job.machine, &described, &err);
    if (code == 0 && o->ncaches == 0) {
        for (; o->ncaches < 2; o->ncaches++)
            o->cache[o->ncaches] = (struct assignment_cache){
                (uint64_t)(job.machine.shared_lines * job.profiles.line_bytes), (problem.programs + 1) / 2};
    }
    problem.ncaches = o->ncaches;
    if (code == 0)
        code = assign(&job, &problem, 0, o->seed, &mean, &err);
    result = mean;
    if (code == 0 && (by_phases = !o->no_phases && has_phases(&job.profiles, problem.programs)))
        code = assign(&job, &problem, 1, o->seed, &result, &err);
    for (uint32_t i = 0; i < problem.programs && code == 0; i++)
        bases[i] = cli_base(&job.profiles, i % nfiles);
    if (code == 0)
        report_place(stdout,
                     &(struct report_place){bases, nfiles, &problem, &result, by_phases ? &mean : NULL},
                     o->output.format);
    cli_programs_free(&job.profiles);
    return code == 0 ? 0 : cli_fail(&err);
}

int cmd_place(int argc, char **argv)
{
    struct place_options o = {
        .output = {.format = REPORT_TEXT}, .memory = cli_memory_defaults(), .copies = 1, .seed = 1};
    static const struct cli_syntax syntax = {"place", usage, ":hn:", options, NULL};
    int status = cli_programs_options(&syntax, argc, argv, &o.output, &o.memory, parse_option, &o);
    if (status >= 0)
        return status;
    uint32_t n = cli_programs_count("place", argc, o.copies, ASSIGNMENT_PROGRAMS);
    return n > 0 ? run(&o, argv + optind, n) : 2;
}
