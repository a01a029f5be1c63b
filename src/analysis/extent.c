/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/extent.h"

#include <stddef.h>
#include <string.h>

double analysis_missed_percent(struct profile *p)
{
    double percent;
    return profile_get_number(p, "missed_percent", &percent, NULL) == 0 && percent > 0 ? percent : 0;
}

enum analysis_extent analysis_extent(struct profile *p)
{
    char complete[8] = "", unprofiled[8] = "";
    (void)profile_get(p, "complete", complete, sizeof complete, NULL);
    (void)profile_get(p, "unprofiled", unprofiled, sizeof unprofiled, NULL);
    if (strcmp(complete, "yes") != 0)
        return EXTENT_BEGINNING;
    if (analysis_missed_percent(p) > ANALYSIS_EXACT_PERCENT)
        return EXTENT_GAPS;
    return unprofiled[0] != '\0' ? EXTENT_PROFILED : EXTENT_ALL;
}
