/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sizes.h - sizes in bytes as people write and read them. Suffixes are powers of 1024: K, KB and KiB are the
 * same, in upper or lower case; likewise M, G, T.
 */
#ifndef CACHEGRAM_SIZES_H
#define CACHEGRAM_SIZES_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

#define SIZE_MAX_BYTES (UINT64_C(1) << 60) /* so that sums and products with small numbers cannot wrap */
#define SIZE_LIST_MAX 10000u

/*
 * "32K", "1.5M", "8MiB", "1048576": 1 .. SIZE_MAX_BYTES; fractions of a byte are dropped. A half power of two
 * as size_format writes it ("1.41M", "724K") is that half power. Otherwise -EINVAL or -ERANGE, with *bytes
 * unchanged.
 */
int size_parse(const char *text, uint64_t *bytes, struct error *err);

/*
 * Sizes and ranges separated by commas: "32K,1M,8M", "1K..64M", "1K..1M,48M". A range contains its two ends
 * and every power and half power of two between (the latter rounded down). *sizes is malloc'ed, the caller
 * frees it; it is ascending, without duplicates, *n >= 1. On failure (as size_parse, or -ENOMEM) nothing is
 * set.
 */
int size_parse_list(const char *text, uint64_t **sizes, size_t *n, struct error *err);

/* "512", "32K", "45.3K", "1M": at most three digits after rounding, but whole multiples below 10,000 are
 * exact. Returns text, a buffer of SIZE_TEXT bytes. */
#define SIZE_TEXT 24
char *size_format(uint64_t bytes, char text[SIZE_TEXT]);

#endif
