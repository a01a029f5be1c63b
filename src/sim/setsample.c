/* SPDX-License-Identifier: Apache-2.0 */
/* setsample.c - a hierarchy of which only some sets are simulated. */
#include "sim/sampling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"

#define GROUPS_MAX (UINT64_C(1) << 20)
#define GROUPS_MIN 4u

struct group {
    int taken;
    uint64_t accesses[SIM_LEVELS], misses[SIM_LEVELS];
};

struct setsample {
    struct sim *sim;
    struct group *groups;
    uint64_t ngroups, taken;
    uint32_t levels;
};

static uint64_t divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int setsample_new(const struct sim_config *config, double share, struct setsample **result, struct error *err)
{
    struct sim *sim = NULL;
    if (!(share > 0 && share <= 1))
        return error_set(err, -EINVAL, "the share of sets must be above 0 and at most 1");
    if (config->straddle_once)
        return error_set(err, -EINVAL, "with a sample of sets, straddling references cannot be one access");
    int code = sim_new(config, &sim, err);
    if (code != 0)
        return code;
    uint64_t common = 0;
    for (uint32_t l = 0; l < config->levels; l++) {
        uint64_t lines = config->level[l].size_bytes / config->line_bytes;
        common = divisor(lines / (config->level[l].ways ? config->level[l].ways : lines), common);
    }
    if (common < GROUPS_MIN || common > GROUPS_MAX) {
        sim_free(sim);
        return error_set(err, -EINVAL,
                         "sets cannot be sampled: the levels' numbers of sets have the greatest common "
                         "divisor %llu, which must be from %u to %llu",
                         (unsigned long long)common, GROUPS_MIN, (unsigned long long)GROUPS_MAX);
    }
    struct setsample *s = calloc(1, sizeof *s);
    if (s)
        s->groups = calloc(common, sizeof *s->groups);
    if (!s || !s->groups) {
        free(s);
        sim_free(sim);
        return error_set(err, -ENOMEM, "out of memory for sampling");
    }
    s->sim = sim;
    s->ngroups = common;
    s->levels = config->levels;
    s->taken = (uint64_t)llround(share * (double)common);
    s->taken = s->taken < 2 ? 2 : s->taken;
    /* All choices of so many groups have the same probability (Knuth's algorithm S). */
    struct random_state random;
    random_seed(&random, config->seed);
    uint64_t wanted = s->taken;
    for (uint64_t g = 0; g < common; g++)
        if (random_below(&random, common - g) < wanted) {
            s->groups[g].taken = 1;
            wanted--;
        }
    *result = s;
    return 0;
}

void setsample_free(struct setsample *s)
{
    if (!s)
        return;
    sim_free(s->sim);
    free(s->groups);
    free(s);
}

int setsample_run(struct setsample *s, uint32_t core, const uint64_t *accesses, size_t n, struct error *err)
{
    int mask = (s->ngroups & (s->ngroups - 1)) == 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t line = accesses[i] >> SIM_LINE_SHIFT;
        struct group *group = &s->groups[mask ? line & (s->ngroups - 1) : line % s->ngroups];
        if (!group->taken)
            continue;
        int from = sim_access(s->sim, core, accesses[i], err);
        if (from < 0)
            return from;
        for (uint32_t l = 0; l < s->levels && l <= (uint32_t)from; l++) {
            group->accesses[l]++;
            group->misses[l] += l < (uint32_t)from;
        }
    }
    return 0;
}

struct setsample_result setsample_result(const struct setsample *s, uint32_t level)
{
    struct setsample_result r = {0};
    double spread = 0, taken = (double)s->taken;
    for (uint64_t g = 0; g < s->ngroups; g++) {
        r.accesses += s->groups[g].accesses[level];
        r.misses += s->groups[g].misses[level];
    }
    double all = (double)r.accesses, rest = 1 - taken / (double)s->ngroups;
    r.miss_ratio = (double)r.misses / all;
    for (uint64_t g = 0; g < s->ngroups; g++) {
        const struct group *group = &s->groups[g];
        double off = (double)group->misses[level] - r.miss_ratio * (double)group->accesses[level];
        spread += group->taken ? off * off : 0;
    }
    /* A ratio's variance by linearisation, for a draw without replacement (Cochran, 6.4). */
    r.standard_error = sqrt(rest * spread * taken / (taken - 1)) / all;
    return r;
}

double setsample_share(const struct setsample *s)
{
    return (double)s->taken / (double)s->ngroups;
}

const struct sim *setsample_sim(const struct setsample *s)
{
    return s->sim;
}
