/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/counting.h"
#include <math.h>
#include "collect/tunables.h"

double counting_added_ns(double blocks, double indirect_share)
{
    return blocks * (COLLECT_COUNT_BLOCK_NS + COLLECT_COUNT_INDIRECT_NS * indirect_share);
}

double counting_native_ns(double added, double ns)
{
    (void)added;
    return 0.44 * ns;
}
