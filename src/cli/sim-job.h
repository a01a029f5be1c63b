/* SPDX-License-Identifier: Apache-2.0 */
/* sim-job.h - options of `cachegram sim`, and how results are printed. */
#ifndef CACHEGRAM_SIM_JOB_H
#define CACHEGRAM_SIM_JOB_H

#include "cli/cli.h"
#include "sim/cache.h"
#include "sim/sampling.h"

#define SIM_JOBS 64u

struct sim_options {
    struct cli_output output;
    struct sim_config config[SIM_JOBS]; /* levels only, until all options are read */
    uint32_t nconfigs, last_level;
    uint64_t line_bytes, cores, seed, length, period;
    double sets;
    int causes, like_cachegrind;
    int time, bursts; /* time samples; those of the trace */
    const char *from;
};

/* One hierarchy; simulations that were not requested are NULL. */
struct sim_job {
    struct sim *exact;
    struct setsample *sets;
    struct timesample *time;
};

/* Prints the rows of all jobs, o->nconfigs of them. 0, or negative with err filled. */
int sim_print_results(const struct sim_options *o, const struct sim_job *jobs, const char *const *traces,
                      size_t ntraces, uint64_t references, struct error *err);

#endif
