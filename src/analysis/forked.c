/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/forked.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PROCESSES 4096u

/* A program in a process: a process that executes another one has several, one after the other. */
struct image {
    uint32_t pid, ppid;
    char *exe;
};

struct images {
    struct image list[MOST_PROCESSES];
    size_t n;
};

static void add(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe)
{
    struct images *images = ctx;
    (void)id;
    if (images->n < MOST_PROCESSES)
        images->list[images->n++] = (struct image){.pid = pid, .ppid = ppid, .exe = strdup(exe)};
}

/* The last one before `end` of that process; NULL: there is none. */
static const struct image *find(const struct images *images, uint32_t pid, size_t end)
{
    while (end-- > 0)
        if (images->list[end].pid == pid)
            return &images->list[end];
    return NULL;
}

static int is_forked(const struct images *images, size_t i)
{
    const struct image *x = &images->list[i], *parent;
    if (find(images, x->pid, i) || find(images, x->pid, images->n) != x)
        return 0;
    parent = find(images, x->ppid, i);
    return parent && parent->exe && x->exe && strcmp(parent->exe, x->exe) == 0;
}

int analysis_has_forked(struct profile *p)
{
    int found = 0;
    struct images *images = calloc(1, sizeof *images);
    if (!images)
        return 0;
    if (profile_processes(p, add, images, NULL) == 0)
        for (size_t i = 0; i < images->n && !found; i++)
            found = is_forked(images, i);
    for (size_t i = 0; i < images->n; i++)
        free(images->list[i].exe);
    free(images);
    return found;
}
