/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watcher.h - the collector's side of watched lines of one process (wire.h, struct wire_watching): answers
 * the agent's questions, learns what became of the lines.
 *
 *     take a buffer --> watcher_begin --> decode: watcher_touch --> choose: watcher_request
 *                                              --> watcher_end (outcomes told, the agent answered)
 */
#ifndef CACHEGRAM_WATCHER_H
#define CACHEGRAM_WATCHER_H

#include <stdint.h>
#include "base/error.h"
#include "base/random.h"
#include "collect/watch/watch.h"
#include "wire/wire.h"

struct watcher;

struct watch_setting {
    struct watches *watches; /* where outcomes are told; not owned */
    unsigned line_bytes;
    uint64_t seed;
};

/*
 * proc: the process' slot, mapped as long as the watcher lives; not owned. NULL when memory is short.
 */
struct watcher *watcher_new(struct wire_proc *proc, uint32_t pid, const struct watch_setting *setting);
/*
 * The process is gone, or will not be looked at any more: tells the outcomes of all its lines; frees.
 * cpu_ns: what CPU time it had used, in all. ended: it is gone, so that its lines are never touched again.
 */
int watcher_finish(struct watcher *w, uint64_t cpu_ns, int ended, struct error *err);

/* At most so many lines at a time from the next answer on, and so much CPU time until the one after it. */
void watcher_limit(struct watcher *w, unsigned live, uint64_t allowance_ns);

/*
 * A burst's buffer is about to be decoded; watcher_touch: the lines that it touched, at least once each, in
 * any order.
 */
void watcher_begin(struct watcher *w, const struct wire_desc *desc);
void watcher_touch(struct watcher *w, const uint64_t *lines, size_t n);
/* A survivor of that burst. */
void watcher_request(struct watcher *w, const struct watch_request *request);
/* The burst is stored. 0, or negative with err. */
int watcher_end(struct watcher *w, struct error *err);

#endif
