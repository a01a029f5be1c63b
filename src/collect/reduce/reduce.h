/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.h - from buffers of records to histograms.
 *
 * Burst mode: every buffer is a burst with its own stack distances. reduce_buffer returns it as a value and
 * stores nothing: the caller (drain/drain.c) decides whether it is stored, and which of its survivors are
 * watched. Full mode: every process has one stack for its whole life, and the run's histograms, summed over
 * processes, are the profile's "burst 0" (reduce_store).
 *
 *     records --decode--> line touches --burst.h--> histograms, survivors
 *        |                                                             \
 *        +------------------clock/refclock.h--> references, rates -----> struct reduced
 */
#ifndef CACHEGRAM_REDUCE_H
#define CACHEGRAM_REDUCE_H

#include <stdint.h>
#include "base/error.h"
#include "collect/clock/refclock.h"
#include "collect/objects/objects.h"
#include "collect/records/decode.h"
#include "collect/reduce/ahead.h"
#include "collect/reduce/burst.h"
#include "collect/reduce/call-paths.h"
#include "collect/reduce/code.h"
#include "collect/reduce/jit-watch.h"
#include "collect/reduce/process-stack.h"
#include "collect/reduce/shape.h"
#include "collect/reduce/sharing.h"
#include "collect/reduce/sites.h"
#include "collect/reduce/thread-stacks.h"
#include "collect/reduce/windows.h"
#include "profile/profile.h"
#include "sim/linesample.h"
#include "sim/stackdist.h"

struct reducer;

struct reduce_totals {
    struct decode_counts decoded;
    uint64_t bursts;       /* stored, with at least one reference */
    uint64_t cold;         /* first touches: in the burst, or in full mode in the process */
    uint64_t burst_cpu_ns; /* thread CPU time inside bursts */
    uint64_t
        represented_ns; /* CPU time that bursts represent that were placed by it: the gap planned for each */
    uint64_t counted_references; /* in the other bursts: those while every reference was counted */
    /* Of a run that begins in full mode, in that part: references, first touches, and lines of processes that
     * continued after it. */
    uint64_t full_references, full_cold, full_left;
};

/* State of one process: its templates, and in full mode its stack. */
struct reduce_process {
    uint64_t id; /* in the profile */
    struct decoder *decoder;
    struct process_stack *stack;   /* full mode with distances; owned */
    struct thread_stacks *threads; /* likewise, of all lines; owned */
    struct refclock *clock;        /* owned */
    struct sites *sites;           /* full mode with distances: of its whole life; owned */
    struct shape *shape;           /* NULL: not looked at; owned */
    struct sharing *sharing;       /* likewise */
    struct objects *objects;       /* NULL: not attributed; owned */
    struct call_paths *paths;      /* NULL: not known; owned */
    struct reduce_parts *parts;    /* full mode: of `sites`, with code that may change; NULL: none; owned */
    struct jit_process jit;
    uint8_t *site_blocks;           /* bit: the block's sites occur in stored counts; owned */
    struct windows_code *places;    /* of code, for windows; NULL: none; owned */
    uint64_t ended[WIRE_END_COUNT]; /* number of bursts by end reason */
    uint64_t bad_records;
    uint64_t first_watch, last_watch; /* ids in the profile, between which are all of its watches; 0: none */
};

/* Result of a buffer. */
struct reduced {
    int is_burst;                 /* burst mode, with at least one reference; otherwise the rest is invalid */
    struct profile_burst row;     /* ready to be stored, with summary (burst_store) */
    struct burst_summary summary; /* valid until the next buffer */
    int has_sites;                /* sites are counted in this burst, for reduce_store_sites */
};

/* What is recorded. */
enum reduce_mode {
    REDUCE_BURSTS,
    REDUCE_FULL,
    REDUCE_FULL_FIRST /* in full mode at first, then bursts (wire_desc.full) */
};

/*
 * lines_rate: full mode measures distances of a sample of lines, this share of them (sim/linesample.h), and
 * nothing else; 1: of all lines. distances 0: references are counted, without histograms. start_ns:
 * CLOCK_MONOTONIC at the run's start.
 */
struct reducer *reducer_new(enum reduce_mode mode, double lines_rate, int distances, unsigned line_bytes,
                            uint64_t start_ns, struct error *err);
/*
 * The mean gap that bursts are planned with from now on. No burst was planned with a longer one than the
 * longest so far: a thread that was just about to go on in full mode, or in counting, when bursts began, has
 * a gap of an hour, with which its burst would outweigh all others. Such a burst gets the present gap.
 */
void reducer_gap(struct reducer *r, uint64_t gap_ns);
/* The agent filters lines by these classes, a share of all; before there are processes (records/filter.h). */
void reducer_filter(struct reducer *r, const uint8_t passes[WIRE_FILTER_CLASSES], double share);
void reducer_free(struct reducer *r);
/* modules, nmodules: of the process, as the agent reports them; they must remain valid. NULL: none are known.
 */
int reduce_process_init(struct reducer *r, struct reduce_process *process, const struct decode_source *source,
                        const struct wire_module *modules, const uint32_t *nmodules, uint32_t pid,
                        struct error *err);
/*
 * Stores the remaining counts of sites (full mode), and which instructions the sites of all stored counts
 * belong to, from the process' modules as the agent reported them. 0, or negative with err.
 */
int reduce_process_code(struct reducer *r, struct reduce_process *process, struct profile *p,
                        const struct code_process *code, struct error *err);
/* Adds the rest of its data to the run's histograms (full mode), and frees it. */
void reduce_process_clear(struct reducer *r, struct reduce_process *process);
/*
 * Full mode: work begins on a buffer that will be given to reduce_buffer, unchanged, as soon as its turn
 * comes, on another processor. Histograms must not be stored while such buffers wait. 1; 0: not possible now;
 * -ENOMEM with err.
 */
int reduce_ahead(struct reducer *r, struct reduce_process *process, const struct wire_desc *desc,
                 const uint64_t *words, uint64_t n, struct error *err);
size_t reduce_ahead_waiting(const struct reducer *r); /* number of such buffers */
/* stack: the copy that belongs to the buffer. words: checked to be within the buffer. 0, or -ENOMEM with err.
 */
int reduce_buffer(struct reducer *r, struct reduce_process *process, const struct wire_desc *desc,
                  const struct wire_stack *stack, const uint64_t *words, uint64_t n, struct reduced *reduced,
                  struct error *err);
/* A thread of the process was at that instruction. 0, or -ENOMEM with err. */
int reduce_tick(struct reducer *r, struct reduce_process *process, const struct wire_tick *tick,
                struct error *err);
/* Touches of the tail after that burst, before the burst's sites are stored. 0, or -ENOMEM with err. */
int reduce_tail_touch(struct reducer *r, struct reduce_process *process, uint64_t line,
                      const struct sites_tail_touch *touch, struct error *err);
/* After burst_store: the counts of its sites. 0, or negative with err. */
int reduce_store_sites(struct reducer *r, struct reduce_process *process, const struct reduced *reduced,
                       struct profile *p, struct error *err);
/* The code of all processes whose reduce_process_code was called. */
const struct code *reduce_code(const struct reducer *r);
/* Sets what is known beside instructions: sampled reuses, and how lines are used, of all processes whose
 * reduce_process_code was called. */
void reduce_describe(const struct reducer *r, struct symbols_code *code);
/* The data objects of all processes; NULL: they were not looked for. */
struct object_table *reduce_objects(const struct reducer *r);
/* With its id, before its first buffer: since start_ns it has run its program, and before that had used
 * cpu_ns in others, which exec has replaced. 0, or -ENOMEM. */
int reduce_process_began(struct reducer *r, const struct reduce_process *process, uint32_t pid,
                         uint64_t start_ns, uint64_t cpu_ns);
/* From now on data objects of the process are looked for, if its sites are counted. copied: the process of
 * which fork has made it; NULL: none that is known. 0, or -ENOMEM with err. */
int reduce_process_objects(struct reducer *r, struct reduce_process *process, struct wire_proc *proc,
                           uint32_t pid, const struct reduce_process *copied, struct error *err);
/* From now on it is known by which calls its code is reached, if its sites are counted; before its first
 * buffer. modules, nmodules: as for reduce_process_init. 0, or -ENOMEM. */
int reduce_process_paths(struct reducer *r, struct reduce_process *process, const struct wire_module *modules,
                         const uint32_t *nmodules, uint32_t pid, struct error *err);
/* A burst of a process. */
struct reduce_survivors {
    struct reduce_process *process;
    const struct burst_summary *summary;
};
/* Number in the table of all data objects of the one that a survivor's last touch was to; 0: not looked for.
 * ctx: a struct reduce_survivors. */
uint32_t reduce_object_of(void *ctx, const struct stackdist_survivor *survivor);
/* Stores windows, phases, and the run's histograms (full mode). 0, or negative with err. */
int reduce_store(struct reducer *r, struct profile *p, struct error *err);
/* The next reduce_store is the last one. */
void reduce_finishing(struct reducer *r);
/* REDUCE_FULL_FIRST: processes that there are now go on in bursts. */
void reduce_full_over(struct reducer *r);
const struct reduce_totals *reduce_totals(const struct reducer *r); /* r NULL: all zero */

#endif
