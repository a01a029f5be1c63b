/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h - full mode on several processors: buffers are decoded, and the stack distances of their touches
 * measured, before their turn, by two other threads.
 *
 *     one thread        decode 1 | decode 2    | decode 3    | ...
 *     another thread             | distances 1 | distances 2 | distances 3 | ...
 *     the caller                               | attribute 1 | attribute 2 | attribute 3 | ...
 *
 * What the caller does (instructions, data objects, call paths, windows) depends on the order of buffers and
 * on much state; decoding and distances do not, and are more than half of the work. So results do not depend
 * on whether buffers were decoded ahead.
 */
#ifndef CACHEGRAM_AHEAD_H
#define CACHEGRAM_AHEAD_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"
#include "collect/records/decode.h"
#include "collect/reduce/process-stack.h"
#include "collect/reduce/thread-stacks.h"
#include "sim/stackdist.h"

struct ahead;

/* Touches as the decoder handed them to its sink, with their sites (decoder_touches), calls and returns. */
struct ahead_batch {
    struct process_touches touches;
    const uint32_t *sites;
    const struct decode_turn *turns;
    size_t nturns;
    struct stackdist_far far; /* lines that are far */
    struct stackdist_far own; /* those that are in the thread's own stack, if has_own; else the same */
    int has_own;
};

/* A buffer that was decoded ahead. */
struct ahead_buffer {
    uint64_t process, seq; /* whose buffer it is: its process' id, wire_desc.seq */
    int status;            /* 0, or -ENOMEM: the rest is invalid */
    struct decode_counts counts;
    const struct ahead_batch *batches;
    size_t nbatches;
    struct hist stack; /* stack distances; those of bins below `bins` only */
    uint32_t bins;
    uint64_t cold;            /* first touches */
    struct thread_buffer own; /* both in the thread's own stack */
};

/*
 * The buffer to be decoded: of a process with that stack, as for decode_buffer. words, and whatever is
 * pointed to except desc, belongs to the other threads until ahead_wait. run: the run's histograms
 * (process_stack_touch).
 */
struct ahead_source {
    uint64_t process;
    struct decoder *decoder;
    struct process_stack *stack;
    struct thread_stacks *threads;
    struct hist *run;
    const struct wire_desc *desc;
    const uint64_t *words;
    uint64_t n;
};

/* NULL: there is one processor only, or memory is short; then buffers are decoded when it is their turn. */
struct ahead *ahead_new(void);
void ahead_free(struct ahead *a); /* NULL is allowed */
/* Decodes a buffer, the successor of the last one. 1; 0: too many wait. */
int ahead_begin(struct ahead *a, const struct ahead_source *source);
/* Number of buffers that wait. */
size_t ahead_waiting(const struct ahead *a);
/* The first one that waits, once it was measured; valid until ahead_take. NULL: none waits, or they were all
 * discarded, since the first one has too many touches: decode it now. */
const struct ahead_buffer *ahead_first(struct ahead *a);
/* Adds what the first one executed to the sites (decoder_note_sites). */
void ahead_note_sites(const struct ahead *a, struct decode_sites *sites);
/* The first one was used: makes room for another one. */
void ahead_take(struct ahead *a);
/* Waits until the other threads have nothing to do. */
void ahead_wait(struct ahead *a);
/* Likewise, and no buffer waits any more. */
void ahead_discard(struct ahead *a);

#endif
