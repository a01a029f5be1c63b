/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/counting.h"
#include "collect/tunables.h"

double counting_native_ns(double references, double ns)
{
    double each = references > 0 ? ns / references : 0;
    return ns * (COLLECT_COUNT_SHARE + COLLECT_COUNT_SHARE_SLOW * each / (each + COLLECT_COUNT_SLOW_NS));
}
