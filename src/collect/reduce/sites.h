/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites.h - how many touches each site (decode.h) made, and at what distances the far ones were: of one
 * burst, or in full mode of a process' whole life.
 */
#ifndef CACHEGRAM_SITES_H
#define CACHEGRAM_SITES_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "collect/records/decode.h"
#include "sim/stackdist.h"

struct sites;

/* NULL when memory is short (err says so). */
struct sites *sites_new(struct error *err);
void sites_free(struct sites *s); /* NULL is allowed */
/* For decoder_note_sites. */
struct decode_sites *sites_noted(struct sites *s);
/* For stackdist_touch_far; with room for n lines in one call. NULL when memory is short. */
struct stackdist_far *sites_far(struct sites *s, size_t n);
/* What was listed in there: touches of the lines whose sites are those. 0, or -ENOMEM. */
int sites_take(struct sites *s, const uint32_t *line_sites);
/* Between two buffers of the same burst: counts cannot overflow then. 0, or -ENOMEM. */
int sites_next_buffer(struct sites *s);
/*
 * All that was counted, in the form of table burst_site (docs/format.md); then all is 0 again. Sets the bits
 * of the blocks in it in used[], of WIRE_MAX_BLOCKS bits. The bytes are s' own until the next call. 0, or
 * -ENOMEM.
 */
int sites_end(struct sites *s, uint8_t *used, const uint8_t **bytes, size_t *size);
/* Forgets what was counted. */
void sites_forget(struct sites *s);

#endif
