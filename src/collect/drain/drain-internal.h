/* SPDX-License-Identifier: Apache-2.0 */
/* drain-internal.h - shared by the files of drain. */
#ifndef CACHEGRAM_COLLECT_DRAIN_INTERNAL_H
#define CACHEGRAM_COLLECT_DRAIN_INTERNAL_H

#include "collect/clock/agent-time.h"
#include "collect/drain/agentless.h"
#include "collect/drain/drain.h"
#include "collect/drain/missed.h"
#include "collect/drain/refusals.h"
#include "collect/clock/trigger.h"
#include "collect/drain/unknown-threads.h"
#include "collect/drain/unprofiled.h"

/* A profiled process: its slot of the session, and the collector's data on it. */
struct slot {
    struct wire_proc *proc; /* NULL: not in use */
    uint32_t pid;
    int pidfd; /* -1: the kernel has none, or our limit on descriptors is reached */
    uint64_t start_ns;
    uint32_t modules; /* stored so far */
    uint64_t expected_seq;
    uint64_t ticks; /* taken out of wire_proc.ticks */
    uint64_t lost;
    struct triggers *triggers; /* NULL: none */
    uint64_t cpu_ns;           /* of the process, when last read */
    uint64_t before_ns;        /* of that, in programs before this one, which exec has replaced */
    int replaced;              /* by another program, which has its own slot */
    struct agent_time agent;
    struct blocked blocked;
    struct unknown_threads unknown;
    struct reduce_process process;
    struct references *references; /* for the trace */
    struct watcher *watcher;       /* NULL: none */
};

struct drain {
    const struct session *session;
    struct reducer *reducer;
    struct profile *profile;
    struct tee *tee;            /* NULL: no trace */
    struct watch_setting watch; /* watches NULL: none */
    struct burst_tail *tail;    /* NULL: bursts have none */
    unsigned live;              /* see watcher_limit */
    uint64_t allowance_ns;
    const struct counters *counters; /* of the clock `pmu`; else NULL */
    uint64_t start_ns;
    uint32_t rings;    /* wire_session.doorbell at the last pass */
    uint32_t attached; /* wire_session.attached when the slots were last scanned */
    uint32_t looked;   /* likewise, when ended processes were last searched */
    struct error trouble;
    int in_trouble;
    int news; /* new data since the last commit */
    enum wire_mode mode;
    uint64_t lost;
    struct unprofiled unprofiled;
    struct missed missed;
    struct refusals refusals;
    uint64_t unknown_threads_ns; /* of ended processes */
    uint64_t unknown_children;   /* likewise */
    pid_t command;               /* 0: programs without the agent are not searched */
    struct agentless agentless;
    uint64_t agent_ns;     /* of processes that have ended: upper bound of their CPU time with the agent */
    uint64_t assumed_ns;   /* the part of it that nobody has measured */
    uint64_t memory_bytes; /* of the ended process with the most */
    /* Of slots that were released; the last two also in the tails of bursts. */
    uint64_t burst_cpu_ns, ended_cpu_ns, ended_bursts, ended_watch_ns, ended_start_ns, counted, all_counted,
        counted_strings;
    struct drain_counting ended_counting;
    struct slot slots[];
};

/* Remembers why collecting ends, unless another reason came before, and tells the agents to stop. */
static inline void drain_set_trouble(struct drain *d, const struct error *err)
{
    if (d->in_trouble)
        return;
    d->in_trouble = 1;
    d->trouble = *err;
    __atomic_store_n(&d->session->map->stop, 1, __ATOMIC_RELEASE);
}
/* --- drain.c --- */

/* Takes the buffers that the process has handed over: at most as many as a slot has, so that one busy process
 * does not keep the others waiting. Returns their number. */
uint64_t drain_slot(struct drain *d, struct slot *slot);
/* If the process in slot i has ended, takes what it has left there, and releases the slot. */
void drain_release_ended(struct drain *d, uint32_t i);

/* CPU time in this program. */
static inline uint64_t slot_cpu_ns(const struct slot *slot)
{
    return slot->cpu_ns > slot->before_ns ? slot->cpu_ns - slot->before_ns : 0;
}

static inline int storing(const struct drain *d)
{
    return d->profile != NULL && !d->in_trouble;
}

/* Location of the process' templates. */
static inline struct decode_source source_of(const struct drain *d, const struct wire_proc *proc)
{
    return (struct decode_source){
        .templates = (const char *)proc + d->session->layout.template_offset,
        .template_bytes = d->session->layout.template_bytes,
        .block_offset = proc->block_offset,
    };
}

/* --- drain-slots.c --- */

/* Whether the process has ended, or is a zombie without threads: nothing of it will write to its slot again.
 */
int drain_has_ended(const struct slot *slot);
/* Whether it has executed another program since, which has its own slot. */
int drain_is_replaced(const struct drain *d, const struct slot *slot);

/* A process has taken slot i. */
void drain_adopt(struct drain *d, uint32_t i);
/* Stores the data on the process and unmaps its slot. gone: it has ended. */
void drain_drop(struct drain *d, struct slot *slot, int gone);
/* Stores the modules that were added since the last call. */
void drain_store_modules(struct drain *d, struct slot *slot);
void drain_store_counters(struct drain *d, const struct slot *slot);

/* --- drain-use.c --- */

/* CPU time that profiling has cost the process: bursts, and the part of counting that native code would not
 * have taken. */
uint64_t drain_profiling_ns(const struct drain *d, const struct wire_counters *count);
/* Adds the process' part of drain_counting. */
void drain_add_counting(const struct drain *d, const struct wire_counters *count, struct drain_counting *sum);

#endif
