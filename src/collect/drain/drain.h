/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.h - the collector's side of wire.h: takes what the agents of all processes hand over.
 *
 * Each process has a slot of the session, with buffers. A buffer that an agent has filled is taken in the
 * order in which they were filled, and passes here, and nowhere else, through all that is done with it:
 *
 *     buffer --tee.h--> trace
 *            --reduce.h--> struct reduced: row, histograms, survivors
 *                              |--burst.h, sites.h--> profile
 *                              |--watch.h--> lines to be watched --watcher.h--> answer to the agent
 *
 * and is free again. One thread does it all: drain_pass takes what is there, drain_wait sleeps until an agent
 * rings. drain_look, now and then, finds processes that are gone. Reading: drain.c (buffers), drain-slots.c
 * (a process comes and goes), drain-ends.c (who is gone), drain-use.c (what it has cost the target).
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
/* Burst mode: lines that watches requests are watched in their processes. Before the first pass. Not owned.
 */
void drain_watch(struct drain *d, const struct watch_setting *setting);
/* See watcher_limit: for all processes, those to come included. */
void drain_watch_limit(struct drain *d, unsigned live, uint64_t allowance_ns);
/* From now on buffers go to t, too (also if there is no reducer). Not owned. */
void drain_tee(struct drain *d, struct tee *t);
/* From now on references are counted by these (clock `pmu`). Not owned. */
void drain_counters(struct drain *d, const struct counters *counters);
/* Stores what is known of every process and commits; no pass may follow. */
void drain_finish(struct drain *d);
/* After drain_finish. NULL is allowed. */
void drain_free(struct drain *d);

/* What the target has used so far; recorder_ns is left 0. */
struct budget_use drain_use(struct drain *d);

/* Nonzero if most slots are taken and another was since drain_look: those that are gone should make room at
 * once. */
int drain_crowded(const struct drain *d);

/*
 * One pass over all slots: reduces and frees every buffer that is ready. Number of buffers taken.
 * When the profile cannot be written or memory is short this is remembered (drain_trouble), agents
 * are told to stop, and buffers are freed unread from then on.
 */
uint64_t drain_pass(struct drain *d);
/* Sleeps until an agent rings, a signal handler calls session_ring, or timeout_ms is over. */
void drain_wait(struct drain *d, int timeout_ms);
/* Nonzero if processes came since drain_look. */
int drain_fresh(const struct drain *d);
/* Finds processes that are gone: takes their last buffers, gives their slots back. */
void drain_look(struct drain *d);
/* Stores counters and, in full mode, the histograms so far; commits. Does nothing if there is nothing new. */
void drain_commit(struct drain *d);
/* Processes that still run with an agent in them. */
uint32_t drain_live(const struct drain *d);
/* Of the processes that have ended; after drain_finish of all. */
const struct unprofiled *drain_unprofiled(const struct drain *d);
/* Of processes that have ended. */
/* The command's process: it and its descendants are to have the agent. */
void drain_command(struct drain *d, pid_t command);
/* Those that had not, as agentless_list. */
void drain_agentless(struct drain *d, char *text, size_t size);
const struct refusals *drain_refusals(const struct drain *d);
const struct missed *drain_missed(const struct drain *d);
uint64_t drain_lost(const struct drain *d); /* buffers of processes that died in a burst */
/* CPU time that processes that have ended spent in programs with an agent, at most. */
uint64_t drain_agent_ns(const struct drain *d);
/* CPU time that bursts and counting cost the target, by the agents' own accounts. */
uint64_t drain_burst_cpu_ns(const struct drain *d);
/* What was added to the memory of the process that was given most, at most, once all have ended. */
uint64_t drain_memory_bytes(const struct drain *d);
uint64_t drain_counted(const struct drain *d); /* references that were counted outside bursts */
/* NULL, or why collecting ended early. */
const struct error *drain_trouble(const struct drain *d);

#endif
