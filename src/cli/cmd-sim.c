/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-sim.c - `cachegram sim`: exact simulation of cache hierarchies on traces. */
#include "cli/sim-job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/sim-source.h"
#include "sim/spec.h"

/* OPERAND: returned by getopt_long for an operand if the option string begins with '-'. */
enum {
    OPERAND = 1,
    OPT_CACHE,
    OPT_LINE,
    OPT_CORES,
    OPT_CAUSES,
    OPT_SETS,
    OPT_TIME,
    OPT_LIKE,
    OPT_SEED,
    OPT_FROM
};

static const struct option options[] = {
    {"cache", required_argument, NULL, OPT_CACHE},
    {"line", required_argument, NULL, OPT_LINE},
    {"cores", required_argument, NULL, OPT_CORES},
    {"causes", no_argument, NULL, OPT_CAUSES},
    {"sets", required_argument, NULL, OPT_SETS},
    {"time-sample", required_argument, NULL, OPT_TIME},
    {"like", required_argument, NULL, OPT_LIKE},
    {"seed", required_argument, NULL, OPT_SEED},
    {"from", required_argument, NULL, OPT_FROM},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram sim [OPTIONS] TRACE... --cache SPEC...\n"
    "\n"
    "Simulates caches on all references of TRACE (- is standard input) and counts hits and misses.\n"
    "\n"
    "  --cache SPEC[,SPEC...]  LEVEL:SIZE:WAYS[:POLICY][:INCLUSION][:shared], such as L1:32K:8:lru or\n"
    "                          L3:8M:16:nehalem:inclusive:shared; WAYS may be 'full'. Policies: lru,\n"
    "                          random, fifo, plru, nehalem, rrip, icelake. inclusive, exclusive or\n"
    "                          non-inclusive (default). A level that is not higher than the previous\n"
    "                          one begins another hierarchy; all are simulated in one pass\n"
    "  --line BYTES            line size (default 64)\n"
    "  --cores N               threads on cores 0 to N-1, round robin (default: one core per thread, up\n"
    "                          to 64); several traces: one core each, interleaved reference by reference\n"
    "  --causes                classify misses by cause: cold, coherence, inclusion, capacity, conflict\n"
    "  --sets SHARE            simulate this share of the sets only, such as 1/16; reports an interval\n"
    "  --time-sample LEN:PER   one LRU cache, on LEN accesses at a random place of every PER; reports\n"
    "                          bounds\n"
    "  --time-sample bursts    likewise, on each burst of a trace that holds bursts\n"
    "  --like cachegrind       count as Valgrind's cachegrind: a straddling reference, and a load and store\n"
    "                          of one instruction, are one access; no write-backs, no coherence\n"
    "  --seed N                seed of the random policy and of sampling (default 0)\n"
    "  --from FORMAT           format of TRACE (default: by its first bytes)\n" CLI_OUTPUT_HELP "\n"
    "CSV columns: level,core,size_bytes,ways,policy,accesses,misses,miss_ratio,evictions,writebacks,...; a\n"
    "row for each core at each level, shared ones too. Accesses are of lines: a reference that straddles\n"
    "two is two. Interrupted by Ctrl-C, it prints the results of what it has read.\n";

/* --- options: 0, or 2 after a message --- */

static int add_cache(const char *text, struct sim_options *o)
{
    uint32_t level;
    struct sim_level cache;
    struct error err;
    if (sim_spec_parse(text, &level, &cache, &err) != 0)
        return cli_misuse("sim", "%s", err.text);
    if (o->nconfigs == 0 || level <= o->last_level) {
        if (o->nconfigs == SIM_JOBS)
            return cli_misuse("sim", "more than %u hierarchies", SIM_JOBS);
        o->nconfigs++;
    }
    struct sim_config *config = &o->config[o->nconfigs - 1];
    if (level != config->levels)
        return cli_misuse("sim", "'%s' follows, but L%u is expected", text, config->levels + 1);
    config->level[config->levels++] = cache;
    o->last_level = level;
    return 0;
}

static int add_caches(const char *text, struct sim_options *o)
{
    char *copy = strdup(text), *rest = copy, *spec;
    int status = copy ? 0 : cli_misuse("sim", "out of memory");
    while (status == 0 && (spec = strsep(&rest, ",")) != NULL)
        status = add_cache(spec, o);
    free(copy);
    return status;
}

static int parse_share(const char *text, double *share)
{
    char *end;
    *share = strtod(text, &end);
    if (*end == '/' && end != text) {
        const char *below = end + 1;
        *share /= strtod(below, &end);
        if (end == below)
            return -1;
    }
    return end != text && *end == 0 && *share > 0 && *share <= 1 ? 0 : -1;
}

static int parse_option(int opt, const char *value, struct sim_options *o)
{
    const char *period;
    switch (opt) {
    case OPT_CACHE:
        return add_caches(value, o);
    case OPT_LINE:
        if (cli_parse_whole(value, 4096, &o->line_bytes) != 0)
            return cli_misuse("sim", "--line %s: must be a power of two from 16 to 4096", value);
        return 0;
    case OPT_CORES:
        return cli_whole_option("sim", "--cores", value, 1, SIM_CORES, &o->cores);
    case OPT_CAUSES:
        o->causes = 1;
        return 0;
    case OPT_SETS:
        if (parse_share(value, &o->sets) != 0)
            return cli_misuse("sim", "--sets %s: must be a share, such as 1/16 or 0.1", value);
        return 0;
    case OPT_TIME:
        if (strcmp(value, "bursts") == 0) {
            o->bursts = 1;
            return 0;
        }
        if (cli_parse_count(value, ':', &o->length, &period) != 0 ||
            cli_parse_count(period, 0, &o->period, NULL) != 0)
            return cli_misuse("sim", "--time-sample %s: must be LENGTH:PERIOD, such as 500K:5M, or bursts",
                              value);
        return 0;
    case OPT_LIKE:
        o->like_cachegrind = strcmp(value, "cachegrind") == 0;
        return o->like_cachegrind ? 0 : cli_misuse("sim", "--like %s: only cachegrind is known", value);
    case OPT_SEED:
        return cli_seed_option("sim", value, &o->seed);
    default:
        o->from = value;
        return 0;
    }
}

/* Checks and completes the options once all are read. */
static int check_options(struct sim_options *o, size_t ntraces)
{
    if (ntraces == 0)
        return cli_misuse("sim", "no trace given");
    if (o->nconfigs == 0)
        return cli_misuse("sim", "no caches given: use --cache");
    o->time = o->bursts || o->period > 0;
    if (o->bursts && o->period > 0)
        return cli_misuse("sim", "--time-sample: either bursts or LENGTH:PERIOD");
    if (o->sets > 0 && o->time)
        return cli_misuse("sim", "--sets and --time-sample exclude each other");
    if ((o->sets > 0 || o->time) && (o->causes || o->like_cachegrind))
        return cli_misuse("sim", "--causes and --like need all references and all sets");
    if (ntraces > SIM_CORES)
        return cli_misuse("sim", "at most %u traces", SIM_CORES);
    if (o->cores == 0)
        o->cores = ntraces > 1 ? ntraces : SIM_CORES;
    for (uint32_t i = 0; i < o->nconfigs; i++) {
        struct sim_config *config = &o->config[i];
        config->line_bytes = (uint32_t)o->line_bytes;
        config->cores = (uint32_t)o->cores;
        config->seed = o->seed;
        config->causes = o->causes;
        config->straddle_once = config->write_around = config->incoherent = o->like_cachegrind;
        if (o->time && (config->levels > 1 || config->level[0].policy != SIM_LRU))
            return cli_misuse("sim", "--time-sample is for hierarchies of one level with lru");
    }
    return 0;
}

/* --- running --- */

static int make_job(const struct sim_options *o, const struct sim_config *config, struct sim_job *job,
                    struct error *err)
{
    if (o->sets > 0)
        return setsample_new(config, o->sets, &job->sets, err);
    if (o->time) {
        struct timesample_config sample = {.size_bytes = config->level[0].size_bytes,
                                           .ways = config->level[0].ways,
                                           .line_bytes = config->line_bytes,
                                           .length = o->length,
                                           .period = o->period,
                                           .seed = o->seed};
        return timesample_new(&sample, &job->time, err);
    }
    return sim_new(config, &job->exact, err);
}

static int run_job(const struct sim_job *job, const struct sim_stretch *stretch, struct error *err)
{
    if (job->sets)
        return setsample_run(job->sets, stretch->core, stretch->accesses, stretch->n, err);
    if (job->time && stretch->burst)
        timesample_cut(job->time);
    if (job->time)
        return timesample_run(job->time, stretch->accesses, stretch->n, err);
    return sim_run(job->exact, stretch->core, stretch->accesses, stretch->n, err);
}

static int run_all(struct sim_source *source, const struct sim_job *jobs, uint32_t n, uint64_t *references,
                   struct error *err)
{
    struct progress progress = progress_begin("sim");
    struct sim_stretch stretch;
    uint64_t shown = 0;
    int status = 0;
    cli_catch_interrupts();
    while (!cli_interrupted() && (status = sim_source_next(source, &stretch, err)) > 0) {
        for (uint32_t i = 0; i < n && status > 0 && stretch.n > 0; i++)
            if (run_job(&jobs[i], &stretch, err) != 0)
                status = -1;
        if (status < 0)
            break;
        *references += stretch.references;
        if (*references - shown >= 8192) { /* stretches may be short, and the clock takes time to read */
            shown = *references;
            progress_show(&progress, sim_source_progress(source), *references);
        }
    }
    progress_end(&progress);
    return status;
}

/* --- results --- */

/* Prints warnings after the results; returns the exit status. */
static int print_warnings_and_status(const struct sim_options *o, const struct sim_source *source,
                                     uint64_t references)
{
    if (sim_source_sampled(source) && !o->bursts)
        fputs(
            "cachegram: warning: the trace holds bursts, with gaps between them: each burst starts with the "
            "cache contents that the previous one left\n",
            stderr);
    if (cli_interrupted()) {
        fprintf(stderr, "cachegram: interrupted: the results are those of the first %llu references\n",
                (unsigned long long)references);
        return cli_interrupt_status();
    }
    const struct error *damage = sim_source_damage(source);
    if (!damage)
        return 0;
    struct error err;
    error_set(&err, -EBADMSG, "%.900s; the results are those of the references before that", damage->text);
    return cli_fail(&err);
}

static int run(const struct sim_options *o, const char *const *traces, size_t ntraces)
{
    struct sim_source_options from = {.paths = traces,
                                      .npaths = ntraces,
                                      .from = o->from,
                                      .cores = (uint32_t)o->cores,
                                      .line_bytes = (uint32_t)o->line_bytes,
                                      .straddle_once = o->like_cachegrind,
                                      .merge_rmw = o->like_cachegrind};
    struct sim_job jobs[SIM_JOBS] = {{0}};
    struct sim_source *source = NULL;
    struct error err;
    uint64_t references = 0;
    int status = 0, code = 0;
    for (uint32_t i = 0; i < o->nconfigs && status == 0; i++)
        status = make_job(o, &o->config[i], &jobs[i], &err);
    if (status == -EINVAL)
        code = cli_misuse("sim", "%s", err.text);
    else if (status == 0 && (status = sim_source_open(&from, &source, &err)) == 0)
        status = run_all(source, jobs, o->nconfigs, &references, &err);
    if (status == 0 || (status > 0 && cli_interrupted())) {
        if (references == 0)
            status = sim_source_damage(source)
                         ? error_set(&err, -EBADMSG, "%s", sim_source_damage(source)->text)
                         : error_set(&err, -ENODATA, "%s holds no references", traces[0]);
        else if (o->bursts && !sim_source_sampled(source))
            status =
                error_set(&err, -EINVAL, "%s holds no bursts: give --time-sample LENGTH:PERIOD", traces[0]);
        else
            status = sim_print_results(o, jobs, traces, ntraces, references, &err);
        if (status == 0)
            code = print_warnings_and_status(o, source, references);
    }
    if (status < 0 && code == 0)
        code = cli_fail(&err);
    for (uint32_t i = 0; i < o->nconfigs; i++) {
        sim_free(jobs[i].exact);
        setsample_free(jobs[i].sets);
        timesample_free(jobs[i].time);
    }
    sim_source_close(source);
    return code;
}

/* Of `--cache A B C`, B and C arrive as operands, in their order. */
static int add_operand(const char *text, struct sim_options *o, const char **traces, size_t *ntraces)
{
    if (text[0] == 'L' && text[1] >= '1' && text[1] <= '9' && text[2] == ':')
        return add_caches(text, o);
    traces[(*ntraces)++] = text;
    return 0;
}

/* -1, or the exit status if the command is to end now. */
static int take_arguments(int argc, char **argv, struct sim_options *o, const char **traces, size_t *ntraces)
{
    static const struct cli_syntax syntax = {"sim", usage, "-:h", options, NULL};
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, &o->output, &status)) != 0)
        if ((opt == OPERAND ? add_operand(optarg, o, traces, ntraces) : parse_option(opt, optarg, o)) != 0)
            return 2;
    for (int i = optind; i < argc && status < 0; i++) /* after -- */
        if (add_operand(argv[i], o, traces, ntraces) != 0)
            return 2;
    return status < 0 && check_options(o, *ntraces) != 0 ? 2 : status;
}

int cmd_sim(int argc, char **argv)
{
    static struct sim_options o; /* large */
    size_t ntraces = 0;
    const char **traces = calloc((size_t)argc, sizeof *traces);
    if (!traces)
        return cli_misuse("sim", "out of memory");
    o = (struct sim_options){.output = {.format = REPORT_TEXT}, .line_bytes = 64};
    int status = take_arguments(argc, argv, &o, traces, &ntraces);
    if (status < 0)
        status = run(&o, traces, ntraces);
    free(traces);
    return status;
}
