/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots-groups.h - groups the sites of a profile, or pairs of a site and a data object, into the rows of a
 * table of hotspots. */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_GROUPS_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/hotspots.h"

#define ANALYSIS_NO_GROUP UINT32_MAX

struct analysis_pair {
    uint32_t group, object;
    uint32_t field; /* see struct analysis_groups; 0: not known */
    uint32_t row;   /* + 1; 0: empty */
};

struct analysis_groups {
    size_t n;
    uint32_t *of_site; /* by id: number of its group; the largest id is most_site */
    uint64_t most_site;
    const struct analysis_fields *fields; /* the caller's; NULL: not asked for */
    /* With objects, rows are pairs of these groups and an object, or a field of it. */
    struct analysis_hotspot *groups; /* as they are without object */
    struct analysis_pair *pairs;     /* open addressing */
    size_t npairs, capacity;
};

/* h has images, frames and data. Makes h->rows, one per group, without shares; with objects none. */
int analysis_groups_make(struct analysis_hotspots *h, const struct profile_site *sites, size_t nsites,
                         struct analysis_groups *groups, struct error *err);

void analysis_groups_clear(struct analysis_groups *groups);
/* With objects: the row of that site and object (an id, 0: not known), which is made if there is none. 0 or
 * -ENOMEM. */
int analysis_groups_add(struct analysis_hotspots *h, struct analysis_groups *groups, uint32_t site,
                        uint32_t object);
/* A copy of a table's rows, in h->rows, and of its groups, to which rows can be added. Of the latter only the
 * pairs are copied, which the caller frees. 0 or -ENOMEM. */
int analysis_groups_copy(const struct analysis_groups *from, const struct analysis_hotspot *rows, size_t n,
                         struct analysis_hotspots *h, struct analysis_groups *groups);
/* Number of the site's group, or ANALYSIS_NO_GROUP. */
uint32_t analysis_groups_of(const struct analysis_groups *groups, uint64_t site);
/* Number of the row, or ANALYSIS_NO_GROUP. Without objects, the object plays no part. */
uint32_t analysis_groups_row(const struct analysis_hotspots *h, const struct analysis_groups *groups,
                             uint32_t site, uint32_t object);

#endif
