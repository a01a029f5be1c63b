/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own-layout.h - the file layout of cachegram's format, as described in docs/trace-format.md. All numbers are
 * little endian, like this machine (x86-64): structures are written as they are.
 */
#ifndef CACHEGRAM_TRACE_OWN_LAYOUT_H
#define CACHEGRAM_TRACE_OWN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include "trace/columns.h"

#define OWN_MAGIC "CGTRACE\n"
#define OWN_END_MAGIC "CGTREND\n"
#define OWN_VERSION 1u
#define OWN_SAMPLED 1u /* flags */

#define OWN_SOURCE_MAX 65536u

struct own_header {
    char magic[8];
    uint32_t version;
    uint32_t flags;
    uint32_t source_bytes; /* the text follows */
    uint32_t check;        /* own_check of the previous 20 bytes and of the text */
};

#define OWN_BLOCK 0x42544743u /* "CGTB" */
#define OWN_INDEX 0x49544743u /* "CGTI" */
#define OWN_SEGMENTS 0u       /* streams of a block: the segments, then the columns */
#define OWN_STREAMS (1u + COLUMNS)

struct own_block {
    uint32_t magic;
    uint32_t check;        /* own_check of the rest of this structure */
    uint64_t first;        /* number of its first reference in the trace */
    uint64_t instructions; /* executed up to its end, since the beginning of the trace; 0: unknown */
    uint32_t references;
    uint32_t stream_bytes[OWN_STREAMS]; /* of the zstd frames that follow, in this order */
};

/* After the last block: the positions of the blocks. */
struct own_index {
    uint32_t magic;
    uint32_t check; /* own_check of the rest and of the entries */
    uint64_t references, instructions;
    uint64_t blocks;
};
struct own_entry {
    uint64_t offset; /* of the block in the file */
    uint64_t first;  /* its first reference */
};
/* The last bytes of a complete file. */
struct own_end {
    uint64_t index_offset;
    char magic[8];
};

_Static_assert(sizeof(struct own_header) == 24 && sizeof(struct own_block) == 64 &&
                   sizeof(struct own_index) == 32 && sizeof(struct own_end) == 16,
               "the structures have no gaps");

/* Most bytes of a block's decompressed streams: more is damage. */
#define OWN_STREAM_MAX ((size_t)COLUMNS_REFERENCES * 20u)
/* Likewise, of all frames of a block together. */
#define OWN_PAYLOAD_MAX ((size_t)64 << 20)

/* FNV-1a, 32 bits, continued from `sum`; initially OWN_CHECK_START. */
#define OWN_CHECK_START UINT32_C(2166136261)
static inline uint32_t own_check(uint32_t sum, const void *data, size_t n)
{
    const uint8_t *bytes = (const uint8_t *)data;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * UINT32_C(16777619);
    return sum;
}

#endif
