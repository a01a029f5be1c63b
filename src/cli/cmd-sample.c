/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-sample.c - `cachegram sample`: sparse sampling of a trace, into a profile. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/progress.h"
#include "cli/sample-bursts.h"
#include "cli/sim-source.h"
#include "profile/profile.h"
#include "sim/sparse.h"
#include "trace/usf-samples.h"

enum { OPT_WINDOW = 1, OPT_HIBERNATE, OPT_SAMPLES, OPT_PRESET, OPT_LINE, OPT_SEED, OPT_FROM };

static const struct option options[] = {
    {"window", required_argument, NULL, OPT_WINDOW},
    {"hibernate", required_argument, NULL, OPT_HIBERNATE},
    {"samples", required_argument, NULL, OPT_SAMPLES},
    {"preset", required_argument, NULL, OPT_PRESET},
    {"line", required_argument, NULL, OPT_LINE},
    {"seed", required_argument, NULL, OPT_SEED},
    {"from", required_argument, NULL, OPT_FROM},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram sample [OPTIONS] TRACE\n"
    "\n"
    "Samples reuse distances of TRACE (- is standard input) as the StatCache sampler does, into a profile "
    "that\n"
    "'cachegram mrc' models by StatStack or StatCache, window by window.\n"
    "\n"
    "  --bursts LIST       replay the burst method of 'cachegram record' instead: see\n"
    "                      'cachegram sample --bursts 1 --help'\n"
    "  --window N          references in a window, in which samples are started (default 1e6)\n"
    "  --hibernate N       references between windows, on average (default 14e6; 0: none)\n"
    "  --samples N         samples started in a window, on average (default 1500)\n"
    "  --preset s1|s2      settings of the papers: s1 is the default, s2 hibernates for 74e6\n"
    "  --line BYTES        line size (default 64)\n"
    "  --seed N            seed of the random numbers (default 1)\n"
    "  --from FORMAT       format of TRACE (default: by its first bytes)\n"
    "  -o, --output FILE   the profile (default cachegram.db; an existing one is kept as cachegram.db.old)\n"
    "  --help              this text\n"
    "\n"
    "Instead of TRACE, a USF file of samples can be given; its samples are used as they are.\n"
    "Interrupted by Ctrl-C, it keeps the samples of what it has read.\n";

struct sample_options {
    struct sparse_config sampling;
    uint64_t line_bytes;
    const char *from, *output, *trace;
};

/* 0, or 2 after a message. */
static int parse_option(int opt, const char *value, struct sample_options *o)
{
    static const char *const presets[] = {"s1", "s2", NULL};
    uint64_t number = 0;
    int word;
    switch (opt) {
    case OPT_WINDOW:
        if (cli_parse_count(value, 0, &o->sampling.window, NULL) != 0)
            return cli_misuse("sample", "--window %s: must be a number of references, such as 1e6", value);
        return 0;
    case OPT_HIBERNATE:
        if (strcmp(value, "0") != 0 && cli_parse_count(value, 0, &number, NULL) != 0)
            return cli_misuse("sample", "--hibernate %s: must be a number of references, such as 14e6",
                              value);
        o->sampling.hibernate = (double)number;
        return 0;
    case OPT_SAMPLES:
        if (cli_parse_count(value, 0, &number, NULL) != 0)
            return cli_misuse("sample", "--samples %s: must be a number, such as 1500", value);
        o->sampling.samples = (double)number;
        return 0;
    case OPT_PRESET:
        if ((word = cli_word_option("sample", "--preset", value, presets)) < 0)
            return 2;
        number = o->sampling.seed;
        o->sampling = word == 0 ? sparse_s1 : sparse_s2;
        o->sampling.seed = number;
        return 0;
    case OPT_LINE:
        if (cli_parse_whole(value, 4096, &o->line_bytes) != 0 || o->line_bytes < 16 ||
            o->line_bytes & (o->line_bytes - 1))
            return cli_misuse("sample", "--line %s: must be a power of two from 16 to 4096", value);
        return 0;
    case OPT_SEED:
        return cli_seed_option("sample", value, &o->sampling.seed);
    case OPT_FROM:
        o->from = value;
        return 0;
    default:
        o->output = value;
        return *value ? 0 : cli_misuse("sample", "--output needs a file name");
    }
}

static int read_trace(struct sim_source *source, struct sparse *sparse, struct error *err)
{
    struct progress progress = progress_begin("sample");
    struct sim_stretch stretch;
    int status = 0;
    cli_catch_interrupts();
    while (!cli_interrupted() && (status = sim_source_next(source, &stretch, err)) > 0) {
        if (sparse_run(sparse, stretch.accesses, stretch.n, err) != 0) {
            status = -ENOMEM;
            break;
        }
        progress_show(&progress, sim_source_progress(source), sparse_seen(sparse));
    }
    progress_end(&progress);
    return status < 0 ? status : 0;
}

/* --- the profile --- */

#define DAMAGED "the trace was not read to its end: dangling samples are not all cold misses"

struct found {
    const struct sparse_window *windows;
    size_t nwindows;
    const struct sparse_sample *samples; /* ordered by window */
    size_t nsamples;
    uint64_t references;
};

static int write_run(struct profile *p, const struct sample_options *o, const struct found *found,
                     size_t dangling, const char *warning, struct error *err)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"line_bytes", (double)o->line_bytes},
        {"references", (double)found->references},
        {"windows", (double)found->nwindows},
        {"samples", (double)found->nsamples},
        {"dangling", (double)dangling},
        {"window_refs", (double)o->sampling.window},
        {"hibernate_refs", o->sampling.hibernate},
        {"window_samples", o->sampling.samples},
    };
    char command[4096], started[64], seed[32];
    time_t now = time(NULL);
    struct tm utc;
    snprintf(command, sizeof command, "cachegram sample %s", o->trace);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->sampling.seed);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    int code = profile_set(p, "mode", "sparse", err);
    if (code == 0)
        code = profile_set(p, "command", command, err);
    if (code == 0)
        code = profile_set(p, "started", started, err);
    if (code == 0)
        code = profile_set(p, "seed", seed, err);
    if (code == 0 && warning)
        code = profile_set(p, "warning", warning, err);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && code == 0; i++)
        code = profile_set_number(p, numbers[i].key, numbers[i].value, err);
    return code;
}

static int write_profile(const struct sample_options *o, const struct found *found, const char *warning,
                         struct error *err)
{
    struct profile *p;
    const struct sparse_window *windows = found->windows;
    const struct sparse_sample *samples = found->samples;
    size_t nwindows = found->nwindows, nsamples = found->nsamples, dangling = 0;
    int code = profile_create(o->output, &p, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < nwindows && code == 0; i++) {
        struct profile_window window = {i + 1, windows[i].start, windows[i].length};
        code = profile_add_window(p, &window, err);
    }
    for (size_t i = 0; i < nsamples && code == 0; i++) {
        int endless = samples[i].distance == SPARSE_DANGLING;
        struct profile_sample sample = {.window = samples[i].window + 1,
                                        .start = samples[i].start,
                                        .distance = endless ? PROFILE_DANGLING : samples[i].distance,
                                        .line = samples[i].line};
        code = profile_add_sample(p, &sample, err);
        dangling += (size_t)endless;
    }
    if (code == 0)
        code = write_run(p, o, found, dangling, warning, err);
    if (code == 0)
        code = profile_commit(p, err);
    if (code != 0) {
        profile_abandon(p);
        return code;
    }
    int closed = profile_close(p, 1, err);
    if (closed == 0)
        fprintf(stderr, "cachegram: %llu references, %zu samples in %zu windows, %zu dangling: %s\n",
                (unsigned long long)found->references, nsamples, nwindows, dangling, o->output);
    return closed;
}

/* Stores samples that another sampler found in a profile, as if they were ours. */
static int take_samples(const struct sample_options *o, const struct usf_samples *s,
                        const struct error *damage)
{
    struct sparse_window *windows = calloc(s->nwindows + 1, sizeof *windows);
    struct sparse_sample *samples = calloc(s->nsamples + 1, sizeof *samples);
    struct found found = {windows, s->nwindows, samples, s->nsamples, 0};
    struct error err;
    int code = windows && samples ? 0 : error_set(&err, -ENOMEM, "out of memory for samples");
    if (code == 0 && s->nsamples == 0)
        code = error_set(&err, -ENODATA,
                         "%s holds no samples of lines of %llu bytes, but %llu of others (--line)", o->trace,
                         (unsigned long long)o->line_bytes, (unsigned long long)s->left_out);
    /* Times are relative to the first window. */
    uint64_t start = code == 0 ? s->window[0].begin : 0;
    for (size_t i = 0; i < s->nwindows && code == 0; i++)
        windows[i] = (struct sparse_window){s->window[i].begin - start, 1};
    for (size_t i = 0; i < s->nsamples && code == 0; i++) {
        const struct usf_sample *u = &s->sample[i];
        int endless = u->end == USF_DANGLING;
        uint64_t last = endless ? u->begin : u->end;
        struct sparse_window *w = &windows[u->window];
        samples[i] = (struct sparse_sample){u->window, u->begin - start,
                                            endless ? SPARSE_DANGLING : u->end - u->begin - 1,
                                            u->address / o->line_bytes};
        /* The window's length is unknown: at least up to its last sample. */
        w->length = u->begin - s->window[u->window].begin + 1;
        found.references = last - start + 1 > found.references ? last - start + 1 : found.references;
    }
    if (code == 0)
        code = write_profile(o, &found, *damage->text ? DAMAGED : NULL, &err);
    free(windows);
    free(samples);
    if (code != 0)
        return cli_fail(&err);
    return *damage->text ? cli_fail(damage) : 0;
}

static int run(const struct sample_options *o)
{
    struct sim_source_options from = {
        .paths = &o->trace, .npaths = 1, .from = o->from, .cores = 1, .line_bytes = (uint32_t)o->line_bytes};
    struct sim_source *source = NULL;
    struct sparse *sparse = NULL;
    struct error err;
    const char *warning = NULL;
    if (strcmp(o->trace, "-") != 0 && (!o->from || strcmp(o->from, "usf") == 0)) {
        struct usf_samples samples;
        struct error damage;
        int there = usf_samples_read(o->trace, (unsigned)o->line_bytes, &samples, &damage, &err);
        if (there < 0)
            return cli_fail(&err);
        if (there > 0) {
            int status = take_samples(o, &samples, &damage);
            usf_samples_clear(&samples);
            return status;
        }
    }
    int code = sparse_new(&o->sampling, &sparse, &err);
    if (code == -EINVAL)
        return cli_misuse("sample", "%s", err.text);
    if (code == 0 && (code = sim_source_open(&from, &source, &err)) == 0)
        code = read_trace(source, sparse, &err);
    const struct error *damage = code == 0 ? sim_source_damage(source) : NULL;
    if (code == 0 && sparse_seen(sparse) == 0)
        code = damage ? error_set(&err, -EBADMSG, "%s", damage->text)
                      : error_set(&err, -ENODATA, "%s holds no references", o->trace);
    if (code == 0) {
        if (cli_interrupted() || damage)
            warning = DAMAGED;
        else if (sim_source_sampled(source))
            warning = "the trace holds bursts, with gaps between them: reuse distances do not include "
                      "references in the gaps";
        struct found found = {.references = sparse_seen(sparse)};
        found.windows = sparse_windows(sparse, 0, &found.nwindows);
        found.samples = sparse_samples(sparse, 0, &found.nsamples);
        code = write_profile(o, &found, warning, &err);
    }
    int status = code == 0 ? 0 : cli_fail(&err);
    if (code == 0 && warning)
        fprintf(stderr, "cachegram: warning: %s\n", warning);
    if (code == 0 && cli_interrupted())
        status = cli_interrupt_status();
    else if (code == 0 && damage)
        status = cli_fail(damage);
    sim_source_close(source);
    sparse_free(sparse);
    return status;
}

int cmd_sample(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"sample", usage, ":o:h", options, NULL};
    struct sample_options o = {.sampling = sparse_s1, .line_bytes = 64, .output = CLI_DEFAULT_PROFILE};
    int opt, status;
    if (sample_wants_bursts(argc, argv))
        return cmd_sample_bursts(argc, argv);
    while ((opt = cli_next_option(&syntax, argc, argv, NULL, &status)) != 0)
        if (parse_option(opt, optarg, &o) != 0)
            return 2;
    if (status >= 0)
        return status;
    o.trace = cli_one_trace("sample", argc, argv);
    if (!o.trace)
        return 2;
    return run(&o);
}
