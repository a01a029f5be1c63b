/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd-verify.c - `cachegram verify`: compares estimates with exact curves, for a command that is run twice
 * (in burst mode and in full mode), or for a profile and a trace of the same program.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/progress.h"
#include "cli/trace-stack.h"
#include "collect/collect.h"
#include "collect/tunables.h"
#include "analysis/timeline.h"
#include "report/verify.h"

/* Sizes that are compared over time: 1 KB, 2 KB, ... 2 MB; and into how many parts a run is divided, at most.
 */
#define TIME_SIZES 12u
#define TIME_PARTS 200u

enum { OPT_SIZES = 1, OPT_OVERHEAD, OPT_ALLOWANCE, OPT_BURST_REFS, OPT_SEED, OPT_KEEP };

static const struct option options[] = {
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"overhead", required_argument, NULL, OPT_OVERHEAD},
    {"allowance", required_argument, NULL, OPT_ALLOWANCE},
    {"burst-refs", required_argument, NULL, OPT_BURST_REFS},
    {"seed", required_argument, NULL, OPT_SEED},
    {"keep", required_argument, NULL, OPT_KEEP},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram verify [OPTIONS] -- COMMAND [ARGUMENTS]\n"
    "       cachegram verify [OPTIONS] PROFILE TRACE\n"
    "       cachegram verify [OPTIONS] SAMPLED FULL\n"
    "\n"
    "Compares the estimate with the exact curve. With COMMAND: runs it twice, as record does by default and\n"
    "in full mode (which takes about 40 times as long); its standard output is discarded. With PROFILE and\n"
    "TRACE, which must be of the same program and input: computes the exact curve from the trace. With two\n"
    "profiles, of bursts and of full mode: as with COMMAND.\n"
    "\n"
    "Two runs are also compared over time, at twelve cache sizes from 1 KB to 2 MB: the error of the\n"
    "distribution of miss ratios over the run's parts (CDF error), and the mean error of the miss ratio at\n"
    "the same time.\n"
    "\n"
    "Of two runs in which several threads worked at the same time, the curves that are compared are those "
    "of\n"
    "a cache for each thread, since only these are exact (mrc --threads separate).\n"
    "\n"
    "  --sizes LIST            cache sizes, such as 32K,1M,8M or 1K..64M (default, every half power of two)\n"
    "  --overhead PCT          budget of the first run (default 5), see record\n"
    "  --allowance TIME        CPU time that the first run may add in addition (default 1s), see record\n"
    "  --burst-refs N          references in a burst (default 30000)\n"
    "  --seed N                seed of the random gaps\n"
    "  --keep NAME             keep the two profiles, as NAME.burst.db and NAME.full.db\n" CLI_OUTPUT_HELP
    "\n"
    "CSV columns: size_bytes,exact,estimate,ci_low,ci_high,error,inside. An empty estimate: not enough "
    "samples.\n"
    "Exit status: 0, however large the errors are; with COMMAND also if it fails in the same way both "
    "times.\n128 + N after signal N: interrupted.\n";

struct verify_options {
    struct cli_output output;
    const char *sizes, *keep;
    double overhead_percent;
    uint64_t allowance_ns, burst_refs, seed;
    const char *of_runs; /* the last option that says how a command is recorded; NULL: none */
};

/* Results of both ways of verification. */
struct result {
    struct analysis_curve estimate;
    struct curve_point *exact;
    const char *exact_of;
    uint64_t exact_references;
    double overhead_percent;
    size_t n;
    struct report_verify_time times[TIME_SIZES];
    size_t ntimes, parts, unknown_parts;
    int separate; /* curves of a cache for each thread */
};

static const char *option_name(int value)
{
    size_t i = 0;
    while (options[i].val != value)
        i++;
    return options[i].name;
}

static int parse_option(int opt, const char *value, struct verify_options *o)
{
    if (opt != OPT_SIZES)
        o->of_runs = option_name(opt);
    switch (opt) {
    case OPT_SIZES:
        o->sizes = value;
        return 0;
    case OPT_OVERHEAD:
        return cli_percent_option("verify", "--overhead", value, &o->overhead_percent);
    case OPT_ALLOWANCE:
        return cli_time_option("verify", "--allowance", value, &o->allowance_ns);
    case OPT_BURST_REFS:
        if (cli_parse_count(value, '\0', &o->burst_refs, NULL) == 0 && o->burst_refs >= 1000 &&
            o->burst_refs <= 100000000)
            return 0;
        return cli_misuse("verify", "--burst-refs %s: must be a number from 1000 to 100000000", value);
    case OPT_SEED:
        return cli_seed_option("verify", value, &o->seed);
    default:
        o->keep = value;
        return value[0] != '\0' ? 0 : cli_misuse("verify", "--keep must name a file");
    }
}

static int load_curve(const char *file, int separate, struct analysis_curve *curve, struct error *err)
{
    struct profile *p;
    int status = profile_open(file, &p, err);
    if (status < 0)
        return status;
    curve->profile = file;
    const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU, .separate = separate};
    status = analysis_curve_compute(p, &question, curve, err);
    profile_close(p, 0, NULL);
    return status;
}

/* The curves of two profiles. Where threads worked at the same time, what a cache that they share misses
 * depends on the order in which their references were recorded. */
static int load_curves(const char *sampled, const char *full, struct result *r, struct analysis_curve *exact,
                       struct error *err)
{
    int status = load_curve(full, 0, exact, err);
    r->separate = status == 0 && exact->full && exact->busy_threads > 1;
    if (r->separate)
        status = load_curve(full, 1, exact, err);
    return status == 0 ? load_curve(sampled, r->separate, &r->estimate, err) : status;
}

/* Warns if the profile of full mode, whose curve is taken as exact, lacks references. */
static void warn_incomplete(const struct analysis_curve *exact)
{
    if (exact->extent == EXTENT_GAPS)
        fprintf(stderr,
                "cachegram: warning: about %.*f%% of the references of the run in full mode are missing: the "
                "comparison is not exact\n",
                exact->missed_percent < 10, exact->missed_percent);
    else if (exact->extent != EXTENT_ALL)
        fprintf(stderr,
                "cachegram: warning: the run in full mode holds all references%s: the comparison is not "
                "exact\n",
                report_extent(exact->extent));
}

static int load_timeline(const char *file, int separate, const struct curve_point *points,
                         struct analysis_timeline *timeline, struct error *err)
{
    struct profile *p;
    int status = profile_open(file, &p, err);
    if (status < 0)
        return status;
    *timeline = (struct analysis_timeline){.profile = file, .separate = separate};
    status = analysis_timeline_compute(p, points, TIME_SIZES, timeline, err);
    profile_close(p, 0, NULL);
    return status;
}

/* Gives parts of the run without an estimate the mean of all others. Returns their number, at the size where
 * that is largest. */
static size_t fill_unknown(struct analysis_grid *grid)
{
    size_t most = 0;
    for (size_t k = 0; k < grid->nsizes; k++) {
        double sum = 0, known = 0;
        for (size_t c = 0; c < grid->columns; c++)
            if (!isnan(grid->miss_ratio[c * grid->nsizes + k])) {
                sum += grid->miss_ratio[c * grid->nsizes + k];
                known++;
            }
        if (grid->columns - (size_t)known > most)
            most = grid->columns - (size_t)known;
        for (size_t c = 0; c < grid->columns && known > 0; c++)
            if (isnan(grid->miss_ratio[c * grid->nsizes + k]))
                grid->miss_ratio[c * grid->nsizes + k] = sum / known;
    }
    return most;
}

/* Compares both in as many parts as the one with fewer windows has: neither is divided more finely than its
 * own windows. */
static int compare_grids(const struct analysis_timeline *sampled, const struct analysis_timeline *full,
                         struct result *r, struct error *err)
{
    struct analysis_grid estimate = {0}, exact = {0};
    r->parts = sampled->n < full->n ? sampled->n : full->n;
    r->parts = r->parts < TIME_PARTS ? r->parts : TIME_PARTS;
    int status = analysis_grid_compute(sampled, ANALYSIS_AXIS_REFS, r->parts, &estimate, err);
    if (status == 0)
        status = analysis_grid_compute(full, ANALYSIS_AXIS_REFS, r->parts, &exact, err);
    if (status == 0)
        r->unknown_parts = fill_unknown(&estimate);
    for (size_t i = 0; i < TIME_SIZES && status == 0; i++) {
        struct report_verify_time *time = &r->times[r->ntimes++];
        time->size_bytes = full->sizes[i];
        time->cdf_error = analysis_cdf_error(&estimate, &exact, i, &time->at_time);
    }
    analysis_grid_clear(&estimate);
    analysis_grid_clear(&exact);
    return status;
}

/* Sets r->times; without windows in one of the profiles there are none. */
static int compare_times(const char *sampled, const char *full, struct result *r, struct error *err)
{
    struct analysis_timeline a = {0}, b = {0};
    struct curve_point points[TIME_SIZES] = {{0}};
    for (size_t i = 0; i < TIME_SIZES; i++)
        points[i].size_bytes = (double)(1024u << i);
    int status = load_timeline(sampled, r->separate, points, &a, err);
    if (status == 0)
        status = load_timeline(full, r->separate, points, &b, err);
    if (status == 0)
        status = compare_grids(&a, &b, r, err);
    analysis_timeline_clear(&a);
    analysis_timeline_clear(&b);
    return status == -ENODATA ? 0 : status;
}

static void print(const struct result *r, const char *estimate_of, const struct cli_output *output)
{
    struct report_style style = report_style_of(stdout, output->color);
    struct report_verify v = {.estimate_of = estimate_of,
                              .exact_of = r->exact_of,
                              .estimate_references = r->estimate.references,
                              .exact_references = r->exact_references,
                              .full_references = r->estimate.full_references,
                              .complete = r->estimate.full,
                              .bursts = r->estimate.bursts,
                              .line_bytes = r->estimate.line_bytes,
                              .overhead_percent = r->overhead_percent,
                              .estimate = r->estimate.points,
                              .exact = r->exact,
                              .n = r->n,
                              .times = r->times,
                              .ntimes = r->ntimes,
                              .parts = r->parts,
                              .unknown_parts = r->unknown_parts,
                              .separate = r->separate};
    report_verify(stdout, &v, output->format, &style);
}

/* --- a command --- */

/* Runs it once, discarding its standard output. 0, or -1 after a message if there is no profile. */
static int run_once(const struct verify_options *o, int full, const char *file, char **argv,
                    struct collect_result *result, int *exit_status)
{
    struct collect_options c = {.output = file,
                                .version = CACHEGRAM_VERSION,
                                .full = full,
                                .lines_rate = 1,
                                .burst_refs = o->burst_refs,
                                .overhead_percent = o->overhead_percent,
                                .allowance_ns = full ? 0 : o->allowance_ns,
                                .line_bytes = 64,
                                .seed = o->seed,
                                .follow = 1,
                                .objects = !full,
                                .call_graph = !full,
                                .reduce = COLLECT_REDUCE_DISTANCES,
                                .argv = argv};
    struct error err = {""};
    int ours = dup(STDOUT_FILENO), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (ours < 0 || nothing < 0 || dup2(nothing, STDOUT_FILENO) < 0) {
        error_set(&err, -errno, "cannot redirect the program's output: %s", strerror(errno));
        cli_fail(&err);
        return -1;
    }
    fcntl(ours, F_SETFD, FD_CLOEXEC);
    *exit_status = collect_run(&c, result, &err);
    dup2(ours, STDOUT_FILENO);
    close(ours);
    close(nothing);
    if (!result->ran || result->trouble.text[0] != '\0') {
        cli_fail(result->ran ? &result->trouble : &err);
        return -1;
    }
    if (result->stopped) {
        fprintf(stderr, "cachegram: verify: interrupted\n");
        return -1;
    }
    if (result->warning[0] != '\0')
        cli_print_warnings(result->warning);
    if (result->references == 0) { /* the profile's name would mean nothing to the user */
        error_set(&err, -ENODATA, "verify: nothing was recorded in the %s run%s%s", full ? "second" : "first",
                  result->nothing[0] ? ": the program was " : "", result->nothing);
        cli_fail(&err);
        return -1;
    }
    return 0;
}

/* The second run must read the same input as the first. */
static int rewind_stdin(off_t start)
{
    struct error err;
    if (start < 0 || lseek(STDIN_FILENO, start, SEEK_SET) >= 0)
        return 0;
    error_set(&err, -errno, "cannot read standard input a second time: %s", strerror(errno));
    return cli_fail(&err);
}

/* Sets *start, the offset to return to; -1 if nothing needs to be read twice. -1 for a pipe. */
static int check_stdin(off_t *start)
{
    struct stat st;
    *start = lseek(STDIN_FILENO, 0, SEEK_CUR);
    return *start < 0 && fstat(STDIN_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) ? -1
                                                                                                         : 0;
}

static int verify_command(const struct verify_options *o, char **argv, struct result *r)
{
    char folder[PATH_MAX] = "", burst[PATH_MAX + 16], full[PATH_MAX + 16];
    struct collect_result of_burst = {0}, of_full = {0};
    struct error err;
    off_t start;
    int first, second, status = 1;
    if (check_stdin(&start) != 0)
        return cli_misuse("verify", "the command runs twice, and standard input is a pipe, which can be read "
                                    "only once: take it from a file (< FILE, < /dev/null)");
    if (o->keep) {
        snprintf(burst, sizeof burst, "%s.burst.db", o->keep);
        snprintf(full, sizeof full, "%s.full.db", o->keep);
    } else {
        if (cli_temporary_folder("verify", folder, sizeof folder, &err) < 0)
            return cli_fail(&err);
        snprintf(burst, sizeof burst, "%s/burst.db", folder);
        snprintf(full, sizeof full, "%s/full.db", folder);
    }
    cli_catch_interrupts(); /* between the runs and after them, so that the files are removed */
    if (run_once(o, 0, burst, argv, &of_burst, &first) == 0 && !cli_interrupted() &&
        rewind_stdin(start) == 0 && run_once(o, 1, full, argv, &of_full, &second) == 0) {
        struct analysis_curve exact = {.points = r->exact, .n = r->n};
        if (load_curves(burst, full, r, &exact, &err) < 0 || compare_times(burst, full, r, &err) < 0) {
            cli_fail(&err);
        } else {
            status = 0;
            r->exact_references = exact.references;
            if (exact.extent == EXTENT_GAPS)
                r->exact_of = "a second run in full mode, of which references are missing";
            warn_incomplete(&exact);
            r->overhead_percent = of_burst.overhead_percent + of_burst.recorder_overhead_percent;
            if (first != second)
                fprintf(stderr, "cachegram: warning: exit status %d in the first run, %d in the second\n",
                        first, second);
        }
    }
    if (!o->keep) {
        unlink(burst);
        unlink(full);
        rmdir(folder);
    }
    if (of_burst.stopped || of_full.stopped)
        return 128 + (of_burst.stopped ? of_burst.stopped : of_full.stopped);
    return cli_interrupted() ? cli_interrupt_status() : status;
}

/* --- two profiles --- */

static void read_command(const char *file, char *command, size_t size)
{
    struct profile *p;
    command[0] = '\0';
    if (profile_open(file, &p, NULL) == 0) {
        profile_get(p, "command", command, size, NULL);
        profile_close(p, 0, NULL);
    }
}

/* Commands may differ, as by the name of a copy of the program; but then the user should know. */
static void warn_other_command(const char *sampled, const char *full)
{
    char commands[2][4096];
    read_command(sampled, commands[0], sizeof commands[0]);
    read_command(full, commands[1], sizeof commands[1]);
    if (strcmp(commands[0], commands[1]) != 0)
        fprintf(stderr,
                "cachegram: warning: %s and %s are of different commands: what differs is not only the "
                "error of the estimate\n",
                sampled, full);
}

static int verify_profiles(const char *sampled, const char *full, struct result *r)
{
    struct error err;
    struct analysis_curve exact = {.points = r->exact, .n = r->n};
    r->exact_of = full;
    if (load_curves(sampled, full, r, &exact, &err) < 0)
        return cli_fail(&err);
    if (!exact.full) {
        error_set(&err, -EINVAL, "%s is not a profile of full mode: there is no exact curve", full);
        return cli_fail(&err);
    }
    if (cli_check_lines(sampled, r->estimate.line_bytes, full, exact.line_bytes, &err) < 0)
        return cli_fail(&err);
    warn_other_command(sampled, full);
    r->exact_references = exact.references;
    warn_incomplete(&exact);
    return compare_times(sampled, full, r, &err) < 0 ? cli_fail(&err) : 0;
}

/* --- a profile and a trace --- */

static int exact_curve(struct trace_reader *reader, unsigned line_bytes, struct result *r, struct error *err)
{
    struct stackset_options set_options = {.line_bytes = &line_bytes, .nlines = 1, .rate = 1, .workers = 1};
    struct stackset *set = stackset_new(&set_options, err);
    int status = set ? trace_stack_read("verify", set, reader, 0, &r->exact_references, err) : -ENOMEM;
    if (status >= 0 && cli_interrupted())
        status = error_set(err, -EINTR, "interrupted");
    if (status >= 0 && trace_damage(reader))
        status = error_set(err, -EBADMSG, "%s: the exact curve needs all of it", trace_damage(reader)->text);
    if (status >= 0 && r->exact_references == 0)
        status = error_set(err, -ENODATA, "%s holds no references", r->exact_of);
    if (status >= 0) {
        struct stackset_result result = stackset_result(set, 0);
        status = curve_exact(result.stack, result.cold, line_bytes, r->exact, r->n, err);
    }
    stackset_free(set);
    return status < 0 ? status : 0;
}

static int verify_files(const char *profile, const char *trace, struct result *r)
{
    struct error err;
    r->exact_of = trace;
    if (load_curve(profile, 0, &r->estimate, &err) < 0)
        return cli_fail(&err);
    struct trace_reader *reader = trace_open(trace, NULL, &err);
    int status = reader ? 0 : -1;
    if (status == 0 && trace_info(reader)->sampled)
        status =
            error_set(&err, -EINVAL, "%s holds bursts, not every reference: there is no exact curve", trace);
    if (status == 0)
        status = exact_curve(reader, r->estimate.line_bytes, r, &err);
    trace_close(reader);
    return status < 0 ? cli_fail(&err) : 0;
}

int cmd_verify(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"verify", usage, "+:h", options, NULL};
    struct verify_options o = {.output = {.format = REPORT_TEXT},
                               .sizes = CLI_DEFAULT_SIZES,
                               .overhead_percent = COLLECT_OVERHEAD_PERCENT,
                               .allowance_ns = COLLECT_ALLOWANCE_NS,
                               .burst_refs = COLLECT_BURST_REFS};
    struct error err;
    int opt, status;
    if (getrandom(&o.seed, sizeof o.seed, 0) != sizeof o.seed)
        o.seed = (uint64_t)getpid();
    while ((opt = cli_next_option(&syntax, argc, argv, &o.output, &status)) != 0)
        if (parse_option(opt, optarg, &o) != 0)
            return 2;
    if (status >= 0)
        return status;
    int is_command = optind > 1 && strcmp(argv[optind - 1], "--") == 0;
    if (is_command ? argc == optind : argc - optind != 2)
        return cli_misuse("verify",
                          is_command ? "no command to run"
                                     : "give a command after --, or a profile and a trace, or two profiles");
    if (!is_command && o.of_runs)
        return cli_misuse(
            "verify", "--%s is for a command, which is recorded; profiles and traces are given as they are",
            o.of_runs);
    struct result r = {.overhead_percent = NAN, .exact_of = "a second run in full mode"};
    struct curve_point *points = cli_points(o.sizes, &r.n, &err);
    r.exact = points ? malloc(r.n * sizeof *r.exact) : NULL;
    if (!r.exact) {
        free(points);
        return cli_misuse("verify", "%s", points ? "out of memory" : err.text);
    }
    memcpy(r.exact, points, r.n * sizeof *points);
    r.estimate.points = points;
    r.estimate.n = r.n;
    status = is_command                          ? verify_command(&o, argv + optind, &r)
             : cli_is_database(argv[optind + 1]) ? verify_profiles(argv[optind], argv[optind + 1], &r)
                                                 : verify_files(argv[optind], argv[optind + 1], &r);
    if (status == 0)
        print(&r, argv[optind], &o.output);
    free(points);
    free(r.exact);
    return status;
}
