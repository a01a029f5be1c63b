/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots-groups.h - groups the sites of a profile into the rows of a table of hotspots. */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_GROUPS_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/hotspots.h"

struct analysis_groups {
    size_t n;
    uint32_t *of_site; /* by id: number of its group; the largest id is most_site */
    uint64_t most_site;
};

/* h has images and frames. Makes h->rows, one per group, without shares. */
int analysis_groups_make(struct analysis_hotspots *h, const struct profile_site *sites, size_t nsites,
                         struct analysis_groups *groups, struct error *err);

#endif
