/* SPDX-License-Identifier: Apache-2.0 */
/* sim-results.c - from simulations to rows of the result. */
#include "cli/sim-job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "report/sim.h"

static struct report_sim_row new_row(const struct sim_config *config, uint32_t number, uint32_t level,
                                     int core)
{
    struct report_sim_row row = {.config = number + 1,
                                 .level = level,
                                 .core = core,
                                 .cache = config->level[level],
                                 .accesses = NAN,
                                 .misses = NAN,
                                 .miss_ratio = NAN,
                                 .evictions = NAN,
                                 .writebacks = NAN,
                                 .stores = NAN,
                                 .store_misses = NAN,
                                 .low = NAN,
                                 .high = NAN,
                                 .unknown = NAN,
                                 .mu = NAN,
                                 .wood = NAN,
                                 .share = 1};
    row.ways = row.cache.ways ? row.cache.ways : row.cache.size_bytes / config->line_bytes;
    for (int cause = 0; cause < SIM_CAUSES; cause++)
        row.cause[cause] = NAN;
    return row;
}

static void count_row(struct report_sim_row *row, const struct sim_stats *stats, int causes)
{
    row->accesses = (double)stats->accesses;
    row->misses = (double)stats->misses;
    row->miss_ratio = row->misses / row->accesses;
    row->evictions = (double)stats->evictions;
    row->writebacks = (double)stats->writebacks;
    row->stores = (double)stats->stores;
    row->store_misses = (double)stats->store_misses;
    for (int cause = 0; causes && cause < SIM_CAUSES; cause++)
        row->cause[cause] = (double)stats->cause[cause];
}

static double within(double ratio)
{
    return ratio < 0 ? 0 : ratio > 1 ? 1 : ratio;
}

static size_t exact_rows(const struct sim_options *o, uint32_t i, const struct sim_job *job,
                         struct report_sim_row *rows)
{
    const struct sim_config *config = &o->config[i];
    size_t n = 0;
    for (uint32_t l = 0; l < config->levels; l++)
        for (uint32_t core = 0; core < sim_cores_seen(job->exact); core++) {
            struct sim_stats stats = sim_stats(job->exact, l, core);
            rows[n] = new_row(config, i, l, (int)core);
            count_row(&rows[n++], &stats, o->causes);
        }
    return n;
}

static size_t sets_rows(const struct sim_options *o, uint32_t i, const struct sim_job *job,
                        struct report_sim_row *rows)
{
    const struct sim_config *config = &o->config[i];
    const struct sim *sim = setsample_sim(job->sets);
    for (uint32_t l = 0; l < config->levels; l++) {
        struct setsample_result result = setsample_result(job->sets, l);
        struct sim_stats all = {0};
        for (uint32_t core = 0; core < sim_cores_seen(sim); core++) {
            struct sim_stats stats = sim_stats(sim, l, core);
            all.accesses += stats.accesses, all.misses += stats.misses, all.stores += stats.stores;
            all.store_misses += stats.store_misses, all.evictions += stats.evictions;
            all.writebacks += stats.writebacks;
        }
        rows[l] = new_row(config, i, l, sim_cores_seen(sim) > 1 ? -1 : 0);
        count_row(&rows[l], &all, 0);
        rows[l].share = setsample_share(job->sets);
        rows[l].low = within(result.miss_ratio - 2 * result.standard_error);
        rows[l].high = within(result.miss_ratio + 2 * result.standard_error);
    }
    return config->levels;
}

static size_t time_rows(const struct sim_options *o, uint32_t i, const struct sim_job *job,
                        struct report_sim_row *row)
{
    timesample_cut(job->time); /* ends the last burst */
    struct timesample_result r = timesample_result(job->time);
    *row = new_row(&o->config[i], i, 0, -1);
    row->accesses = (double)r.accesses;
    row->misses = (double)r.misses;
    row->miss_ratio = r.centre;
    row->low = within(r.low - 2 * r.standard_error);
    row->high = within(r.high + 2 * r.standard_error);
    row->unknown = (double)r.unknown;
    row->mu = r.mu;
    row->wood = r.miss_ratio;
    row->share = o->bursts ? NAN : (double)r.accesses / (double)r.seen; /* bursts: of an unknown whole */
    return 1;
}

int sim_print_results(const struct sim_options *o, const struct sim_job *jobs, const char *const *traces,
                      size_t ntraces, uint64_t references, struct error *err)
{
    struct report_style style = report_style_of(stdout, o->output.color);
    struct report_sim_row *rows = calloc((size_t)o->nconfigs * SIM_LEVELS * SIM_CORES, sizeof *rows);
    struct report_sim report = {.traces = traces,
                                .ntraces = ntraces,
                                .references = references,
                                .line_bytes = (uint32_t)o->line_bytes,
                                .configs = o->nconfigs,
                                .sampling = jobs[0].sets   ? "sets"
                                            : o->bursts    ? "bursts"
                                            : jobs[0].time ? "time"
                                                           : NULL,
                                .causes = o->causes,
                                .rows = rows};
    if (!rows)
        return error_set(err, -ENOMEM, "out of memory for the results");
    for (uint32_t i = 0; i < o->nconfigs; i++)
        report.n += jobs[i].sets   ? sets_rows(o, i, &jobs[i], rows + report.n)
                    : jobs[i].time ? time_rows(o, i, &jobs[i], rows + report.n)
                                   : exact_rows(o, i, &jobs[i], rows + report.n);
    report_sim(stdout, &report, o->output.format, &style);
    free(rows);
    return 0;
}
