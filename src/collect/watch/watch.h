/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - survivors of bursts: which of them are watched, and what became of those.
 *
 * A line's last touch in a burst is a survivor: the burst does not show when, if ever, the line is touched
 * again. A burst has as many survivors as lines that it touched. K of them, drawn at random, are watched
 * until they are touched again or censored, or the program ends. Each represents some of the survivors; from
 * their outcomes model/watched.h calculates the part of the curve at large distances.
 *
 * The life of a watch:
 *
 *     a burst is over ----> watches_choose ----> requests, for the watcher
 *                                 |                     |
 *                       a row of table `watch`     protects the line, sees the touch
 *                                 |                     |
 *                          watches_outcome  <-----------+
 *
 * The watcher reports an outcome for every request. A watch without one stays "open" in the profile, and
 * counts as censored at the burst's end. Which watches are censored must not depend on the line, nor on how
 * long it has not been touched (they are drawn at random), or the estimate is biased.
 *
 * Not thread-safe: requests are made, and outcomes taken, by the collector's thread.
 */
#ifndef CACHEGRAM_WATCH_H
#define CACHEGRAM_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/profile.h"
#include "sim/stackdist.h"

struct watches;

/* One line to watch from now on. */
struct watch_request {
    uint64_t id;       /* of the watch; to be named in watches_outcome */
    uint64_t address;  /* the line's first byte */
    uint64_t position; /* p: distinct lines that the burst touched after its last touch of this one */
    uint64_t age;      /* a: touches that the burst made after the survivor */
    int in_tail;       /* only to be followed in the burst's tail (burst-tail.h), not watched after it */
};

/* A burst that is over and stored. */
struct watch_burst {
    uint64_t burst; /* its id in the profile */
    const struct stackdist_survivor *survivors;
    size_t n;
    int unwatched;   /* no lines can be watched after this burst */
    size_t followed; /* survivors to be followed in its tail */
    /* Number of the data object that a survivor's last touch was to; NULL: they are not looked for. */
    uint32_t (*object_of)(void *ctx, const struct stackdist_survivor *survivor);
    void *ctx;
};

/*
 * per_burst: K; 0: none is ever chosen. line_bytes: of a line. p is not owned. NULL when memory is short (err
 * says so).
 */
struct watches *watches_new(struct profile *p, unsigned per_burst, unsigned line_bytes, uint64_t seed,
                            struct error *err);
void watches_free(struct watches *w); /* NULL is allowed */
/* Budget: another K from the next burst on. */
void watches_set_per_burst(struct watches *w, unsigned per_burst);

/*
 * Chooses among the burst's survivors: K of them, or all if there are no more (choose.h says with which
 * probabilities); stores them, in random order. Each is to be watched from now on; to refuse that is an
 * outcome. Others are chosen to be followed in the burst's tail, with equal chances: a second sample of the
 * same survivors. Both together represent each survivor once.
 *
 * *requests: valid until the next call. Their number, or negative with err filled: memory, or the profile
 * cannot be written.
 */
long watches_choose(struct watches *w, const struct watch_burst *burst, const struct watch_request **requests,
                    struct error *err);

/*
 * Stores the outcome of a watch, once: of `watch` the id (watch_request.id), the outcome, not PROFILE_OPEN,
 * and what profile_set_outcome sets. refs: without the reusing reference, need not be whole; NaN: to be
 * calculated from cpu_ns and translated_refs later. 0, or negative with err filled.
 */
int watches_outcome(struct watches *w, const struct profile_watch *watch, struct error *err);

#endif
