/* SPDX-License-Identifier: Apache-2.0 */
/* oldest.h - the way with the smallest stamp, for LRU and FIFO. */
#ifndef CACHEGRAM_SIM_OLDEST_H
#define CACHEGRAM_SIM_OLDEST_H

#include "sim/cache-internal.h"

static inline __attribute__((always_inline)) uint32_t oldest_way(const struct slot *slots, uint32_t n)
{
    uint32_t oldest = 0;
    uint64_t stamp = slots[0].stamp;
    for (uint32_t way = 1; way < n; way++) {
        int older = slots[way].stamp < stamp; /* becomes conditional moves */
        oldest = older ? way : oldest;
        stamp = older ? slots[way].stamp : stamp;
    }
    return oldest;
}

#endif
