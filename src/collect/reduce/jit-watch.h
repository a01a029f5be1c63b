/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-watch.h - when the map of a JIT compiler (symbols/jit-map.h) grew, of all processes of a run. Entries
 * have no times, so the file is looked at whenever a buffer is taken: an entry counts as made when the file
 * was last seen without it; the last one, when the file was last changed.
 */
#ifndef CACHEGRAM_JIT_WATCH_H
#define CACHEGRAM_JIT_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include "symbols/code.h"
#include "wire/wire.h"

/* Of the run; all zero: nothing was seen. */
struct jit_watch {
    struct symbols_growth *list; /* in the order of time */
    size_t n, capacity;
};

/* Of a process; all zero but for the first three. modules, nmodules: as the agent reports them. */
struct jit_process {
    const struct wire_module *modules;
    const uint32_t *nmodules;
    uint32_t pid;
    uint32_t looked_at;    /* modules */
    int is;                /* it has code that may change */
    uint64_t at_ns, bytes; /* when the map was last looked at, and its size */
};

/* Looks at the map, if the process has such code. */
void jit_watch_look(struct jit_watch *w, struct jit_process *p);
/* The process has ended. */
void jit_watch_end(struct jit_watch *w, const struct jit_process *p);
void jit_watch_clear(struct jit_watch *w);

#endif
