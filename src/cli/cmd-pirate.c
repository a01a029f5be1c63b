/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-pirate.c - `cachegram pirate`: measures a program while part of the shared cache is occupied. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sizes.h"
#include "cli/pirate-profile.h"
#include "pirate/code-place.h"
#include "pirate/pirating.h"
#include "collect/launch/target.h"
#include "report/pirate.h"

#define INTERVAL_NS 50000000u /* by default */

enum {
    OPT_SIZES = 1,
    OPT_PROGRESS,
    OPT_INTERVAL,
    OPT_REPEATS,
    OPT_DURATION,
    OPT_FROM,
    OPT_TO,
    OPT_THREADS,
    OPT_LIMIT,
    OPT_LLC,
    OPT_BY,
    OPT_RESULTS,
    OPT_COUNT
};

static const struct option options[] = {
    {"output", required_argument, NULL, 'o'},
    {"pid", required_argument, NULL, 'p'},
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"progress", required_argument, NULL, OPT_PROGRESS},
    {"interval-ms", required_argument, NULL, OPT_INTERVAL},
    {"repeats", required_argument, NULL, OPT_REPEATS},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"from", required_argument, NULL, OPT_FROM},
    {"to", required_argument, NULL, OPT_TO},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"llc", required_argument, NULL, OPT_LLC},
    {"by", required_argument, NULL, OPT_BY},
    {"results", required_argument, NULL, OPT_RESULTS},
    {"count", no_argument, NULL, OPT_COUNT},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram pirate [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
    "       cachegram pirate [OPTIONS] --progress HOW -p PID\n"
    "\n"
    "Measures how fast COMMAND runs with only part of the last-level cache: a thread on another core, the\n"
    "Pirate, occupies the rest, and verifies that by timing its own loads. COMMAND runs once for each\n"
    "size, the first time with all of the cache. With --progress, all sizes are measured in one run.\n"
    "\n"
    "  --sizes LIST            sizes left to the program, such as 4M,8M or 1M..16M (default: 16 steps)\n"
    "  --progress io|instructions|references|VARIABLE\n"
    "                          measure of the program's progress: bytes read and written, events, or a\n"
    "                          global variable of it (an unsigned counter of 4 or 8 bytes)\n"
    "  --interval-ms N         with --progress: length of a measurement (default 50)\n"
    "  --repeats N             without --progress: runs for each size (default 1; intervals need 2)\n"
    "  --count                 without --progress: one more run, which counts references, for the time\n"
    "                          per reference\n"
    "  -p, --pid PID           attach to a running process\n"
    "  --duration S            with --progress: measure for so long (default: to the program's end)\n"
    "  --from PLACE            start measuring when the program first executes it: a FUNCTION of it or\n"
    "                          of a library, FILE:FUNCTION, FILE:0xOFFSET or 0xADDRESS\n"
    "  --to PLACE              stop measuring when it executes this after that\n"
    "  --threads auto|N        threads of the Pirate (default auto: as many as do not slow the program\n"
    "                          themselves)\n"
    "  --limit PCT             largest fetch ratio of the Pirate for a valid measurement (default 1)\n"
    "  --llc SIZE              assume this size of the last level (default: what the system reports)\n"
    "  --by pirate|resctrl     resctrl: partition the cache in hardware instead\n"
    "  --results FILE          write results there and leave standard output to COMMAND; otherwise\n"
    "                          COMMAND's output goes to standard error\n"
    "  -o, --output FILE       the profile for results (default cachegram.db): one of the same command is\n"
    "                          extended, any other is kept as FILE.old\n" CLI_OUTPUT_HELP "\n"
    "CSV columns: available_bytes,ns_per_ref,cpi,gbps,fetch_ratio,miss_ratio,pirate_fetch_ratio,valid,\n"
    "stolen_bytes,ns_per_unit,ns_low,ns_high,slowdown,intervals,dropped,lost_share,modelled_miss_ratio,\n"
    "unit,by. Empty: cannot be measured here.\n"
    "Exit status: COMMAND's own, 128+N if signal N killed it; 125 if it was not started, 126 if it cannot "
    "be\n"
    "executed, 127 if it is not found, 2 for wrong usage.\n";

struct pirate_options {
    struct cli_output output;
    struct pirating_options run;
    const char *profile, *results;
    uint64_t *sizes;
    int count;
    off_t input; /* start of standard input; -1: not a file */
};

static int decimal(const char *option, const char *text, double most, double *value)
{
    char *end;
    double x = strtod(text, &end);
    if (*end == '%')
        end++;
    if (end == text || *end != '\0' || !(x > 0 && x <= most))
        return cli_misuse("pirate", "%s %s: must be above 0, at most %g", option, text, most);
    *value = x;
    return 0;
}

static int parse_option(int opt, const char *value, struct pirate_options *o)
{
    static const char *const by[] = {"pirate", "resctrl", NULL};
    struct error err;
    uint64_t number = 0;
    int status = 0, word;
    switch (opt) {
    case 'o':
        o->profile = value;
        return value[0] ? 0 : cli_misuse("pirate", "-o must name a file");
    case 'p':
        status = cli_whole_option("pirate", "-p", value, 1, INT32_MAX, &number);
        o->run.pid = (pid_t)number;
        return status;
    case OPT_SIZES:
        free(o->sizes);
        o->sizes = NULL;
        if (size_parse_list(value, &o->sizes, &o->run.n, &err) != 0)
            return cli_misuse("pirate", "%s", err.text);
        o->run.available = o->sizes;
        return 0;
    case OPT_PROGRESS:
        o->run.progress = value;
        return value[0] ? 0
                        : cli_misuse("pirate", "--progress must be io, an event, or the name of a variable");
    case OPT_INTERVAL:
        status = cli_whole_option("pirate", "--interval-ms", value, 1, 60000, &number);
        o->run.interval_ns = number * 1000000;
        return status;
    case OPT_REPEATS:
        status = cli_whole_option("pirate", "--repeats", value, 1, 1000, &number);
        o->run.repeats = (unsigned)number;
        return status;
    case OPT_DURATION:
        return decimal("--duration", value, 1e6, &o->run.duration_s);
    case OPT_FROM:
        o->run.from = value;
        return code_place_check(value, &err) == 0 ? 0 : cli_misuse("pirate", "--from: %s", err.text);
    case OPT_TO:
        o->run.to = value;
        return code_place_check(value, &err) == 0 ? 0 : cli_misuse("pirate", "--to: %s", err.text);
    case OPT_THREADS:
        if (strcmp(value, "auto") != 0)
            status = cli_whole_option("pirate", "--threads", value, 1, LLC_PIRATES, &number);
        o->run.threads = (unsigned)number;
        return status;
    case OPT_LIMIT:
        status = decimal("--limit", value, 100, &o->run.limit);
        o->run.limit /= 100;
        return status;
    case OPT_LLC:
        return cli_size_option("pirate", NULL, value, &o->run.llc_bytes);
    case OPT_BY:
        if ((word = cli_word_option("pirate", "--by", value, by)) < 0)
            return 2;
        o->run.resctrl = word;
        return 0;
    case OPT_RESULTS:
        o->results = value;
        return value[0] ? 0 : cli_misuse("pirate", "--results must name a file");
    default:
        o->count = 1;
        return 0;
    }
}

/* Prints on stderr, once, what the columns that stay empty would need. */
static void print_missing_columns(const struct analysis_pirate *r)
{
    int references = 0, counters = 0;
    for (size_t i = 0; i < r->n; i++) {
        references |= !isnan(r->rows[i].ns_per_ref);
        counters |= !isnan(r->rows[i].cpi);
    }
    if (!counters)
        fputs("cachegram: cpi, gbps, fetch_ratio and miss_ratio stay empty: they need --progress "
              "instructions (or "
              "references), and a machine with counters\n",
              stderr);
    if (!references)
        fputs("cachegram: ns_per_ref stays empty: it needs --count in whole runs, --progress references in "
              "one\n",
              stderr);
}

static void print(const struct pirate_options *o, FILE *out, struct analysis_pirate *r,
                  const struct analysis_curve *curve)
{
    struct report_style style = report_style_of(out, o->output.color);
    char *rest = r->notes, *line;
    report_pirate(out, r, curve, o->output.format, &style);
    if (o->output.format != REPORT_TEXT)
        while ((line = strsep(&rest, "\n")) != NULL)
            if (*line)
                fprintf(stderr, "cachegram: note: %s\n", line);
    print_missing_columns(r);
}

/* Stores the results and prints them. */
static int finish(struct pirate_options *o, FILE *out, const char *command, struct pirating_result *result)
{
    struct analysis_pirate r;
    struct analysis_curve curve = {0};
    struct error err;
    double references = NAN;
    int kept = 1, measured = 0;
    for (size_t i = 0; i < result->n; i++)
        measured |= result->rows[i].valid;
    if (o->input >= 0)
        lseek(STDIN_FILENO, o->input, SEEK_SET); /* the counting run reads what the others read */
    if (o->count && measured && pirate_count_references(o->run.argv, result->status, &references, &err) != 0)
        cli_fail(&err);
    for (size_t i = 0; i < result->n && !isnan(references); i++)
        result->rows[i].ns_per_ref = result->rows[i].ns_per_unit / references;
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error, like a full disk */
    if (pirate_profile_save(o->profile, command, &o->run, result, &err) != 0 ||
        pirate_profile_load(o->profile, &r, &curve, &err) != 0) {
        kept = 0; /* continue: minutes of measuring must not be lost with it */
        cli_fail(&err);
        curve = (struct analysis_curve){0};
        pirate_profile_unsaved(result, &o->run, &r);
    }
    if (o->results && ftruncate(fileno(out), 0) != 0)
        errno = 0; /* not of a device or a pipe */
    print(o, out, &r, &curve);
    analysis_pirate_clear(&r);
    free(curve.points);
    return kept ? 0 : 1;
}

/* Before minutes of measuring. What the file holds is kept until there are results. */
static FILE *open_results(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !out)
        close(fd);
    return out;
}

static int run(struct pirate_options *o)
{
    char command[PIRATE_COMMAND];
    struct pirating_result result;
    struct error err = {""};
    FILE *out = stdout;
    int there = 0;
    o->run.output_fd = STDERR_FILENO;
    if ((o->run.pid > 0 && target_may_attach(o->run.pid, &err) != 0) ||
        pirate_profile_possible(o->profile, &err) != 0) {
        cli_fail(&err);
        return o->run.argv ? 125 : 1;
    }
    if (o->results) {
        o->run.output_fd = -1;
        there = access(o->results, F_OK) == 0;
        out = open_results(o->results);
        if (!out) {
            error_set(&err, -errno, "cannot write '%s': %s", o->results, strerror(errno));
            cli_fail(&err);
            return o->run.argv ? 125 : 1;
        }
    }
    o->input = lseek(STDIN_FILENO, 0, SEEK_CUR);
    pirate_command(&o->run, command);
    int status = pirating_run(&o->run, &result, &err);
    if (!result.ran) {
        cli_fail(&err);
        if (o->results && !there)
            unlink(o->results);
    } else if (finish(o, out, command, &result) != 0 && status == 0) {
        status = 1;
    }
    pirating_clear(&result);
    if (o->results && (ferror(out) | fclose(out)) != 0) {
        error_set(&err, -errno, "cannot write '%s': %s", o->results, strerror(errno));
        cli_fail(&err);
        status = status ? status : 1;
    }
    return status;
}

/* -1, or the exit status if the command is to end now. */
static int take_options(int argc, char **argv, struct pirate_options *o)
{
    static const struct cli_syntax syntax = {"pirate", usage, "+:ho:p:", options, NULL};
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, &o->output, &status)) != 0)
        if (parse_option(opt, optarg, o) != 0)
            return 2;
    if (status >= 0)
        return status;
    if ((o->run.pid > 0) == (optind < argc))
        return cli_misuse("pirate",
                          o->run.pid > 0 ? "give a command or a process, not both" : "no command to run");
    if (o->run.pid > 0 && !o->run.progress)
        return cli_misuse("pirate", "a running process is measured in intervals, which need --progress");
    if (o->run.progress && (o->count || o->run.repeats > 1))
        return cli_misuse("pirate", "--count and --repeats measure whole runs and exclude --progress");
    if (o->count && (o->run.from || o->run.to))
        return cli_misuse("pirate", "--count counts whole runs and excludes --from and --to");
    if (!o->run.progress && (o->run.duration_s > 0 || o->run.interval_ns > 0))
        return cli_misuse("pirate", "%s needs --progress",
                          o->run.duration_s > 0 ? "--duration" : "--interval-ms");
    if (o->run.resctrl && (o->run.threads > 0 || o->run.limit > 0))
        return cli_misuse("pirate", "%s is of the Pirate, which --by resctrl replaces",
                          o->run.threads > 0 ? "--threads" : "--limit");
    if (o->run.interval_ns == 0)
        o->run.interval_ns = INTERVAL_NS;
    if (o->run.limit == 0)
        o->run.limit = HOLD_LIMIT;
    return -1;
}

int cmd_pirate(int argc, char **argv)
{
    struct pirate_options o = {
        .output = {.format = REPORT_TEXT}, .profile = CLI_DEFAULT_PROFILE, .run = {.repeats = 1}};
    int status = take_options(argc, argv, &o);
    if (status < 0) {
        o.run.argv = o.run.pid > 0 ? NULL : argv + optind;
        status = run(&o);
    }
    free(o.sizes);
    return status;
}
