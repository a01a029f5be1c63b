/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots-objects.h - reads the data objects of a profile, and says which are the same for a user. */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_OBJECTS_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_OBJECTS_H

#include "analysis/hotspots.h"

/*
 * Fills h->data and h->same; h has frames. Blocks of the heap are named by the function, and its line, by
 * which they were allocated: the first one of the call path that is not a wrapper of an allocation function.
 * wrappers: further names, as in analysis_hotspots_question. 0, or negative with err.
 */
int analysis_objects_load(struct profile *p, struct analysis_hotspots *h, const char *wrappers,
                          struct error *err);

#endif
