/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampled-table.h - counts by key in limited space. An entry is a structure that begins with its key, which
 * has no padding and a multiple of 4 bytes; its count, a uint64_t, comes right after the key. If there are
 * too many different keys, those with small counts are sampled.
 */
#ifndef CACHEGRAM_SAMPLED_TABLE_H
#define CACHEGRAM_SAMPLED_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct sampled_table;

/* capacity: most entries, a power of two; key: bytes of the key. NULL when memory is short (err says so). */
struct sampled_table *sampled_table_new(size_t capacity, size_t key, struct error *err);
void sampled_table_free(struct sampled_table *t); /* NULL is allowed */
/* Adds to the count of that key; what `entry` has after its key is ignored. */
void sampled_table_add(struct sampled_table *t, const void *entry, uint64_t count);
/* All n entries, side by side, in no order; valid until the next sampled_table_add. */
const void *sampled_table_all(struct sampled_table *t, size_t *n);

#endif
