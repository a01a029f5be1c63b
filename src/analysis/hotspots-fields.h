/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots-fields.h - the field of an object's structures that an instruction fetches. Used by recorded.c and
 * hotspots-groups.c only. */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_FIELDS_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_FIELDS_H

#include "analysis/hotspots.h"

struct analysis_fields;

/* h has its data; h->parts is filled. NULL with err. */
struct analysis_fields *analysis_fields_load(struct profile *p, struct analysis_hotspots *h,
                                             struct error *err);
void analysis_fields_free(struct analysis_fields *f); /* NULL is allowed */
/* The number of the field that a site fetches of an object (ids); 0: not known. f NULL: 0. */
uint32_t analysis_fields_of(const struct analysis_fields *f, uint32_t site, uint32_t object);
/* The field of that number; NULL: not known. */
const struct profile_field *analysis_fields_get(const struct analysis_fields *f, uint32_t number);

#endif
