/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/extent.h"

#include <errno.h>
#include <stdio.h>
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

int analysis_unprofiled(struct profile *p, char *text, size_t size)
{
    char list[768] = "";
    double all = 0, unprofiled = 0;
    int named = profile_get(p, "unprofiled", list, sizeof list, NULL) == 0;
    if (profile_get_number(p, "unprofiled_cpu_seconds", &unprofiled, NULL) == 0 &&
        profile_get_number(p, "cpu_seconds", &all, NULL) == 0 && unprofiled > 0)
        snprintf(
            text, size, "%.2f s of the %.2f s of CPU time went into programs that could not be profiled%s%s",
            unprofiled, all, named ? ": " : ", such as those that are ", named ? list : UNPROFILED_KINDS);
    else if (named)
        snprintf(text, size, "not profiled: %s", list);
    else
        return 0;
    return 1;
}

static void add_disabled(void *ctx, const char *name, uint64_t value)
{
    if (strcmp(name, "disabled") == 0)
        *(uint64_t *)ctx += value;
}

/* 1: agents turned themselves off, of which the profile's warnings speak. */
static int get_warnings(struct profile *p, char *text, size_t size)
{
    uint64_t disabled = 0;
    char lines[1000];
    if (profile_counters(p, add_disabled, &disabled, NULL) != 0 || disabled == 0 ||
        profile_get(p, "warning", lines, sizeof lines, NULL) != 0)
        return 0;
    size_t n = 0;
    for (const char *c = lines; *c && n + 3 < size; c++)
        n += (size_t)snprintf(text + n, size - n, *c == '\n' ? "; " : "%c", *c);
    return 1;
}

int analysis_refuse_unprofiled(struct profile *p, const char *name, struct error *err)
{
    char text[1000];
    double references = 0;
    if ((profile_get_number(p, "references", &references, NULL) == 0 && references > 0) ||
        (!analysis_unprofiled(p, text, sizeof text) && !get_warnings(p, text, sizeof text)))
        return 0;
    return error_set(err, -ENODATA, "the profile '%s' holds no references: %s", name, text);
}

int analysis_refuse_thread(const char *name, const char *first, struct error *err)
{
    return error_set(
        err, -EINVAL,
        "the profile '%s' does not distinguish the threads that share a cache, as every reference%s "
        "was recorded: use 'cachegram mrc --threads separate' with --thread, or record with "
        "--allowance 0",
        name, first);
}

int analysis_refuse_ways(const char *name, unsigned ways, struct error *err)
{
    return error_set(
        err, -EINVAL,
        "the profile '%s' holds no distances within cache sets: record with --allowance 0 for an "
        "estimate, or --mode full --trace FILE and use 'cachegram sim FILE --cache L1:32K:%u' "
        "for the exact answer",
        name, ways);
}
