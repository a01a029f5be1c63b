/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watcher.h - the collector's side of watched lines of one process (wire.h, struct wire_watching): answers
 * the agent's questions, learns what became of the lines.
 *
 *     a buffer --reduce.h--> lines touched --watch.h--> requests --> watcher_burst: outcomes, answers
 */
#ifndef CACHEGRAM_WATCHER_H
#define CACHEGRAM_WATCHER_H

#include <stdint.h>
#include "base/error.h"
#include "base/random.h"
#include "collect/watch/burst-tail.h"
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

/* What a burst touched. */
struct watcher_lines {
    const struct stackdist_survivor *lines; /* n of them, once each */
    size_t n;
    uint64_t touches;
    const struct burst_tail *tail; /* what it touched after that; NULL: nothing */
};

/* The lines that a burst's tail shall look for: those watched since earlier bursts. */
void watcher_follow(const struct watcher *w, struct burst_tail *tail);
/* A burst of the process has ended, and these of its survivors shall be watched, or were followed in its
 * tail. Stores the outcomes of lines that have one, and answers the agent if it asks. 0, or negative with
 * err. */
int watcher_burst(struct watcher *w, const struct wire_desc *desc, const struct watcher_lines *lines,
                  const struct watch_request *requests, size_t nrequests, struct error *err);

#endif
