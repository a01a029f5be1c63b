/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - the profile file (SQLite, docs/format.md): written while the program runs, read later. A kill
 * at any moment leaves everything committed readable. Not thread-safe.
 */
#ifndef CACHEGRAM_PROFILE_H
#define CACHEGRAM_PROFILE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"
#include "base/packed-hist.h"

#define PROFILE_SCHEMA_VERSION 16

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
    uint64_t id;      /* set by profile_add_burst */
    uint64_t process; /* id from profile_add_process */
    uint32_t tid;
    uint64_t start_ns, end_ns;         /* since the run's start */
    uint64_t cpu_start_ns, cpu_end_ns; /* thread CPU time */
    uint64_t references, loads, stores, instructions, words, new_blocks;
    uint64_t lines;  /* distinct lines touched */
    uint64_t blocks; /* basic blocks executed; 0: unknown */
    uint64_t pc;
    uint32_t end; /* enum wire_end, also stored by name */
    uint32_t end_detail;
    double weight;
    /* By the reference clock; NaN: unknown. */
    double start_refs;  /* references that the thread had executed when the burst began */
    double refs_per_ns; /* around the burst, of the thread's CPU time, in native code */
    /* the same for the few thousand references before the burst: its weight comes from this rate */
    double near_per_ns;
    /*
     * References, except that a repeated string instruction counts as one, or as one for its source and one
     * for its target. Weight, start_refs, both rates, and the stack and reuse distances (without those of 0
     * within such instructions) are in this unit. 0: they are in references.
     */
    uint64_t steps;
    /* Number of elements of such instructions in the same line as the previous element, per step, since the
     * thread's last burst; NaN: unknown. */
    double string_hits;
    double gap_ns; /* mean CPU time between bursts when this one was planned; NaN: not placed by CPU time */
};

/* Outcome of a watched line. The codes are part of the file format. */
enum profile_outcome {
    PROFILE_OPEN = 0,     /* unknown, or not known yet */
    PROFILE_REUSED = 1,   /* touched again */
    PROFILE_DROPPED = 2,  /* censored, for reasons independent of the line */
    PROFILE_ENDED = 3,    /* the program ended before: never touched again */
    PROFILE_UNMAPPED = 4, /* its memory was unmapped or discarded before: never touched again */
    PROFILE_REFUSED = 5,  /* cannot be watched (a stack, memory that the kernel writes) */
    PROFILE_OUTCOMES
};

/* A survivor of a burst that was chosen to be watched (collect/watch/watch.h). */
struct profile_watch {
    uint64_t id; /* given by profile_add_watch */
    uint64_t burst;
    uint64_t address;       /* of the line */
    uint64_t position, age; /* distinct lines, and touches, of the burst after its last touch of this line */
    double weight;          /* survivors of the burst that it represents; NaN: the same for all */
    enum profile_outcome outcome;
    double refs;            /* references from the burst's end to the outcome; NaN: open, or unknown */
    double cpu_ns;          /* CPU time of the process' own code in that time; NaN: open, or unknown */
    double translated_refs; /* references in addition, in translated code; NaN: likewise */
    double clock_error;     /* relative error of refs; NaN: unknown */
    /* The first tail_refs references after the burst were recorded, and the line's depth grew by tail_lines
     * in them (estimated); both NaN: they were not. */
    double tail_refs, tail_lines;
    uint64_t object; /* id of its data object (profile/objects.h); 0: not known */
    uint64_t pc;     /* of the instruction that touched it again; 0: not known */
    uint32_t tid;    /* of the thread that touched it again; 0: not known */
    /* If that is the burst's thread, its CPU time in native code until then; NaN: it is not, or unknown. */
    double own_cpu_ns;
    uint64_t site; /* id of that instruction (profile/sites.h); 0: not known; not written */
};

/* Mode "sparse": a window, in which samples were started. */
struct profile_window {
    uint64_t id;                /* 1, 2, ... in order */
    uint64_t start, references; /* start: number of its first reference */
};

#define PROFILE_DANGLING UINT64_MAX

/* Mode "sparse": a reference whose line was watched. */
struct profile_sample {
    uint64_t window;   /* id of the window in which it started */
    uint64_t start;    /* number of the reference */
    uint64_t distance; /* references until its line was touched again, or PROFILE_DANGLING */
    uint64_t line;
};

/* Measurements of `cachegram pirate` at one size of the shared cache. NaN: not measured, or not reliable. */
struct profile_pirate {
    char by[16]; /* "pirate", or "resctrl" */
    uint64_t available_bytes, stolen_bytes;
    int valid;                   /* the Pirate was proven to hold its set, and there are measurements */
    uint64_t intervals, dropped; /* valid ones, and those dropped since the Pirate lost its set */
    double cpu_ns, units;        /* of the program, in valid intervals */
    double ns_per_unit, ns_low, ns_high; /* cpu_ns / units, and its 95% interval */
    double ns_per_ref, cpi, gbps, fetch_ratio, miss_ratio;
    double pirate_fetch_ratio; /* over all intervals, valid or not */
    double lost_share;         /* of the time: the Pirate did not run */
};

/* Kinds of program that "unprofiled_cpu_seconds" may contain; for messages. */
#define UNPROFILED_KINDS                                                                              \
    "statically linked, set-uid, 32-bit, of another user, in a container, or started with a cleared " \
    "environment or another LD_PRELOAD"

/* --- writing --- */
/* Creates `path` (an existing file moves to PATH.old). On failure, err has one sentence, and all files are as
 * before. The file is created at once, but is empty until the first commit. */
int profile_create(const char *path, struct profile **profile, struct error *err);
/* Replaces profile_close for a created profile: restores all files as they were before. NULL is allowed. */
void profile_abandon(struct profile *p);
/* The profile will not be abandoned: deletes an earlier PATH.old, kept until now for that case. Also done by
 * profile_close. */
void profile_keep(struct profile *p);
/* Opens an existing profile for additions. As profile_open; -EBUSY if it is being written. */
int profile_append(const char *path, struct profile **profile, struct error *err);
/* Sets a key of table `run`: "command", "mode", "line_bytes", "seed", "exit_status", "warning"... */
int profile_set(struct profile *p, const char *key, const char *value, struct error *err);
/* Removes a key, if it exists. */
int profile_unset(struct profile *p, const char *key, struct error *err);
int profile_set_number(struct profile *p, const char *key, double value, struct error *err);
int profile_add_process(struct profile *p, uint32_t pid, uint32_t ppid, const char *exe, uint64_t start_ns,
                        uint64_t *id, struct error *err);
/* Sets a counter of a process (name, value), replacing the previous value. */
int profile_set_counter(struct profile *p, uint64_t process, const char *name, uint64_t value,
                        struct error *err);
/* CPU time of a thread (tid 0: of several) in native execution where every reference was to be recorded. */
int profile_set_native(struct profile *p, uint64_t process, uint32_t tid, const char *reason, uint64_t cpu_ns,
                       struct error *err);
int profile_add_module(struct profile *p, uint64_t process, uint64_t start, uint64_t end,
                       uint64_t file_offset, const char *path, struct error *err);
int profile_add_burst(struct profile *p, struct profile_burst *burst, struct error *err);
int profile_add_watch(struct profile *p, struct profile_watch *watch, struct error *err);
/* Sets outcome, refs, cpu_ns, translated_refs, clock_error and pc of watch->id, and nothing else. -ENOENT
 * with err filled if there is no such watch. */
int profile_set_outcome(struct profile *p, const struct profile_watch *watch, struct error *err);
/*
 * For a sample of lines: the distances of the lines of one group (0 .. 7), 1 and more, with their first
 * touches in the last bin; a histogram of kind "groupN".
 */
int profile_put_group(struct profile *p, unsigned group, const struct hist *h, struct error *err);
/*
 * Distances within sets for `sets` sets (a power of two), a histogram of kind "setsN": not all bursts have
 * them.
 */
int profile_put_sets(struct profile *p, uint64_t burst, unsigned sets, const struct hist *h,
                     struct error *err);
/* Stores non-empty bins. burst 0: the whole run's (full mode). Replaces an existing histogram. */
int profile_put_hist(struct profile *p, uint64_t burst, enum profile_hist kind, const struct hist *h,
                     struct error *err);
int profile_add_window(struct profile *p, const struct profile_window *window, struct error *err);
int profile_add_sample(struct profile *p, const struct profile_sample *sample, struct error *err);
/* Replaces all rows measured by `by`. */
int profile_put_pirates(struct profile *p, const char *by, const struct profile_pirate *rows, size_t n,
                        struct error *err);
/* Makes everything written so far durable (one transaction; called every few seconds while running). */
int profile_commit(struct profile *p, struct error *err);
/* Commits, marks the profile complete (unless complete is 0), closes, frees. NULL is allowed. */
int profile_close(struct profile *p, int complete, struct error *err);

/* --- reading --- */
/* -ENOENT, -EINVAL (not a cachegram profile, empty), -EBADMSG (damaged, truncated), -EPROTO (another
 * version).
 */
int profile_open(const char *path, struct profile **profile, struct error *err);
/* -EBADMSG, with err: the profile is damaged, as these words say ("blocks"). This is remembered. */
int profile_damaged(struct profile *p, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The first damage that was found since the profile was opened, also if it was not reported: -EBADMSG with
 * err. 0: none so far. */
int profile_find_damage(const struct profile *p, struct error *err);
/* Value of key into the caller's buffer; -ENOENT if absent. */
int profile_get(struct profile *p, const char *key, char *value, size_t size, struct error *err);
int profile_get_number(struct profile *p, const char *key, double *value, struct error *err);
/* Bytes of a cache line: 1 .. 2^20; 64 if the profile does not say. -EBADMSG if it is damaged. */
int profile_line_bytes(struct profile *p, unsigned *line_bytes, struct error *err);
/* All bursts, ordered by id, in a malloc'ed array that the caller frees. */
int profile_bursts(struct profile *p, struct profile_burst **bursts, size_t *n, struct error *err);
int profile_get_hist(struct profile *p, uint64_t burst, enum profile_hist kind, struct hist *h,
                     struct error *err);
/* The same, packed: sets *h, which the caller clears. */
int profile_get_packed_hist(struct profile *p, uint64_t burst, enum profile_hist kind, struct packed_hist *h,
                            struct error *err);
/* All windows, ordered by id, and all samples, ordered by window; malloc'ed arrays that the caller frees. */
int profile_windows(struct profile *p, struct profile_window **windows, size_t *n, struct error *err);
int profile_samples(struct profile *p, struct profile_sample **samples, size_t *n, struct error *err);
/* All watches, ordered by burst and id, in a malloc'ed array that the caller frees. */
int profile_watches(struct profile *p, struct profile_watch **watches, size_t *n, struct error *err);
/* All sizes, largest available first, by `by`; malloc'ed, the caller frees. *n is 0 if there are none. */
int profile_pirates(struct profile *p, struct profile_pirate **rows, size_t *n, struct error *err);
/* As profile_get_hist, for profile_put_group. */
int profile_get_group(struct profile *p, unsigned group, struct hist *h, struct error *err);
/* As profile_get_hist, for profile_put_sets. */
int profile_get_sets(struct profile *p, uint64_t burst, unsigned sets, struct hist *h, struct error *err);
/* Calls each(ctx, ...) for every counter, summed over processes. */
int profile_counters(struct profile *p, void (*each)(void *ctx, const char *name, uint64_t value), void *ctx,
                     struct error *err);
/* What readers keep as long as a profile that is only read is open: one pointer, NULL at first. release is
 * called by profile_close, and for the previous pointer. */
void profile_set_kept(struct profile *p, void *kept, void (*release)(void *kept));
void *profile_kept(const struct profile *p);
/* Calls each for every process. */
int profile_processes(struct profile *p,
                      void (*each)(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe),
                      void *ctx, struct error *err);

#endif
