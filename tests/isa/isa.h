/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isa.h - what the programs of the random-instruction tests share: where code and data lie, and their files.
 *
 *   isa_generate  writes a file of random sequences (struct isa_header, isa_sequence[], code)
 *   isa_run       runs them and writes what became of registers and memory; with --oracle it single-steps
 *                 them natively and writes the references that they should be recorded with
 *   isa_record    runs isa_run with the agent in it and writes the references that were recorded
 *   isa_compare   compares two runs, or two lists of references, and prints what differs
 *
 * Everything that a sequence can see lies at fixed addresses, so that two runs agree in every bit:
 *
 *   base                 the code, mapped from the file, readable and executable
 *   base + ISA_ARENA     nothing | data, 2 pages | constants, read-only | nothing | stack | nothing | exit
 */
#ifndef CACHEGRAM_TESTS_ISA_H
#define CACHEGRAM_TESTS_ISA_H

#include <stdint.h>

#define ISA_MAGIC 0x31617369u
/* Far from libraries and so from the code cache (and in reach of 32-bit addresses), or near them. */
#define ISA_BASE_LOW 0x10000000ull
#define ISA_BASE_HIGH 0x7fffc0000000ull
#define ISA_CODE_MAX 0x2000000u
#define ISA_ARENA 0x2000000u
#define ISA_DATA 0x1000u
#define ISA_DATA_BYTES 0x2000u
#define ISA_CONST 0x3000u
#define ISA_CONST_BYTES 0x1000u
#define ISA_STACK 0x5000u
#define ISA_STACK_BYTES 0x1000u
#define ISA_EXIT 0x7000u /* holds the address that sequences jump to at their end */
#define ISA_ARENA_BYTES 0x8000u
/* The runner's thread-local bytes right below the FS base. */
#define ISA_TLS_BYTES 512u
/* Vector registers that start as small signed indices, of 4 and of 8 bytes; those of 8 are the odd ones. */
#define ISA_INDEX_REGISTERS 0x30303030u
#define ISA_INDEX_WIDE(n) ((n)&1)
#define ISA_IMAGES 16 /* sets of initial vector registers */

struct isa_header {
    uint32_t magic, count;
    uint64_t seed, base;
    uint64_t code_offset, code_bytes; /* whole pages */
};

struct isa_sequence {
    uint32_t start, end; /* of its code, from base; literals included */
    uint32_t image, pad; /* which vector registers it starts with; the first instruction is at `start` */
    uint64_t regs[16], flags;
};

/* A changed 8 bytes of memory after a sequence. */
struct isa_change {
    uint32_t offset; /* from the arena; thread-local bytes come after it */
    uint32_t pad;
    uint64_t value;
};

#define ISA_CHANGES 96
#define ISA_XSAVE_MAX 2752
struct isa_result {
    uint64_t regs[16];
    uint64_t flags, pc;
    uint64_t signal, code, address, error, trap; /* signal 0: it came to its end */
    uint64_t fs_base;
    uint64_t nchanges, more_changes; /* more: sum over what found no room below */
    struct isa_change change[ISA_CHANGES];
    uint8_t xsave[ISA_XSAVE_MAX];
};

/* A file of results: this, then the results of sequences first .. first + count - 1. */
struct isa_results {
    uint32_t magic, first, count, xsave_bytes;
    uint32_t component[10]; /* where each state component lies in the xsave area, 0: not there */
};

enum isa_rw { ISA_LOAD = 1, ISA_STORE = 2 };

/*
 * One reference. A file of them holds nothing else; in the oracle's, those of a sequence follow one of size 0
 * with the pc of its start, whose rw is not 0 if the sequence was left out.
 */
struct isa_ref {
    uint64_t address; /* relative to the FS base if fs */
    uint64_t mask;    /* which elements are touched; all ones: an ordinary reference */
    uint32_t pc;      /* from base */
    uint16_t size;    /* bytes of the whole operand, or of the one element of a gather */
    uint8_t rw;       /* one of enum isa_rw */
    uint8_t fs;
};

static inline uint64_t isa_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

#endif
