/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watcher.h - the collector's side of watched lines of one process (wire.h, struct wire_watching): answers
 * the agent's questions, learns what became of the lines.
 *
 *     a buffer --reduce.h--> lines touched --watch.h--> requests --> watcher_burst: tells outcomes, answers
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
    struct watches *watches; /* where outcomes are stored; not owned */
    unsigned line_bytes;
    uint64_t seed;
};

/*
 * proc: the process' slot, mapped as long as the watcher lives; not owned. NULL when memory is short.
 */
struct watcher *watcher_new(struct wire_proc *proc, uint32_t pid, const struct watch_setting *setting);
/* The process has ended, or is not observed any more: stores the outcomes of all its lines; frees. cpu_ns:
 * total CPU time of the process. ended: it has ended, so its lines are never touched again. */
int watcher_finish(struct watcher *w, uint64_t cpu_ns, int ended, struct error *err);

/* At most so many lines at a time from the next answer on, and so much CPU time until the one after it. */
void watcher_limit(struct watcher *w, unsigned live, uint64_t allowance_ns);

/* A burst of the process has ended: it touched these lines, once each (n of them), and these of its
 * survivors shall be watched. Stores the outcomes of lines that have one, and answers the agent if it asks.
 * 0, or negative with err. */
int watcher_burst(struct watcher *w, const struct wire_desc *desc, const struct stackdist_survivor *lines,
                  size_t n, const struct watch_request *requests, size_t nrequests, struct error *err);

#endif
