/* SPDX-License-Identifier: Apache-2.0 */
/* decode-internal.h - what the files of the decoder share. */
#ifndef CACHEGRAM_DECODE_INTERNAL_H
#define CACHEGRAM_DECODE_INTERNAL_H

#include "collect/decode.h"

/* Line ids gathered before the sink is called: large enough to make the call free, small enough to
 * stay in a second-level cache beside the buffer that is being read. */
#define BATCH_LINES 8192u
/* Room for one block, or one reference, beyond that; a template that needs more is refused. */
#define BATCH_MARGIN 8192u
/* decode_groups stores whole vectors. */
#define BATCH_OVERHANG 8u
/* User addresses; the kernel half and non-canonical values can only come from damage. */
#define ADDRESS_MASK ((UINT64_C(1) << 48) - 1)
/* A repeated string instruction that claims more than that is damage. */
#define REP_MAX_ELEMENTS (UINT64_C(1) << 34)

struct plain_ref {
    uint64_t disp;
    uint16_t last; /* size - 1 */
    uint8_t slot;
    uint8_t fs;
    uint8_t twice; /* read-modify-write: a load and a store */
};

/*
 * Up to 8 references whose words lie in a window of 8, in program order; one that is read and written
 * counts as two.
 */
struct group {
    uint64_t disp[8];
    uint16_t last[8]; /* size - 1 */
    uint8_t word[8];  /* within the window */
    uint16_t window;  /* first word, from the header on */
    uint8_t n;
    uint8_t with_word, with_fs; /* bit i: reference i adds a word of the record, the base of fs */
} __attribute__((aligned(64)));

struct block {
    uint64_t header; /* of its records */
    uint32_t nwords;
    uint32_t nrefs;
    uint32_t ninsns;
    uint32_t loads, stores; /* if all is plain */
    uint32_t most_lines;    /* that one execution of all plain references can touch */
    uint8_t special;        /* some reference is not plain */
    uint8_t bad;
    uint8_t grouped;       /* it is plain and the groups are made */
    uint32_t ngroups;      /* 0 if it has no references, too */
    uint32_t reach;        /* words from the header on that groups may read */
    struct wire_ref *refs; /* as sent: for special blocks and incomplete records */
    struct group *groups;
    struct plain_ref plain[];
};

struct decoder {
    struct decode_source source;
    unsigned line_shift;
    int grouped; /* the CPU has AVX-512 */
    unsigned line_bytes;
    struct block **blocks; /* by id */
    uint64_t *batch;
    size_t used;
    decode_sink *sink; /* of the call in progress, with its ctx and what it counts */
    void *ctx;
    struct decode_counts *counts;
};

/* Whether this machine runs decode_groups. */
int decode_has_avx512(void);
/* Divides b's plain references into groups. 0, or -ENOMEM. */
int decode_make_groups(struct block *b);
/*
 * Decodes complete records from words[at] on, as long as they are plain and grouped and there is room in
 * the batch. Where it stopped: at a record that decode_buffer has to see, or at.
 */
uint64_t decode_groups(struct decoder *d, const uint64_t *words, uint64_t at, uint64_t n, uint64_t fs_base);

#endif
