/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h - parses descriptions of caches: "L1:32K:8:lru", "L2:2M:16:plru:inclusive",
 * "L3:8M:full:nehalem:shared". */
#ifndef CACHEGRAM_SIM_SPEC_H
#define CACHEGRAM_SIM_SPEC_H

#include <stdint.h>
#include "base/error.h"
#include "sim/cache.h"

/*
 * LEVEL:SIZE:WAYS, then in any order and each at most once: a policy (default lru); inclusive, exclusive or
 * non-inclusive (default); shared or private (default). WAYS is a number or "full". *level is 0 for L1.
 * Otherwise -EINVAL or -ERANGE, with *level and *cache unchanged. Whether the level fits into a hierarchy is
 * checked by sim_new.
 */
int sim_spec_parse(const char *text, uint32_t *level, struct sim_level *cache, struct error *err);

#endif
