/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites.h - how many touches each site (decode.h) made, the distances of the far ones, and the data objects
 * that were touched: of one burst, or in full mode of a process' whole life.
 */
#ifndef CACHEGRAM_SITES_H
#define CACHEGRAM_SITES_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "collect/objects/objects.h"
#include "collect/reduce/call-paths.h"
#include "collect/reduce/process-stack.h"
#include "collect/reduce/sampled-table.h"
#include "collect/records/decode.h"
#include "sim/stackdist.h"

struct sites;

/* Of the touches nearer than COLLECT_NEAR_LINES, one in near_every is counted, at random distances, and
 * represents that many. NULL when memory is short (err says so). */
struct sites *sites_new(uint32_t near_every, struct error *err);
void sites_free(struct sites *s); /* NULL is allowed */
/* For decoder_note_sites. */
struct decode_sites *sites_noted(struct sites *s);
/* For stackdist_touch_many; with space for n lines in one call. own: another one, for thread_stacks_touch.
 * NULL when memory is short. */
struct stackdist_far *sites_far(struct sites *s, size_t n, int own);
/* Counts the touches listed in far; line_sites: of the lines (decoder_touches). own: those that are far in
 * the thread's own stack; NULL: the same. objects NULL: data objects are not identified. paths NULL: nor is
 * how their code was called; else call_paths_batch was called. 0, or -ENOMEM. */
int sites_take(struct sites *s, const struct process_touches *touches, const uint32_t *line_sites,
               const struct stackdist_far *far, const struct stackdist_far *own, struct objects *objects,
               struct call_paths *paths);
/* The first touch of a line in the tail after the burst, which represents so many: after `entry` other lines
 * of the tail, at that stack distance if the burst touched it, else after so many lines of burst and tail. 0,
 * or -ENOMEM. */
struct sites_tail_touch {
    uint32_t site, object;
    unsigned part; /* of the line (decode_touch_part) */
    uint64_t entry, distance, represented;
    int in_burst;
};
int sites_take_tail(struct sites *s, const struct sites_tail_touch *touch);
/* The id of the process whose touches follow. From now on reuses are sampled, with the lines that were
 * touched in between. causes: of struct symbols_cause. */
void sites_note_causes(struct sites *s, struct sampled_table *causes, uint64_t process);
/* To be called between two buffers of the same burst, so that counts cannot overflow. */
void sites_next_buffer(struct sites *s);
/*
 * Writes all counts in the form of table burst_site (docs/format.md) and resets them. Sets the bits of their
 * blocks in used[] (WIRE_MAX_BLOCKS bits). The bytes are valid until the next call. 0, or -ENOMEM.
 */
int sites_end(struct sites *s, uint8_t *used, const uint8_t **bytes, size_t *size);
/* Likewise, but of a part of the process' life: the next counts go on where these end. Call it between two
 * buffers. *block: that of the counts before, at first 0, then the last one of these; *nblocks: how many are
 * added to that. */
int sites_part(struct sites *s, uint8_t *used, uint32_t *block, uint64_t *nblocks, const uint8_t **bytes,
               size_t *size);
/* Discards the counts. */
void sites_forget(struct sites *s);

#endif
