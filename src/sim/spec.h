/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h - caches as people write them: "L1:32K:8:lru", "L2:2M:16:plru:inclusive",
 * "L3:8M:full:nehalem:shared". */
#ifndef CACHEGRAM_SIM_SPEC_H
#define CACHEGRAM_SIM_SPEC_H

#include <stdint.h>
#include "base/error.h"
#include "sim/cache.h"

/*
 * LEVEL:SIZE:WAYS, then in any order and each at most once: a policy (default lru); inclusive,
 * exclusive or non-inclusive (default); shared or private (default). WAYS is a number or "full". *level is 0
 * for L1. -EINVAL for anything else, or -ERANGE; *level and *cache are untouched then. Whether the level
 * makes sense in a hierarchy is for sim_new to say.
 */
int sim_spec_parse(const char *text, uint32_t *level, struct sim_level *cache, struct error *err);

#endif
