/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pirate_sim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/hierarchy.h"

enum { TARGET, PIRATE };
/* The Pirate's lines, far from all of the Target's; a multiple of every number of sets that is a power of
 * two. */
#define PIRATE_LINES (UINT64_C(1) << 54)

struct sim_pirate {
    struct sim *sim;
    uint64_t lines, next; /* of the Pirate's set */
    double rate, due;     /* due: accesses that the Pirate may make now, with a fraction */
};

static int sweep_on(struct sim_pirate *p, uint64_t n, struct error *err)
{
    for (; n > 0; n--) {
        int level = sim_access(p->sim, PIRATE, (PIRATE_LINES + p->next) << SIM_LINE_SHIFT, err);
        if (level < 0)
            return level;
        p->next = p->next + 1 < p->lines ? p->next + 1 : 0;
    }
    return 0;
}

int sim_pirate_new(const struct sim_pirate_config *config, struct sim_pirate **pirate, struct error *err)
{
    struct sim_config c = {.level = {config->cache},
                           .levels = 1,
                           .cores = 2,
                           .line_bytes = config->line_bytes,
                           .seed = config->seed,
                           .incoherent = 1};
    c.level[0].shared = 1;
    if (config->stolen_bytes >= config->cache.size_bytes || !(config->rate >= 0) || !isfinite(config->rate))
        return error_set(err, -EINVAL, "a Pirate must leave something, and have a rate");
    struct sim_pirate *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(err, -ENOMEM, "out of memory");
    int code = sim_new(&c, &p->sim, err);
    if (code == 0) {
        p->lines = config->stolen_bytes / config->line_bytes;
        p->rate = p->lines ? config->rate : 0;
        code = sweep_on(p, 2 * p->lines, err);
    }
    if (code != 0) {
        sim_pirate_free(p);
        return code;
    }
    sim_pirate_reset_stats(p);
    *pirate = p;
    return 0;
}

void sim_pirate_free(struct sim_pirate *p)
{
    if (p)
        sim_free(p->sim);
    free(p);
}

int sim_pirate_run(struct sim_pirate *p, const uint64_t *accesses, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        int level = sim_access(p->sim, TARGET, accesses[i], err);
        if (level < 0)
            return level;
        p->due += p->rate;
        uint64_t now = (uint64_t)p->due;
        p->due -= (double)now;
        int code = sweep_on(p, now, err);
        if (code != 0)
            return code;
    }
    return 0;
}

struct sim_stats sim_pirate_target(const struct sim_pirate *p)
{
    return sim_stats(p->sim, 0, TARGET);
}

struct sim_stats sim_pirate_itself(const struct sim_pirate *p)
{
    return sim_stats(p->sim, 0, PIRATE);
}

void sim_pirate_reset_stats(struct sim_pirate *p)
{
    memset(p->sim->stats, 0, sizeof p->sim->stats);
}
