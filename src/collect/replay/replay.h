/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - the burst method on a stream of references that is known in full, such as a trace: bursts,
 * watched survivors and a reference clock as in a recording, into the same tables, but nothing is disturbed
 * and the truth is known. Several samplers may go through one stream at once.
 */
#ifndef CACHEGRAM_REPLAY_H
#define CACHEGRAM_REPLAY_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/profile.h"

#define REPLAY_BATCH 8192u /* references of one call at most */

struct replay_options {
    uint64_t references; /* of the whole stream, >= 1 */
    uint64_t bursts;     /* one at a random place in each of so many equal parts of the stream, >= 1 */
    uint64_t burst_refs; /* length of a burst in references, 1 .. references / bursts */
    unsigned watch;      /* survivors of each burst that are watched */
    double drop_rate;    /* chance of a watched line to be given up when another burst begins, 0 .. 1 */
    /* The clock runs too fast and too slow by up to this share, slowly changing, 0 .. below 1. */
    double clock_error;
    int sets;            /* distances within cache sets, too */
    unsigned line_bytes; /* a power of two */
    uint64_t seed;
};

struct replay; /* opaque */

/* NULL when memory is short (err says so). */
struct replay *replay_new(struct error *err);
void replay_free(struct replay *r); /* NULL is allowed */
/*
 * One more sampler, before the first reference; all have the same line_bytes and references. p is not owned;
 * what belongs to no burst ("mode", "command", ...) is the caller's to set. 0, -EINVAL or -ENOMEM, or what
 * writing the profile failed with.
 */
int replay_add(struct replay *r, const struct replay_options *options, struct profile *p, struct error *err);
/*
 * The next n (1 .. REPLAY_BATCH) references: bytes [address, address + size) of address space `space` (below
 * 32, small numbers), rw bit 0 set: a load. 0, or negative with err filled: memory, or a profile cannot be
 * written.
 */
int replay_references(struct replay *r, uint32_t space, const uint64_t *address, const uint16_t *size,
                      const uint8_t *rw, size_t n, struct error *err);
/* The stream is over: lines still watched will never be touched again. As replay_references. */
int replay_finish(struct replay *r, struct error *err);

#endif
