/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/selection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"

#define MOST_NAMES 8u /* in a message */

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

/* Different executables, by their base names. */
struct names {
    char list[MOST_NAMES][64];
    size_t n, others; /* processes that ran executables which are not in the list */
};

static void take_name(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe)
{
    struct names *names = ctx;
    char name[sizeof names->list[0]];
    (void)id, (void)pid, (void)ppid;
    snprintf(name, sizeof name, "%s", base_name(exe));
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->list[i], name) == 0)
            return;
    if (names->n < MOST_NAMES)
        memcpy(names->list[names->n++], name, sizeof name);
    else
        names->others++;
}

int analysis_selection_refuse(struct profile *p, const char *name, const struct analysis_selection *s,
                              struct error *err)
{
    struct names names = {.n = 0};
    char text[MOST_NAMES * (sizeof names.list[0] + 8)] = "";
    size_t used = 0;
    if (s->tid && (!s->comm || s->n > 0))
        return error_set(err, -ENODATA, "the profile '%s' holds no references of thread %u%s", name, s->tid,
                         s->comm ? " in a process that ran that executable" : "");
    if (s->n > 0)
        return error_set(
            err, -ENODATA,
            "the profile '%s' holds no references of the process that ran '%s': it ended before a "
            "burst began in it; record with a larger --overhead or --allowance, or --mode full",
            name, s->comm);
    int code = profile_processes(p, take_name, &names, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < names.n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                 i == 0                                  ? ""
                                 : i + 1 == names.n && names.others == 0 ? " and "
                                                                         : ", ",
                                 names.list[i]);
    return error_set(err, -ENODATA, "no process in the profile '%s' ran '%s'; it has processes of %s%s", name,
                     s->comm, text, names.others ? " and others" : "");
}

void analysis_selection_clear(struct analysis_selection *s)
{
    free(s->processes);
    *s = (struct analysis_selection){0};
}
