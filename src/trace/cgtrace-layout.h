/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgtrace-layout.h - the file layout of cachegram's format, as described in docs/trace-format.md. All numbers
 * are little endian, like this machine (x86-64): structures are written as they are.
 */
#ifndef CACHEGRAM_TRACE_OWN_LAYOUT_H
#define CACHEGRAM_TRACE_OWN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include "trace/columns.h"

#define CGTRACE_MAGIC "CGTRACE\n"
#define CGTRACE_END_MAGIC "CGTREND\n"
#define CGTRACE_VERSION 1u
#define CGTRACE_SAMPLED 1u /* flags */

#define CGTRACE_SOURCE_MAX 65536u

struct cgtrace_header {
    char magic[8];
    uint32_t version;
    uint32_t flags;
    uint32_t source_bytes; /* the text follows */
    uint32_t check;        /* cgtrace_check of the previous 20 bytes and of the text */
};

#define CGTRACE_BLOCK 0x42544743u /* "CGTB" */
#define CGTRACE_INDEX 0x49544743u /* "CGTI" */
#define CGTRACE_SEGMENTS 0u       /* streams of a block: the segments, then the columns */
#define CGTRACE_STREAMS (1u + COLUMNS)

struct cgtrace_block {
    uint32_t magic;
    uint32_t check;        /* cgtrace_check of the rest of this structure */
    uint64_t first;        /* number of its first reference in the trace */
    uint64_t instructions; /* executed up to its end, since the beginning of the trace; 0: unknown */
    uint32_t references;
    uint32_t stream_bytes[CGTRACE_STREAMS]; /* of the zstd frames that follow, in this order */
};

/* After the last block: the positions of the blocks. */
struct cgtrace_index {
    uint32_t magic;
    uint32_t check; /* cgtrace_check of the rest and of the entries */
    uint64_t references, instructions;
    uint64_t blocks;
};
struct cgtrace_entry {
    uint64_t offset; /* of the block in the file */
    uint64_t first;  /* its first reference */
};
/* The last bytes of a complete file. */
struct cgtrace_end {
    uint64_t index_offset;
    char magic[8];
};

_Static_assert(sizeof(struct cgtrace_header) == 24 && sizeof(struct cgtrace_block) == 64 &&
                   sizeof(struct cgtrace_index) == 32 && sizeof(struct cgtrace_end) == 16,
               "the structures have no gaps");

/* Most bytes of a block's decompressed streams: more is damage. */
#define CGTRACE_STREAM_MAX ((size_t)COLUMNS_REFERENCES * 20u)
/* Likewise, of all frames of a block together. */
#define CGTRACE_PAYLOAD_MAX ((size_t)64 << 20)

/* FNV-1a, 32 bits, continued from `sum`; initially CGTRACE_CHECK_START. */
#define CGTRACE_CHECK_START UINT32_C(2166136261)
static inline uint32_t cgtrace_check(uint32_t sum, const void *data, size_t n)
{
    const uint8_t *bytes = (const uint8_t *)data;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * UINT32_C(16777619);
    return sum;
}

#endif
