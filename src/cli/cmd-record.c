/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-record.c - cachegram record: runs a command and profiles it. */
#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include "cli/cli.h"
#include "cli/ladder.h"
#include "cli/record-debug.h"
#include "collect/collect.h"
#include "report/report.h"
#include "collect/tunables.h"

/* A burst's buffer and the time between bursts have to stay sensible. */
#define BURST_REFS_MIN 1000u
#define BURST_REFS_MAX 100000000u
/* Of fewer lines no program has enough. */
#define LINES_MOST 65536u
#define GAP_US_MAX UINT64_C(3600000000)
#define ALLOWANCE_UNSET UINT64_MAX

static const char usage_text[] =
    "usage: cachegram record [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
    "\n"
    "Runs COMMAND as it would run alone, and writes a profile of its use of caches.\n"
    "\n"
    "  -o, --output FILE   the profile (default cachegram.db; an older one is kept as FILE.old)\n"
    "      --mode burst|count|full\n"
    "                      burst: short stretches, little overhead (default); count: all references\n"
    "                      counted, at 1.3 to 4 times the CPU time; full: every reference recorded, at\n"
    "                      25 to 80 times\n"
    "      --lines 1/N     full mode: measure a sample of one in N lines, an estimate for less CPU time\n"
    "      --burst-refs N  references in a burst (default 30000)\n"
    "      --overhead PCT  CPU time that profiling may add, in percent (default 5)\n"
    "      --allowance TIME  CPU time that it may add in addition, spent from the start: first every\n"
    "                      reference is recorded, then counted, then bursts are dense (default 1s; 0: none)\n"
    "      --gap-us N      instead of --overhead: mean CPU time between bursts of a thread, in us\n"
    "      --watch auto|page|none\n"
    "                      detect reuses after bursts: page (by page protection), none,\n"
    "                      auto (default): in the references recorded after each burst, then page\n"
    "      --clock auto|pmu|count|count-always|cputime\n"
    "                      how references between bursts are counted: pmu (by the machine's counters),\n"
    "                      count (before each burst), count-always (as --mode count), cputime (not\n"
    "                      at all), auto (default: count where the processor has AVX2 and BMI2,\n"
    "                      else pmu or cputime)\n"
    "      --line BYTES    size of a cache line (default 64)\n"
    "      --seed N        seed of the random gaps (default: a new one every time)\n"
    "      --trace FILE    write the references too: all in full mode, those of the bursts otherwise\n"
    "      --no-follow     do not profile the command's children\n"
    "      --objects on|off\n"
    "                      identify data objects (hotspots --by object); default on\n"
    "      --call-graph on|off\n"
    "                      record call paths (hotspots --call-graph); default on\n"
    "      --help          this text\n"
    "\n" CLI_LADDER "\n"
    "Exit status: the command's own, 128+N if signal N killed it; 125 if recording could not be started,\n"
    "126 if the command cannot be executed, 127 if it is not found, 2 for wrong usage.\n";

enum {
    OPTION_MODE = 256,
    OPTION_BURST_REFS,
    OPTION_GAP,
    OPTION_OVERHEAD,
    OPTION_ALLOWANCE,
    OPTION_LINE,
    OPTION_LINES,
    OPTION_SEED,
    OPTION_TRACE,
    OPTION_WATCH,
    OPTION_NO_FOLLOW,
    OPTION_OBJECTS,
    OPTION_CALL_GRAPH,
    OPTION_REDUCE,
    OPTION_CLOCK
};

static const struct option options_table[] = {
    {"output", required_argument, NULL, 'o'},
    {"mode", required_argument, NULL, OPTION_MODE},
    {"burst-refs", required_argument, NULL, OPTION_BURST_REFS},
    {"gap-us", required_argument, NULL, OPTION_GAP},
    {"overhead", required_argument, NULL, OPTION_OVERHEAD},
    {"allowance", required_argument, NULL, OPTION_ALLOWANCE},
    {"line", required_argument, NULL, OPTION_LINE},
    {"lines", required_argument, NULL, OPTION_LINES},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"watch", required_argument, NULL, OPTION_WATCH},
    {"no-follow", no_argument, NULL, OPTION_NO_FOLLOW},
    {"objects", required_argument, NULL, OPTION_OBJECTS},
    {"call-graph", required_argument, NULL, OPTION_CALL_GRAPH},
    {"clock", required_argument, NULL, OPTION_CLOCK},
    /* For benchmarks: in the man page only. */
    {"reduce", required_argument, NULL, OPTION_REDUCE},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char *const reductions[] = {[COLLECT_REDUCE_NONE] = "none",
                                         [COLLECT_REDUCE_COUNTS] = "counts",
                                         [COLLECT_REDUCE_DISTANCES] = "distances",
                                         NULL};
static const char *const watching[] = {
    [COLLECT_WATCH_AUTO] = "auto", [COLLECT_WATCH_PAGE] = "page", [COLLECT_WATCH_NONE] = "none", NULL};
static const char *const clocks[] = {
    [COLLECT_CLOCK_AUTO] = "auto",       [COLLECT_CLOCK_PMU] = "pmu",
    [COLLECT_CLOCK_COUNT] = "count",     [COLLECT_CLOCK_COUNT_ALWAYS] = "count-always",
    [COLLECT_CLOCK_CPUTIME] = "cputime", NULL};

/* 1/N, N a whole number. 0, or 2 after a message, like those below. */
static int parse_lines(const char *text, double *rate)
{
    uint64_t n = 0;
    char *end = NULL;
    errno = 0;
    if (strncmp(text, "1/", 2) == 0 && text[2] >= '1' && text[2] <= '9')
        n = strtoull(text + 2, &end, 10);
    if (n == 0 || *end != '\0' || errno != 0 || n > LINES_MOST)
        return cli_misuse("record", "--lines %s: must be 1/N, N a whole number from 1 to %u", text,
                          LINES_MOST);
    *rate = 1 / (double)n;
    return 0;
}

static int parse_switch(const char *option, const char *text, int *on)
{
    static const char *const words[] = {"on", "off", NULL};
    int word = cli_word_option("record", option, text, words);
    *on = word == 0;
    return word < 0 ? 2 : 0;
}

/* *counts: whether the last --mode was count. */
static int parse_option(int option, const char *value, struct collect_options *o, int *counts)
{
    static const char *const modes[] = {"burst", "count", "full", NULL};
    int word;
    switch (option) {
    case 'o':
        o->output = value;
        return value[0] != '\0' ? 0 : cli_misuse("record", "-o must name a file");
    case OPTION_MODE:
        if ((word = cli_word_option("record", "--mode", value, modes)) < 0)
            return 2;
        o->full = word == 2;
        *counts = word == 1;
        return 0;
    case OPTION_BURST_REFS:
        return cli_whole_option("record", "--burst-refs", value, BURST_REFS_MIN, BURST_REFS_MAX,
                                &o->burst_refs);
    case OPTION_GAP:
        return cli_whole_option("record", "--gap-us", value, 1, GAP_US_MAX, &o->gap_us);
    case OPTION_OVERHEAD:
        return cli_percent_option("record", "--overhead", value, &o->overhead_percent);
    case OPTION_ALLOWANCE:
        return cli_time_option("record", "--allowance", value, &o->allowance_ns);
    case OPTION_LINE:
        return cli_line_option("record", value, &o->line_bytes);
    case OPTION_LINES:
        return parse_lines(value, &o->lines_rate);
    case OPTION_SEED:
        return cli_whole_option("record", "--seed", value, 0, UINT64_MAX, &o->seed);
    case OPTION_TRACE:
        o->trace = value;
        if (value[0] != '\0' && strcmp(value, "-") != 0)
            return 0;
        return cli_misuse("record", "--trace must name a file: standard output is the command's");
    case OPTION_WATCH:
        if ((word = cli_word_option("record", "--watch", value, watching)) < 0)
            return 2;
        o->watch = (enum collect_watch)word;
        return 0;
    case OPTION_NO_FOLLOW:
        o->follow = 0;
        return 0;
    case OPTION_OBJECTS:
        return parse_switch("--objects", value, &o->objects);
    case OPTION_CALL_GRAPH:
        return parse_switch("--call-graph", value, &o->call_graph);
    case OPTION_REDUCE:
        if ((word = cli_word_option("record", "--reduce", value, reductions)) < 0)
            return 2;
        o->reduce = (enum collect_reduce)word;
        return 0;
    case OPTION_CLOCK:
        if ((word = cli_word_option("record", "--clock", value, clocks)) < 0)
            return 2;
        o->clock = (enum collect_clock)word;
        return 0;
    default:
        assert(0);
        return 2;
    }
}

/* Also under two names, or of files that are not there yet. */
static int same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (stat(a, &x) == 0)
        return stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    char *copy_a = strdup(a), *copy_b = strdup(b); /* dirname and basename may write to them */
    int same = 0;
    if (copy_a != NULL && copy_b != NULL) {
        same = strcmp(basename(copy_a), basename(copy_b)) == 0;
        strcpy(copy_a, a);
        strcpy(copy_b, b);
        same = same && stat(dirname(copy_a), &x) == 0 && stat(dirname(copy_b), &y) == 0 &&
               x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    }
    free(copy_a);
    free(copy_b);
    return same;
}

/* percent: of `seconds`, the program's own CPU time; NaN: not known. */
static void print_cost(const char *what, double percent, double seconds)
{
    if (isnan(percent))
        return;
    if (seconds < REPORT_PERCENT_SECONDS)
        fprintf(stderr, ", %s %.1f ms", what, 10 * percent * seconds);
    else
        fprintf(stderr, ", %s %.1f%%", what, percent);
}

/* The one line at the end, and a second one if the profile is not what was asked for. */
static void print_summary(const struct collect_options *o, const struct collect_result *r)
{
    int none = r->references == 0 && (r->full || r->bursts == 0);
    if (none)
        fprintf(stderr, "cachegram: nothing was recorded");
    else
        fprintf(stderr, "cachegram: %llu references", (unsigned long long)r->references);
    if (!none && !o->full && r->full && r->warning[0] == '\0')
        fputs(", all of them", stderr);
    if (!none && !r->full && r->full_references != 0)
        fprintf(stderr, ": the first %llu of the run, then", (unsigned long long)r->full_references);
    else if (!none && !r->full)
        fputs(" in", stderr);
    if (!none && !r->full && r->bursts == 0)
        fputs(" no burst", stderr);
    else if (!none && !r->full)
        fprintf(stderr, " %llu burst%s", (unsigned long long)r->bursts, r->bursts == 1 ? "" : "s");
    if (none && r->nothing[0] != '\0')
        fprintf(stderr, " (%s)", r->nothing);
    if (!none) {
        double seconds = r->cpu_seconds / (1 + r->overhead_percent / 100),
               recorder = r->cpu_seconds * r->recorder_overhead_percent / 100;
        print_cost("overhead", r->overhead_percent, seconds);
        if (!isnan(r->overhead_percent))
            print_cost("recorder", r->recorder_overhead_percent, seconds);
        else if (!isnan(recorder)) /* the program's own time is not known */
            fprintf(stderr, ", recorder %.*f s of CPU time", recorder < 1 ? 3 : 1, recorder);
    }
    fprintf(stderr, ": %s", o->output);
    if (o->trace != NULL)
        fprintf(stderr, ", traced %llu: %s", (unsigned long long)r->trace_references, o->trace);
    fputc('\n', stderr);
    if (r->warning[0] != '\0')
        cli_print_warnings(r->warning);
    else if (r->trouble.text[0] != '\0')
        fprintf(stderr, "cachegram: warning: the profile is incomplete: %s\n", r->trouble.text);
}

/* The option that leaves no room for an allowance, or NULL. */
static const char *no_allowance(const struct collect_options *o)
{
    return o->full                                 ? "--mode full"
           : o->gap_us != 0                        ? "--gap-us"
           : o->trace != NULL                      ? "--trace"
           : o->reduce != COLLECT_REDUCE_DISTANCES ? "--reduce"
                                                   : NULL;
}

int cmd_record(int argc, char **argv)
{
    struct collect_options o = {
        .output = CLI_DEFAULT_PROFILE,
        .version = CACHEGRAM_VERSION,
        .burst_refs = COLLECT_BURST_REFS,
        .overhead_percent = COLLECT_OVERHEAD_PERCENT,
        .allowance_ns = ALLOWANCE_UNSET,
        .line_bytes = 64,
        .lines_rate = 1,
        .follow = 1,
        .objects = 1,
        .call_graph = 1,
        .reduce = COLLECT_REDUCE_DISTANCES,
    };
    if (getrandom(&o.seed, sizeof(o.seed), GRND_NONBLOCK) != sizeof(o.seed))
        o.seed = (uint64_t)time(NULL);
    o.seed &= UINT32_MAX; /* short enough to be typed again */

    /* "+": what follows the command belongs to the command. */
    static const struct cli_syntax syntax = {"record", usage_text, "+:o:", options_table, NULL};
    int option, status, lines = 0, counts = 0, clock = 0;
    while ((option = cli_next_option(&syntax, argc, argv, NULL, &status)) != 0) {
        lines |= option == OPTION_LINES;
        clock |= option == OPTION_CLOCK;
        if (parse_option(option, optarg, &o, &counts) != 0)
            return 2;
    }
    if (status >= 0)
        return status;
    if ((status = record_debug(&o)) != 0)
        return status;
    if (optind >= argc)
        return cli_misuse("record", "no command to run");
    o.argv = argv + optind;
    if (counts && clock && o.clock != COLLECT_CLOCK_COUNT_ALWAYS)
        return cli_misuse("record", "--mode count cannot be combined with --clock %s", clocks[o.clock]);
    if (counts)
        o.clock = COLLECT_CLOCK_COUNT_ALWAYS;
    if (lines && !o.full)
        return cli_misuse("record", "--lines is for --mode full");
    if (o.trace != NULL && same_file(o.trace, o.output))
        return cli_misuse("record", "--trace %s: that is the profile's file; name another", o.trace);

    const char *without = no_allowance(&o);
    if (o.allowance_ns == ALLOWANCE_UNSET)
        o.allowance_ns = without != NULL ? 0 : COLLECT_ALLOWANCE_NS;
    else if (o.allowance_ns != 0 && without != NULL)
        return cli_misuse("record", "--allowance cannot be combined with %s", without);

    struct collect_result result;
    struct error err = {""};
    status = collect_run(&o, &result, &err);
    if (!result.ran) {
        cli_fail(&err);
        return status; /* 125, 126 or 127 */
    }
    /* The reader may be gone; the status is the command's in any case. */
    signal(SIGPIPE, SIG_IGN);
    print_summary(&o, &result);
    return status;
}
