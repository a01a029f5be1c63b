/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/clock/counting.h"
#include <math.h>
#include <stdint.h>
#include "base/cycles.h"
#include "collect/launch/process-time.h"
#include "collect/tunables.h"

#define CYCLES 8000u
#define TRIES 16
#define CYCLE_LEAST_NS 0.1
#define CYCLE_MOST_NS 2.

/* Duration of a processor cycle: the shortest of several tries (60 us in all, at the first call). */
static double cycle_ns(void)
{
    static double ns;
    if (ns > 0)
        return ns;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t start = monotonic_ns();
        cycles_wait(CYCLES);
        uint64_t took = monotonic_ns() - start;
        least = took < least ? took : least;
    }
    return ns = fmin(fmax((double)least / CYCLES, CYCLE_LEAST_NS), CYCLE_MOST_NS);
}

double counting_native_ns(double ns, double blocks, double turns)
{
    if (!(blocks > 0))
        return ns;
    double rest_ns = (ns - cycle_ns() * COLLECT_COUNT_BLOCK_CYCLES * blocks) /
                     (1 + COLLECT_COUNT_TURN_TIMES * fmin(turns / blocks, 1));
    return fmin(fmax(rest_ns, cycle_ns() * COLLECT_COUNT_NATIVE_CYCLES * blocks), ns);
}
