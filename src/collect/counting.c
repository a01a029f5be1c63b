/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/counting.h"
#include <math.h>
#include "collect/tunables.h"

double counting_native_ns(double ns, double blocks, double turns)
{
    return fmax(ns - COLLECT_COUNT_BLOCK_NS * blocks - COLLECT_COUNT_TURN_NS * turns,
                COLLECT_COUNT_LEAST * ns);
}
