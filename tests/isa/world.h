/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - what a sequence finds when it starts: its code, memory, and vector registers. */
#ifndef CACHEGRAM_TESTS_WORLD_H
#define CACHEGRAM_TESTS_WORLD_H

#include <stdint.h>
#include "isa.h"
#include "oracle.h"

struct world {
    struct isa_header header;
    const struct isa_sequence *sequences; /* header.count of them */
    struct oracle_layout layout;
    uint64_t xsave_mask; /* state components that are used */
    uint32_t xsave_bytes;
    uint64_t fs_base;
    uint8_t images[ISA_IMAGES][ISA_XSAVE_MAX] __attribute__((aligned(64)));
};
extern struct world world;
/* The vector registers of a program that has not used them. */
extern uint8_t isa_clean[ISA_XSAVE_MAX];

/* Says so and ends the program. */
_Noreturn void world_fail(const char *what);
/* Maps a file of sequences; in_memory: copies their code instead, as programs do that make code. First of
 * all. */
void world_map_code(const char *path, int in_memory);
/* Sequences jump to exit_address at their end. */
void world_make_memory(uint64_t exit_address);
void world_make_images(void);
/* Lists what a sequence changed in memory, and undoes it. */
void world_list_changes(struct isa_result *r);

#endif
