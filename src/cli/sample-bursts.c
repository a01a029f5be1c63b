/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample-bursts.c - applies the burst method to a trace and writes profiles as `cachegram record` does, to
 * measure its errors where the exact curve is known (`cachegram stack`).
 */
#define _GNU_SOURCE
#include "cli/sample-bursts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sizes.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "collect/replay/replay.h"
#include "trace/trace.h"

enum {
    OPT_BURSTS = 1,
    OPT_REFS,
    OPT_WATCH,
    OPT_SEED,
    OPT_SEEDS,
    OPT_DROP,
    OPT_CLOCK,
    OPT_SETS,
    OPT_LINE,
    OPT_FROM
};

static const struct option options[] = {
    {"bursts", required_argument, NULL, OPT_BURSTS},
    {"burst-refs", required_argument, NULL, OPT_REFS},
    {"watch", required_argument, NULL, OPT_WATCH},
    {"seed", required_argument, NULL, OPT_SEED},
    {"seeds", required_argument, NULL, OPT_SEEDS},
    {"drop-rate", required_argument, NULL, OPT_DROP},
    {"clock-error", required_argument, NULL, OPT_CLOCK},
    {"sets", no_argument, NULL, OPT_SETS},
    {"line", required_argument, NULL, OPT_LINE},
    {"from", required_argument, NULL, OPT_FROM},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram sample --bursts LIST [OPTIONS] TRACE\n"
    "\n"
    "Replays the burst method of 'cachegram record' on TRACE, all threads as one stream, and writes the "
    "profile\n"
    "that it would have made. TRACE is a file, as it may have to be read twice.\n"
    "\n"
    "  --bursts LIST       number of bursts, one in each equal part of the trace; a list, such as 30,100,\n"
    "                      makes a profile for each, in one pass\n"
    "  --burst-refs N      references of a burst (default 100000)\n"
    "  --watch K           survivors of each burst that are watched (default 4)\n"
    "  --drop-rate P       probability that a watched line is censored when another burst begins (default "
    "0)\n"
    "  --clock-error E     error of the reference clock, as a share, slowly changing (default 0)\n"
    "  --sets              count conflicts within cache sets in every burst (for 'cachegram mrc --ways')\n"
    "  --seed N            seed of the random numbers (default 1)\n"
    "  --seeds N           this many profiles with seeds from --seed on, in one pass (default 1)\n"
    "  --line BYTES        size of a cache line (default 64)\n"
    "  --from FORMAT       format of TRACE (default: by its first bytes)\n"
    "  -o, --output FILE   the profile (default cachegram.db); of several, NAME.db becomes "
    "NAME-BURSTS-SEED.db\n"
    "  --help              this text\n";

struct settings {
    uint64_t *bursts;
    size_t nbursts;
    uint64_t seeds;
    struct replay_options replay;
    const char *from, *output;
};

int sample_wants_bursts(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--bursts") == 0 || strncmp(argv[i], "--bursts=", 9) == 0)
            return 1;
    return 0;
}

/* --- options: 0, or 2 after a message --- */

static int parse_share(const char *name, const char *text, double most, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text || *end != '\0' || !(*value >= 0 && *value <= most))
        return cli_misuse("sample", "%s %s: must be from 0 to %g", name, text, most);
    return 0;
}

static int parse_bursts(const char *text, struct settings *o)
{
    struct error err;
    free(o->bursts);
    o->bursts = NULL;
    return size_parse_list(text, &o->bursts, &o->nbursts, &err) < 0
               ? cli_misuse("sample", "--bursts: %s", err.text)
               : 0;
}

static int parse_option(int opt, const char *value, struct settings *o)
{
    uint64_t number = 0;
    int status;
    switch (opt) {
    case OPT_BURSTS:
        return parse_bursts(value, o);
    case OPT_REFS:
        return cli_whole_option("sample", "--burst-refs", value, 1, UINT64_C(1) << 40, &o->replay.burst_refs);
    case OPT_WATCH:
        status = cli_whole_option("sample", "--watch", value, 0, 1000000, &number);
        o->replay.watch = (unsigned)number;
        return status;
    case OPT_SEED:
        return cli_whole_option("sample", "--seed", value, 0, UINT64_C(1) << 52, &o->replay.seed);
    case OPT_SEEDS:
        return cli_whole_option("sample", "--seeds", value, 1, 1000, &o->seeds);
    case OPT_DROP:
        return parse_share("--drop-rate", value, 1, &o->replay.drop_rate);
    case OPT_CLOCK:
        return parse_share("--clock-error", value, 0.99, &o->replay.clock_error);
    case OPT_SETS:
        o->replay.sets = 1;
        return 0;
    case OPT_LINE:
        status = cli_whole_option("sample", "--line", value, 8, 4096, &number);
        o->replay.line_bytes = (unsigned)number;
        if (status == 0 && (number & (number - 1)) != 0)
            return cli_misuse("sample", "--line %s: must be a power of two", value);
        return status;
    case OPT_FROM:
        o->from = value;
        return 0;
    default:
        o->output = value;
        return 0;
    }
}

/* --- the trace --- */

/* References of the trace; reads it if the number is not stored in it. */
static int count_references(const char *file, const char *from, uint64_t *references, struct error *err)
{
    struct trace_batch batch;
    struct trace_reader *r = trace_open(file, from, err);
    int status = r ? 0 : -1;
    uint64_t seen = 0;
    if (r && trace_info(r)->references != TRACE_UNKNOWN)
        seen = trace_info(r)->references;
    else
        while (r && !cli_interrupted() && (status = trace_next(r, &batch, err)) > 0)
            seen += batch.n;
    if (status >= 0 && trace_info(r)->sampled)
        status =
            error_set(err, -EINVAL, "%s holds bursts, with gaps between them: the whole run is needed", file);
    else if (status >= 0 && trace_damage(r))
        status = error_set(err, -EBADMSG, "%s", trace_damage(r)->text);
    else if (status >= 0 && seen == 0)
        status = error_set(err, -ENODATA, "%s holds no references", file);
    *references = seen;
    trace_close(r);
    return status < 0 ? status : 0;
}

/* Each process has its own memory. The space of a thread: the number of its process' first thread. */
static uint32_t space_of(const struct trace_reader *r, uint32_t thread)
{
    uint32_t first = 0;
    while (trace_thread(r, first).pid != trace_thread(r, thread).pid)
        first++;
    return first;
}

static int replay_trace(struct replay *replay, struct trace_reader *r, struct error *err)
{
    struct progress progress = progress_begin("sample");
    struct trace_batch batch;
    uint64_t references = 0;
    uint32_t thread = UINT32_MAX, space = 0;
    int status = 0;
    while (!cli_interrupted() && (status = trace_next(r, &batch, err)) > 0) {
        for (size_t i = 0; i < batch.nsegments && status >= 0; i++) {
            const struct trace_segment *s = &batch.segment[i];
            if (s->thread != thread)
                space = space_of(r, thread = s->thread);
            status = replay_references(replay, space, batch.address + s->begin, batch.size + s->begin,
                                       batch.rw + s->begin, s->end - s->begin, err);
        }
        if (status < 0)
            break;
        references += batch.n;
        progress_show(&progress, trace_progress(r), references);
    }
    progress_end(&progress);
    if (status >= 0 && trace_damage(r))
        status = error_set(err, -EBADMSG, "%s", trace_damage(r)->text);
    else if (status >= 0 && !cli_interrupted())
        status = replay_finish(replay, err);
    return status < 0 ? status : 0;
}

/* --- profiles --- */

struct sampled {
    struct profile *profile;
    char *path;
};

static char *name_of(const struct settings *o, uint64_t bursts, uint64_t seed)
{
    char *name = NULL;
    const char *dot = strrchr(o->output, '.');
    if (o->nbursts * o->seeds == 1)
        return strdup(o->output);
    if (!dot || strchr(dot, '/'))
        dot = o->output + strlen(o->output);
    if (asprintf(&name, "%.*s-%" PRIu64 "-%" PRIu64 "%s", (int)(dot - o->output), o->output, bursts, seed,
                 dot) < 0)
        return NULL;
    return name;
}

static int describe(struct profile *p, const struct replay_options *o, const char *file, struct error *err)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"line_bytes", o->line_bytes},
        {"seed", (double)o->seed},
        {"burst_refs", (double)o->burst_refs},
        {"watch", o->watch},
        {"drop_rate", o->drop_rate},
        {"clock_error", o->clock_error},
        {"run_references", (double)o->references},
        {"references", (double)o->bursts * (double)o->burst_refs},
        {"bursts", (double)o->bursts},
    };
    int status = profile_set(p, "command", file, err);
    if (status == 0)
        status = profile_set(p, "mode", "burst", err);
    if (status == 0)
        status = profile_set(p, "clock", "trace", err);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && status == 0; i++)
        status = profile_set_number(p, numbers[i].key, numbers[i].value, err);
    return status;
}

static int add_samplers(struct replay *replay, const struct settings *o, const char *file,
                        struct sampled *list, struct error *err)
{
    int status = 0;
    size_t used = 0;
    for (size_t i = 0; i < o->nbursts; i++) {
        for (uint64_t k = 0; k < o->seeds && status == 0; k++, used++) {
            struct replay_options sampler = o->replay;
            sampler.bursts = o->bursts[i];
            sampler.seed = o->replay.seed + k;
            list[used].path = name_of(o, sampler.bursts, sampler.seed);
            if (!list[used].path)
                return error_set(err, -ENOMEM, "out of memory for the names of profiles");
            status = profile_create(list[used].path, &list[used].profile, err);
            if (status == 0)
                status = describe(list[used].profile, &sampler, file, err);
            if (status == 0)
                status = replay_add(replay, &sampler, list[used].profile, err);
        }
    }
    return status;
}

/* An incomplete replay is deleted, and earlier profiles are restored. */
static int close_profiles(struct sampled *list, size_t n, int complete, struct error *err)
{
    int status = 0;
    for (size_t i = 0; i < n; i++) {
        if (list[i].profile && complete) {
            int code = profile_close(list[i].profile, 1, status == 0 ? err : NULL);
            status = status == 0 ? code : status;
        } else {
            profile_abandon(list[i].profile);
        }
        free(list[i].path);
    }
    return status;
}

static int run(const char *file, struct settings *o)
{
    struct error err;
    size_t n = o->nbursts * (size_t)o->seeds;
    struct sampled *list = calloc(n, sizeof *list);
    struct replay *replay = replay_new(&err);
    struct trace_reader *r = NULL;
    int status = list && replay ? 0 : error_set(&err, -ENOMEM, "out of memory");
    cli_catch_interrupts();
    if (status == 0)
        status = count_references(file, o->from, &o->replay.references, &err);
    if (status == 0 && !cli_interrupted() && !(r = trace_open(file, o->from, &err)))
        status = -1;
    if (status == 0 && r)
        status = add_samplers(replay, o, file, list, &err);
    if (status == 0 && r)
        status = replay_trace(replay, r, &err);
    trace_close(r);
    replay_free(replay);
    if (list) {
        struct error closing;
        int complete = status == 0 && !cli_interrupted();
        int code = close_profiles(list, n, complete, &closing);
        if (status == 0 && code < 0) {
            status = code;
            err = closing;
        }
    }
    free(list);
    if (status == 0 && cli_interrupted())
        return cli_interrupt_status();
    return status < 0 ? cli_fail(&err) : 0;
}

/* -1, or the exit status if the command is to end now. */
static int take_options(int argc, char **argv, struct settings *o)
{
    static const struct cli_syntax syntax = {"sample", usage, ":ho:", options, NULL};
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, NULL, &status)) != 0)
        if (parse_option(opt, optarg, o) != 0)
            return 2;
    if (status >= 0)
        return status;
    if (!cli_one_trace("sample", argc, argv))
        return 2;
    return strcmp(argv[optind], "-") == 0 ? cli_misuse("sample", "a trace for --bursts must be a file") : -1;
}

int cmd_sample_bursts(int argc, char **argv)
{
    struct settings o = {.seeds = 1,
                         .replay = {.burst_refs = 100000, .watch = 4, .line_bytes = 64, .seed = 1},
                         .output = CLI_DEFAULT_PROFILE};
    int status = take_options(argc, argv, &o);
    if (status < 0)
        status = run(argv[optind], &o);
    free(o.bursts);
    return status;
}
