/* SPDX-License-Identifier: Apache-2.0 */
/* touched-words.h - which words of a few lines a burst touched. */
#ifndef CACHEGRAM_TOUCHED_WORDS_H
#define CACHEGRAM_TOUCHED_WORDS_H

#include <stdint.h>
#include "base/error.h"
#include "collect/records/decode.h"

#define TOUCHED_WORD_BYTES 8u
#define TOUCHED_LINE_MOST 512u /* bytes: a bit for each word */

struct touched_words;

struct touched_words *touched_words_new(const struct decode_source *source, struct error *err);
void touched_words_free(struct touched_words *t);
/*
 * mask[i]: bit w for word w of the line at address line[i], n of them. Of a burst that a string instruction
 * makes very long only the beginning is looked at. 0 or -ENOMEM.
 */
int touched_words_find(struct touched_words *t, const struct wire_desc *desc, const uint64_t *records,
                       uint64_t nrecords, unsigned line_bytes, const uint64_t *line, uint64_t *mask,
                       unsigned n);

#endif
