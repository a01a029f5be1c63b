/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist-blob.h - a histogram as the bytes that the profile stores (docs/format.md).
 *
 * For every bin that is not empty, in rising order: the number of empty bins skipped since the last
 * one, then the count, both as LEB128 (7 bits a byte, low bits first, high bit set on all but the
 * last byte). Example: 3 values in bin 0 and 300 in bin 5 are 00 03 04 ac 02.
 */
#ifndef CACHEGRAM_HIST_BLOB_H
#define CACHEGRAM_HIST_BLOB_H

#include <stddef.h>
#include <stdint.h>
#include "base/hist.h"

/* Malloc'ed bytes that the caller frees, their number in *size; NULL when memory is short. */
unsigned char *hist_blob_encode(const struct hist *h, size_t *size);
/* 0, or -EINVAL if the bytes are not a histogram; then h is undefined. */
int hist_blob_decode(const unsigned char *bytes, size_t size, struct hist *h);

#endif
