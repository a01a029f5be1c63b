/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - the burst method on a completely known stream of references, such as a trace: bursts, watched
 * survivors and a reference clock as in a recording, stored in the same tables. Nothing is disturbed, and the
 * exact result is known. Several samplers may process one stream at the same time.
 */
#ifndef CACHEGRAM_REPLAY_H
#define CACHEGRAM_REPLAY_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/profile.h"

#define REPLAY_BATCH 8192u /* most references of one call */

struct replay_options {
    uint64_t references; /* of the whole stream, >= 1 */
    uint64_t bursts;     /* one at a random position in each of so many equal parts of the stream, >= 1 */
    uint64_t burst_refs; /* length of a burst in references, 1 .. references / bursts */
    unsigned watch;      /* survivors of each burst that are watched */
    double drop_rate;    /* probability that a watched line is censored when another burst begins, 0 .. 1 */
    /* Largest relative error of the clock, which varies slowly in both directions, 0 .. below 1. */
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
 * Adds a sampler, before the first reference; all samplers have the same line_bytes and references. p is not
 * owned; the caller sets what belongs to no burst ("mode", "command", ...). 0, -EINVAL or -ENOMEM, or the
 * error of writing the profile.
 */
int replay_add(struct replay *r, const struct replay_options *options, struct profile *p, struct error *err);
/*
 * Processes the next n (1 .. REPLAY_BATCH) references: bytes [address, address + size) of address space
 * `space` (below 32), rw bit 0 set: a load. 0, or negative with err filled: memory is short, or a profile
 * cannot be written.
 */
int replay_references(struct replay *r, uint32_t space, const uint64_t *address, const uint16_t *size,
                      const uint8_t *rw, size_t n, struct error *err);
/* Ends the stream: lines still watched are never touched again. Errors as replay_references. */
int replay_finish(struct replay *r, struct error *err);

#endif
