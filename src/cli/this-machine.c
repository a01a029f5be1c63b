/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/this-machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "32768,524288,8388608", the first level first. */
static size_t parse_levels(const char *text, uint64_t levels[MACHINE_LEVELS])
{
    size_t n = 0;
    while (*text >= '0' && *text <= '9' && n < MACHINE_LEVELS) {
        char *end;
        levels[n++] = strtoull(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

void cli_machines_find(struct profile *p, struct cli_machines *m)
{
    char caches[128];
    struct error ignored;
    *m = (struct cli_machines){.n = 0};
    if (profile_get(p, "caches", caches, sizeof caches, NULL) == 0) {
        struct report_page_machine *recorded = &m->list[0];
        profile_get(p, "hostname", m->host, sizeof m->host, NULL);
        profile_get(p, "cpu", m->cpu, sizeof m->cpu, NULL);
        *recorded = (struct report_page_machine){.recorded = 1, .name = m->host, .cpu = m->cpu};
        recorded->nlevels = parse_levels(caches, recorded->level_bytes);
        m->n = recorded->nlevels > 0;
    }
    if (machine_topology(&m->here, &ignored) != 0)
        return;
    struct report_page_machine here = {.name = m->here.name, .cpu = m->here.cpu, .nlevels = m->here.levels};
    for (size_t i = 0; i < here.nlevels; i++)
        here.level_bytes[i] = m->here.level[i].size_bytes;
    if (m->n > 0 && strcmp(m->host, here.name) == 0 && m->list[0].nlevels == here.nlevels &&
        memcmp(m->list[0].level_bytes, here.level_bytes, here.nlevels * sizeof here.level_bytes[0]) == 0)
        return;
    m->list[m->n++] = here;
}

const struct report_page_machine *cli_this_machine(const struct cli_machines *m)
{
    return m->n > 0 ? &m->list[m->n - 1] : NULL;
}

int cli_answer(struct profile *p, const struct cli_machines *m, const struct analysis_curve *curve,
               struct analysis_answer *answer)
{
    const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU, .separate = curve->separate};
    const struct report_page_machine *machine = cli_this_machine(m);
    struct curve_point point = {NAN, NAN, NAN, NAN};
    struct analysis_curve first = {.profile = curve->profile, .points = &point, .n = 1};
    struct error ignored;
    if (!machine || curve->n == 0)
        return 0;
    point.size_bytes = (double)machine->level_bytes[0];
    for (size_t i = 0; i < curve->n; i++)
        if (curve->points[i].size_bytes == point.size_bytes)
            point = curve->points[i];
    if (isnan(point.high) && analysis_curve_compute(p, &question, &first, &ignored) != 0)
        return 0;
    analysis_answer_find(&point, curve->points, curve->n, answer);
    answer->separate = curve->separate;
    return 1;
}
