/* SPDX-License-Identifier: Apache-2.0 */
/* code.h - instructions that made references, identified by their file and offset, and the data objects that
 * were referenced. */
#ifndef CACHEGRAM_SYMBOLS_CODE_H
#define CACHEGRAM_SYMBOLS_CODE_H

#include <stddef.h>
#include <stdint.h>
#include "profile/objects.h"

struct symbols_site {
    uint32_t image;  /* index of its file */
    uint32_t made;   /* by symbols_name: in code of a JIT compiler, entry + 1; 0: the last one there */
    uint64_t offset; /* in the file; the address, if the file is unknown */
};

/* The map of that process (jit-map.h) had so many bytes at that time, CLOCK_MONOTONIC. */
struct symbols_growth {
    uint32_t pid;
    uint64_t at_ns, bytes;
};

/* In full mode: which blocks of a process' counts are of that time, CLOCK_MONOTONIC: from those of the slice
 * before, or the first one, up to number `blocks`. */
struct symbols_slice {
    uint64_t process, blocks, from_ns, until_ns;
};

/* Sampled reuses of lines, and a random one of the lines that were touched in between. Sites are references
 * of the process' translated blocks: 256 * block + reference. */
struct symbols_cause {
    uint64_t process;       /* id in the profile */
    uint32_t victim_site;   /* it touched the line again */
    uint32_t victim_object; /* number; 0: not known */
    uint32_t site, object;  /* of the other line: what touched it last, and its own */
    uint32_t bin;           /* of the stack distance (base/octaves.h) */
    uint32_t zero;
    uint64_t reuses; /* represented ones */
};
#define SYMBOLS_CAUSE_KEY offsetof(struct symbols_cause, reuses)

/* A call path: the call at a site, in the function that the caller's path has called. Path 0 is the root. */
struct symbols_path {
    uint32_t caller; /* a path with a smaller number */
    uint32_t site;   /* number, or: */
};
#define SYMBOLS_NO_SITE UINT32_MAX

/* Touches at large distances by a site (as in symbols_cause) that was reached by that path. */
struct symbols_call {
    uint64_t process;    /* id in the profile */
    uint32_t site, path; /* path: number */
    uint32_t what;       /* SITE_COUNT_STACK or SITE_COUNT_FIRST, + bin (profile/site-counts.h) */
    uint32_t zero;
    uint64_t touches; /* represented ones */
};
#define SYMBOLS_CALL_KEY offsetof(struct symbols_call, touches)

/* How lines of an object are used that an instruction brought into a cache of SYMBOLS_USE_LINES: so many in
 * the run, of the `known` ones among these so many bytes in all (estimates), from `whole` ones that were seen
 * from beginning to end. */
#define SYMBOLS_USE_LINES 512u
struct symbols_use {
    uint32_t site, object; /* numbers; object 0: not known */
    uint64_t lines, known, bytes, whole;
};

/* Lines that an instruction touched first, of an object, at so many bytes from the beginning of its variable
 * or block: a sample, each of which represents some. */
struct symbols_offset {
    uint32_t site, object; /* numbers */
    uint64_t offset, lines;
};

/* The most frequent difference of successive addresses of an instruction. */
struct symbols_stride {
    uint32_t site; /* number */
    int fetches;   /* nonzero: of those by which it touched lines first */
    uint32_t all, same;
    int64_t bytes;
};

/* References of an instruction to lines of an object that miss in a small cache only because it has sets. */
struct symbols_conflict {
    uint32_t site, object; /* numbers; object 0: not known */
    uint64_t references;
};

/* References of an instruction to lines of an object that another thread writes alternately: to bytes that it
 * does not write, or does. Estimated. */
struct symbols_sharing {
    uint32_t site, object; /* numbers; object 0: not known */
    uint64_t apart, same;
};

struct symbols_code {
    const char *const *images; /* paths, as in /proc/PID/maps; "": unknown */
    size_t nimages;
    const struct symbols_site *sites; /* by number */
    size_t nsites;
    const struct profile_object *objects; /* [i] has the id i + 1; without counts */
    size_t nobjects;
    const uint64_t *block_bytes; /* of each: the sizes of its blocks are multiples; 0: not known. Or NULL. */
    /* Blocks have a name like "3+1a40 3+1b07": files, by number, and offsets in them, of the calls by which
     * they were allocated, innermost first. */
    const char *const *files;
    size_t nfiles;
    const struct symbols_cause *causes;
    size_t ncauses;
    const struct symbols_path *paths; /* by number */
    size_t npaths;
    const struct symbols_call *calls;
    size_t ncalls;
    const struct symbols_use *uses;
    size_t nuses;
    const struct symbols_offset *offsets;
    size_t noffsets;
    const struct symbols_stride *strides;
    size_t nstrides;
    const struct symbols_sharing *sharings;
    size_t nsharings;
    const struct symbols_offset *shared_offsets; /* of false sharing: `lines` are references */
    size_t nshared_offsets;
    const struct symbols_conflict *conflicts;
    size_t nconflicts;
    /* For code whose names change. */
    uint64_t start_ns;                   /* of the run */
    const struct symbols_growth *growth; /* in the order of time */
    size_t ngrowth;
    const struct symbols_slice *slices; /* in the order of time */
    size_t nslices;
};

#endif
