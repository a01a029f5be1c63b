/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/selection.h"

#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"

static void take_process(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe)
{
    struct analysis_selection *s = ctx;
    (void)pid, (void)ppid;
    if (strcmp(base_name(exe), s->comm) != 0)
        return;
    uint64_t *grown = reallocarray(s->processes, s->n + 1, sizeof *grown);
    if (!grown)
        return;
    s->processes = grown;
    s->processes[s->n++] = id;
}

int analysis_selection_find(struct profile *p, struct analysis_selection *s, struct error *err)
{
    return s->comm ? profile_processes(p, take_process, s, err) : 0;
}

int analysis_selection_has(const struct analysis_selection *s, uint64_t process, uint32_t tid)
{
    if (s->tid && tid != s->tid)
        return 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->processes[i] == process)
            return 1;
    return !s->comm;
}

void analysis_selection_clear(struct analysis_selection *s)
{
    free(s->processes);
    *s = (struct analysis_selection){0};
}
