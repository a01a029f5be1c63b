/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.h - the collector's side of wire.h: takes what the agents of all processes hand over.
 *
 * Each process has a slot of the session, with buffers. Filled buffers are taken in the order in which they
 * were filled. All processing of a buffer is called from here:
 *
 *     buffer --tee.h--> trace
 *            --reduce.h--> struct reduced: row, histograms, survivors
 *                              |--burst.h, sites.h--> profile
 *                              |--watch.h--> lines to be watched --watcher.h--> answer to the agent
 *
 * and is free again. One thread does it all: drain_pass processes the ready buffers, drain_wait sleeps until
 * an agent rings. drain_look, called from time to time, finds processes that have ended. Order of reading:
 * drain.c (buffers), drain-slots.c (begin and end of a process), drain-ends.c (detecting the end),
 * drain-use.c (cost for the target).
 */
#ifndef CACHEGRAM_DRAIN_H
#define CACHEGRAM_DRAIN_H

#include <stdint.h>
#include "base/error.h"
#include "collect/clock/budget.h"
#include "machine/counters.h"
#include "collect/reduce/reduce.h"
#include "collect/launch/session.h"
#include "collect/records/tee.h"
#include "collect/watch/watcher.h"

struct drain;
struct missed;
struct refusals;
struct unprofiled;

/* r NULL: buffers are freed without being read (to measure the agents alone). None of them is owned. */
struct drain *drain_new(const struct session *s, struct reducer *r, struct profile *p, uint64_t start_ns,
                        struct error *err);
/* Burst mode: watches the lines that `watches` requests. To be called before the first pass. Not owned. 0, or
 * -ENOMEM. */
int drain_watch(struct drain *d, const struct watch_setting *setting);
/* See watcher_limit: for all processes, also later ones. */
void drain_watch_limit(struct drain *d, unsigned live, uint64_t allowance_ns);
/* From now on buffers are also written to t (even without a reducer). Not owned. */
void drain_tee(struct drain *d, struct tee *t);
/* From now on these counters count references (clock `pmu`). Not owned. */
void drain_counters(struct drain *d, const struct counters *counters);
/* Stores the data on every process and commits; no pass may follow. */
void drain_finish(struct drain *d);
/* After drain_finish. NULL is allowed. */
void drain_free(struct drain *d);

/* Used by the target so far; recorder_ns is 0. */
struct budget_use drain_use(struct drain *d);

/* Nonzero if slots of ended processes should be released at once: a process waits for one, or a quarter is in
 * use and another one was taken since drain_look. */
int drain_crowded(const struct drain *d);

/*
 * One pass over all slots: reduces and frees every ready buffer. Returns the number of buffers. If the
 * profile cannot be written or memory is short, this is remembered (drain_trouble), agents are asked to stop,
 * and buffers are freed unread from then on.
 */
uint64_t drain_pass(struct drain *d);
/* From now on the run is recorded in that mode. Full mode does not come back. */
void drain_set_mode(struct drain *d, enum wire_mode mode);
/* Number of buffers that are ready and not taken yet. */
uint64_t drain_ready(const struct drain *d);
/* Sleeps until an agent rings, a signal handler calls session_ring, or timeout_ms have passed. */
void drain_wait(struct drain *d, int timeout_ms);
/* Nonzero if processes attached since drain_look. */
int drain_fresh(const struct drain *d);
/* Finds processes that have ended: takes their last buffers and releases their slots. */
void drain_look(struct drain *d);
/* Stores counters and, in full mode, the histograms so far; commits. Does nothing without new data. */
void drain_commit(struct drain *d);
/* Number of running processes with an agent. */
uint32_t drain_live(const struct drain *d);
/* Of the processes that have ended; complete after drain_finish. */
const struct unprofiled *drain_unprofiled(const struct drain *d);
/* Sets the command's process: it and its descendants should have the agent. */
void drain_command(struct drain *d, pid_t command);
/* Lists those without it, as agentless_list. */
void drain_agentless(struct drain *d, char *text, size_t size);
const struct refusals *drain_refusals(const struct drain *d);
/* At least so much CPU time of ended processes was that of threads which the agent does not know. */
uint64_t drain_unknown_threads_ns(const struct drain *d);
/* Processes with a copy of an ended process' memory, of which nothing is known. */
uint64_t drain_unknown_children(const struct drain *d);
const struct missed *drain_missed(const struct drain *d);
uint64_t drain_lost(const struct drain *d); /* buffers of processes that were killed during a burst */
/* Upper bound of the CPU time that ended processes spent in programs with an agent. */
uint64_t drain_agent_ns(const struct drain *d);
/* The part of it that nobody has measured: they had ended when the recorder looked. */
uint64_t drain_assumed_ns(const struct drain *d);
/* CPU time that bursts and counting cost the target, as measured by the agents. */
uint64_t drain_burst_cpu_ns(const struct drain *d);
/* While every reference is counted (WIRE_MODE_COUNT), of what was counted so far: the CPU time it would have
 * taken natively, estimated (counting.h), and by how much longer it took, the agent's work included, such as
 * the translation of code. The latter is not part of drain_burst_cpu_ns. */
struct drain_counting {
    double native_ns, added_ns;
};
struct drain_counting drain_counting(const struct drain *d);
/* Memory added to the process with the most, as an upper bound; valid once all have ended. */
uint64_t drain_memory_bytes(const struct drain *d);
/* References counted, or recorded in tails, outside of bursts. */
uint64_t drain_counted(const struct drain *d);
/* Of these, those while every reference was counted. */
uint64_t drain_all_counted(const struct drain *d);
/* Of these, elements of repeated string instructions without the first ones; at least so many. */
uint64_t drain_all_counted_strings(const struct drain *d);
/* NULL, or why collecting ended early. */
const struct error *drain_trouble(const struct drain *d);

#endif
