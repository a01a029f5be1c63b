/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/counting.h"
#include <math.h>
#include "collect/tunables.h"

double counting_native_ns(double blocks, double ns)
{
    return fmax(ns - COLLECT_COUNT_BLOCK_NS * blocks, COLLECT_COUNT_LEAST_SHARE * ns);
}
