/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evictions.h - which data or code evicted the lines that others miss on, and which misses are cold: the
 * table of `cachegram causes` (docs/methods.md, section 14).
 */
#ifndef CACHEGRAM_ANALYSIS_EVICTIONS_H
#define CACHEGRAM_ANALYSIS_EVICTIONS_H

#include "analysis/hotspots.h"

struct analysis_cause {
    const struct analysis_hotspot *victim;
    const struct analysis_hotspot *evictor; /* NULL: cold misses */
    double share;                           /* of all misses */
    double reuses; /* number of sampled reuses that it is from; 0: too few, so the victim's misses are divided
                      among all rows in proportion to their misses */
};

struct analysis_causes {
    struct analysis_hotspots h;  /* the rows */
    struct analysis_cause *list; /* by share, largest first; those without misses are left out */
    size_t n;
    double cold; /* part of all misses; NaN: too few samples */
};

/* question->causes is set here. As analysis_hotspots. */
int analysis_causes(struct profile *p, const char *name, const struct analysis_hotspots_question *question,
                    struct analysis_causes *causes, struct error *err);
void analysis_causes_clear(struct analysis_causes *causes);

#endif
