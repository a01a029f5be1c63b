/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END_CODES (sizeof((struct analysis_summary *)0)->end / sizeof(uint64_t))

static void keep_counter(void *ctx, const char *name, uint64_t value)
{
    struct analysis_summary *s = ctx;
    if (s->ncounters == sizeof s->counter / sizeof s->counter[0])
        return;
    struct analysis_counter *counter = &s->counter[s->ncounters++];
    snprintf(counter->name, sizeof counter->name, "%s", name);
    counter->value = value;
}

static void keep_process(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe)
{
    (void)id, (void)pid, (void)ppid, (void)exe;
    ((struct analysis_summary *)ctx)->processes++;
}

static int compare_tid(const void *a, const void *b)
{
    uint32_t x = ((const struct profile_burst *)a)->tid, y = ((const struct profile_burst *)b)->tid;
    return (x > y) - (x < y);
}

static int load_bursts(struct profile *p, struct analysis_summary *s, struct error *err)
{
    struct profile_burst *bursts;
    uint64_t references = 0, loads = 0, stores = 0;
    int code = profile_bursts(p, &bursts, &s->bursts, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < s->bursts; i++) {
        s->end[bursts[i].end < END_CODES - 1 ? bursts[i].end : END_CODES - 1]++;
        references += bursts[i].references;
        loads += bursts[i].loads;
        stores += bursts[i].stores;
    }
    /* Totals are written at the end of the run; until then they are summed over bursts. */
    if (s->bursts && isnan(s->references)) {
        s->references = (double)references;
        s->loads = (double)loads;
        s->stores = (double)stores;
    }
    if (s->bursts)
        qsort(bursts, s->bursts, sizeof *bursts, compare_tid);
    for (size_t i = 0; i < s->bursts; i++)
        s->threads += i == 0 || bursts[i].tid != bursts[i - 1].tid;
    free(bursts);
    return 0;
}

int analysis_summary_load(struct profile *p, struct analysis_summary *s, struct error *err)
{
    memset(s, 0, sizeof *s);
    s->extent = analysis_extent(p);
    const struct {
        const char *key;
        char *value;
        size_t size;
    } words[] = {
        {"command", s->command, sizeof s->command}, {"started", s->started, sizeof s->started},
        {"mode", s->mode, sizeof s->mode},          {"complete", s->complete, sizeof s->complete},
        {"warning", s->warning, sizeof s->warning}, {"clock", s->clock, sizeof s->clock},
        {"missed", s->missed, sizeof s->missed},    {"few_bursts", s->few_bursts, sizeof s->few_bursts},
        {"seed", s->seed, sizeof s->seed},          {"unprofiled", s->unprofiled, sizeof s->unprofiled},
    };
    const struct {
        const char *key;
        double *value;
    } numbers[] = {
        {"references", &s->references},
        {"loads", &s->loads},
        {"stores", &s->stores},
        {"cold", &s->cold},
        {"cpu_seconds", &s->cpu_seconds},
        {"start_cpu_seconds", &s->start_cpu_seconds},
        {"recorder_cpu_seconds", &s->recorder_cpu_seconds},
        {"wall_seconds", &s->wall_seconds},
        {"exit_status", &s->exit_status},
        {"overhead_percent", &s->overhead_percent},
        {"memory_bytes", &s->memory_bytes},
        {"clock_error", &s->clock_error},
        {"clock_references", &s->clock_references},
        {"counted_references", &s->counted_references},
        {"missed_percent", &s->missed_percent},
    };
    int code = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((code = profile_get(p, words[i].key, words[i].value, words[i].size, err)) != 0 && code != -ENOENT)
            return code;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *numbers[i].value = NAN;
        if ((code = profile_get_number(p, numbers[i].key, numbers[i].value, err)) != 0 && code != -ENOENT)
            return code;
    }
    if ((code = load_bursts(p, s, err)) != 0 || (code = profile_counters(p, keep_counter, s, err)) != 0)
        return code;
    return profile_processes(p, keep_process, s, err);
}
