/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/reduce/jit-watch.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/array.h"
#include "base/clock-ns.h"
#include "collect/tunables.h"
#include "symbols/jit-map.h"

/* Without memory, entries count as older than they are. */
static void note(struct jit_watch *w, const struct jit_process *p, uint64_t at_ns, uint64_t bytes)
{
    if (w->n == COLLECT_JIT_GROWTHS) {
        size_t left = 0;
        for (size_t i = 0; i < w->n; i += 2)
            w->list[left++] = w->list[i];
        w->n = left;
    }
    if (ARRAY_GROW(w->list, w->n, w->capacity) == 0)
        w->list[w->n++] = (struct symbols_growth){.pid = p->pid, .at_ns = at_ns, .bytes = bytes};
}

static void look_at_modules(struct jit_process *p)
{
    uint32_t n = p->nmodules != NULL ? __atomic_load_n(p->nmodules, __ATOMIC_ACQUIRE) : 0;
    for (; !p->is && p->looked_at < n && p->looked_at < WIRE_MAX_MODULES; p->looked_at++)
        p->is = memcmp(p->modules[p->looked_at].path, WIRE_JIT_MODULE, sizeof WIRE_JIT_MODULE) == 0;
}

/* A file's time in CLOCK_MONOTONIC. */
static uint64_t changed_ns(const struct stat *info, uint64_t now_ns)
{
    uint64_t then = (uint64_t)info->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)info->st_mtim.tv_nsec;
    uint64_t now = clock_ns(CLOCK_REALTIME);
    return then < now && now - then < now_ns ? now_ns - (now - then) : 0;
}

void jit_watch_look(struct jit_watch *w, struct jit_process *p)
{
    char path[SYMBOLS_JIT_MAP_PATH];
    struct stat info;
    look_at_modules(p);
    if (!p->is)
        return;
    symbols_jit_map_path(p->pid, path);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t bytes = lstat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
    if (bytes != p->bytes) {
        uint64_t at_ns = changed_ns(&info, now_ns);
        if (p->at_ns != 0)
            note(w, p, p->at_ns, p->bytes);
        if (bytes > p->bytes + 1 && at_ns > p->at_ns)
            note(w, p, at_ns, bytes - 2); /* the last byte ends the line */
    }
    p->at_ns = now_ns;
    p->bytes = bytes;
}

void jit_watch_end(struct jit_watch *w, const struct jit_process *p)
{
    if (p->at_ns != 0)
        note(w, p, p->at_ns, p->bytes);
}

void jit_watch_clear(struct jit_watch *w)
{
    free(w->list);
    *w = (struct jit_watch){0};
}
