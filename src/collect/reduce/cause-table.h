/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause-table.h - which lines were touched between two touches of a line: sums over sampled reuses of a run,
 * by the instruction and the data object of both. The space is limited: if there are many different ones,
 * those with few reuses are sampled.
 */
#ifndef CACHEGRAM_CAUSE_TABLE_H
#define CACHEGRAM_CAUSE_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/random.h"
#include "symbols/code.h"

struct cause_table;

/* capacity: most entries, a power of two; every: reuses that a sampled one represents. NULL when memory is
 * short (err says so). */
struct cause_table *cause_table_new(size_t capacity, uint64_t every, struct error *err);
void cause_table_free(struct cause_table *c); /* NULL is allowed */
/* A sampled reuse; `reuses` is set here. */
void cause_table_add(struct cause_table *c, const struct symbols_cause *cause);
/* All of them, in no order; valid until the next cause_table_add. */
const struct symbols_cause *cause_table_all(const struct cause_table *c, size_t *n);

#endif
