/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - the profile file (SQLite, docs/format.md): write while the program runs, read later.
 * A kill at any moment leaves what was committed readable. Not thread-safe.
 */
#ifndef CACHEGRAM_PROFILE_H
#define CACHEGRAM_PROFILE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"

#define PROFILE_SCHEMA_VERSION 7

struct profile; /* opaque */

enum profile_hist { /* kinds of histogram, stored by name */
                    PROFILE_HIST_STACK =
                        0,              /* "stack": exact stack distances (in-burst, or of the whole run) */
                    PROFILE_HIST_REUSE, /* "reuse": reuse distances */
                    PROFILE_HIST_FIRST, /* "first": lines seen before each first touch */
                    PROFILE_HIST_AGE, /* "age": references since the last touch, of every line, at the end */
                    PROFILE_HIST_EXPECTED, /* "expected": stack distances by StatStack (full mode) */
                    PROFILE_HIST_KINDS
};

struct profile_burst {
    uint64_t id;      /* given by profile_add_burst */
    uint64_t process; /* id from profile_add_process */
    uint32_t tid;
    uint64_t start_ns, end_ns;         /* since the run's start */
    uint64_t cpu_start_ns, cpu_end_ns; /* thread CPU time */
    uint64_t references, loads, stores, instructions, words, new_blocks;
    uint64_t lines;  /* distinct lines touched */
    uint64_t blocks; /* basic blocks executed; 0: unknown */
    uint64_t pc;
    uint32_t end; /* enum wire_end, stored by name too */
    uint32_t end_detail;
    double weight;
    /* By the reference clock; NaN: unknown. */
    double start_refs;  /* references that the thread had executed when the burst began */
    double refs_per_ns; /* around the burst, of the thread's CPU time, in native code */
    /* ... in the few thousand references before it: its weight comes from this rate */
    double near_per_ns;
    /*
     * References, but of a repeated string instruction one, or one of its source and one of its target: what
     * weight, start_refs and both rates count, and the stack and reuse distances but for those that are 0
     * within such an instruction. 0: they count references, all of them.
     */
    uint64_t steps;
    /* Elements of such instructions that lie in the line of the element before, for each step, since the
     * thread's last burst; NaN: unknown. */
    double string_hits;
    double gap_ns; /* mean CPU time between bursts with which this one was planned; NaN: it was placed
                      otherwise */
};

/* What became of a watched line. The codes are part of the file format. */
enum profile_outcome {
    PROFILE_OPEN = 0,     /* unknown, or not yet known */
    PROFILE_REUSED = 1,   /* touched again */
    PROFILE_DROPPED = 2,  /* censored, for reasons that do not depend on the line */
    PROFILE_ENDED = 3,    /* the program ended first: never touched again */
    PROFILE_UNMAPPED = 4, /* its memory was unmapped or discarded first: never touched again */
    PROFILE_REFUSED = 5,  /* cannot be watched (a stack, memory that the kernel writes) */
    PROFILE_OUTCOMES
};

/* A survivor of a burst that was chosen to be watched (collect/watch/watch.h). */
struct profile_watch {
    uint64_t id; /* given by profile_add_watch */
    uint64_t burst;
    uint64_t address;       /* of the line */
    uint64_t position, age; /* distinct lines, and touches, of the burst after its last touch of it */
    double weight;          /* survivors of the burst that it represents; NaN: the same for all */
    enum profile_outcome outcome;
    double refs;            /* references from the burst's end to the outcome; NaN: open, or unknown */
    double cpu_ns;          /* CPU time of the process' own code from then on; NaN: open, or unknown */
    double translated_refs; /* references that it also made, in translated code; NaN: likewise */
    double clock_error;     /* share of refs; NaN: not told */
};

/* Mode "sparse": a stretch of references in which samples were started. */
struct profile_window {
    uint64_t id;                /* 1, 2, ... in order */
    uint64_t start, references; /* start: number of its first reference */
};

#define PROFILE_DANGLING UINT64_MAX

/* Mode "sparse": a reference whose line was watched. */
struct profile_sample {
    uint64_t window;   /* id of the one in which it started */
    uint64_t start;    /* number of the reference */
    uint64_t distance; /* references until its line was touched again, or PROFILE_DANGLING */
    uint64_t line;
};

/* What `cachegram pirate` measured with one size of the shared cache. NaN: not measured, or not to be
 * trusted. */
struct profile_pirate {
    char by[16]; /* "pirate", or "resctrl" */
    uint64_t available_bytes, stolen_bytes;
    int valid;                   /* the Pirate proved that it held what it stole, and there are numbers */
    uint64_t intervals, dropped; /* that count, and that do not since the Pirate lost its hold in them */
    double cpu_ns, units;        /* of the program, in those that count */
    double ns_per_unit, ns_low, ns_high; /* cpu_ns / units, and its 95% interval */
    double ns_per_ref, cpi, gbps, fetch_ratio, miss_ratio;
    double pirate_fetch_ratio; /* of all intervals, valid or not */
    double lost_share;         /* of the time: the Pirate did not run */
};

/* Kinds of program that "unprofiled_cpu_seconds" may contain; for messages. */
#define UNPROFILED_KINDS                                                                              \
    "statically linked, set-uid, 32-bit, of another user, in a container, or started with a cleared " \
    "environment"

/* --- writing --- */
/* Creates `path` (an existing file moves to PATH.old). Fails with one sentence if that cannot be, and all
 * files are as they were. The file is ours at once, but empty until the first commit. */
int profile_create(const char *path, struct profile **profile, struct error *err);
/* Instead of profile_close, of one that was created: all files are as they were before. NULL is allowed. */
void profile_abandon(struct profile *p);
/* The profile is to be kept: deletes an earlier PATH.old, which was kept for the case that it is abandoned.
 * profile_close does it, too. */
void profile_keep(struct profile *p);
/* Opens an existing profile to add to it. As profile_open; -EBUSY if it is being written. */
int profile_append(const char *path, struct profile **profile, struct error *err);
/* Key and value of the run: "command", "mode", "line_bytes", "seed", "exit_status", "warning"... */
int profile_set(struct profile *p, const char *key, const char *value, struct error *err);
/* Takes a key away, if it is there. */
int profile_unset(struct profile *p, const char *key, struct error *err);
int profile_set_number(struct profile *p, const char *key, double value, struct error *err);
int profile_add_process(struct profile *p, uint32_t pid, uint32_t ppid, const char *exe, uint64_t start_ns,
                        uint64_t *id, struct error *err);
/* Counters of a process, replaced on every call (name, value). */
int profile_set_counter(struct profile *p, uint64_t process, const char *name, uint64_t value,
                        struct error *err);
/* CPU time of a thread (tid 0: of several) that went by natively where every reference was to be recorded. */
int profile_set_native(struct profile *p, uint64_t process, uint32_t tid, const char *reason, uint64_t cpu_ns,
                       struct error *err);
int profile_add_module(struct profile *p, uint64_t process, uint64_t start, uint64_t end,
                       uint64_t file_offset, const char *path, struct error *err);
int profile_add_burst(struct profile *p, struct profile_burst *burst, struct error *err);
int profile_add_watch(struct profile *p, struct profile_watch *watch, struct error *err);
/* Of watch->id: outcome, refs, cpu_ns, translated_refs and clock_error, nothing else. -ENOENT with err filled
 * if there is no such watch. */
int profile_set_outcome(struct profile *p, const struct profile_watch *watch, struct error *err);
/*
 * Of a sample of lines: the distances of the lines of one group (0 .. 7), 1 and more, and in the last bin
 * their first touches; a histogram of kind "groupN".
 */
int profile_put_group(struct profile *p, unsigned group, const struct hist *h, struct error *err);
/*
 * Per-set distances in `sets` sets (a power of two), a histogram of kind "setsN": not all bursts have them.
 */
int profile_put_sets(struct profile *p, uint64_t burst, unsigned sets, const struct hist *h,
                     struct error *err);
/* Non-zero bins only. burst 0: the whole run's (full mode). Replaces what was there. */
int profile_put_hist(struct profile *p, uint64_t burst, enum profile_hist kind, const struct hist *h,
                     struct error *err);
int profile_add_window(struct profile *p, const struct profile_window *window, struct error *err);
int profile_add_sample(struct profile *p, const struct profile_sample *sample, struct error *err);
/* Removes earlier rows measured by `by`, then adds these. */
int profile_put_pirates(struct profile *p, const char *by, const struct profile_pirate *rows, size_t n,
                        struct error *err);
/* Make everything written so far durable (one transaction; called every few seconds while running). */
int profile_commit(struct profile *p, struct error *err);
/* Commit, mark complete (unless complete is 0), close, free. NULL is allowed. */
int profile_close(struct profile *p, int complete, struct error *err);

/* --- reading --- */
/* -ENOENT, -EINVAL (not a cachegram profile, damaged, truncated, empty), -EPROTO (another version). */
int profile_open(const char *path, struct profile **profile, struct error *err);
/* Value of key into the caller's buffer; -ENOENT if absent. */
int profile_get(struct profile *p, const char *key, char *value, size_t size, struct error *err);
int profile_get_number(struct profile *p, const char *key, double *value, struct error *err);
/* All bursts, ordered by id, in a malloc'ed array that the caller frees. */
int profile_bursts(struct profile *p, struct profile_burst **bursts, size_t *n, struct error *err);
int profile_get_hist(struct profile *p, uint64_t burst, enum profile_hist kind, struct hist *h,
                     struct error *err);
/* All windows, ordered by id, and all samples, ordered by window; malloc'ed arrays that the caller frees. */
int profile_windows(struct profile *p, struct profile_window **windows, size_t *n, struct error *err);
int profile_samples(struct profile *p, struct profile_sample **samples, size_t *n, struct error *err);
/* All watches, ordered by burst and id, in a malloc'ed array that the caller frees. */
int profile_watches(struct profile *p, struct profile_watch **watches, size_t *n, struct error *err);
/* Of all sizes, largest available first, by `by`; malloc'ed, the caller frees. *n is 0 where there are none.
 */
int profile_pirates(struct profile *p, struct profile_pirate **rows, size_t *n, struct error *err);
/* As profile_get_hist, of profile_put_group. */
int profile_get_group(struct profile *p, unsigned group, struct hist *h, struct error *err);
/* As profile_get_hist, of profile_put_sets. */
int profile_get_sets(struct profile *p, uint64_t burst, unsigned sets, struct hist *h, struct error *err);
/* Calls each(ctx, ...) for every counter, summed over processes. */
int profile_counters(struct profile *p, void (*each)(void *ctx, const char *name, uint64_t value), void *ctx,
                     struct error *err);
/* Calls each for every process. */
int profile_processes(struct profile *p,
                      void (*each)(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe),
                      void *ctx, struct error *err);

#endif
