/* SPDX-License-Identifier: Apache-2.0 */
/* areas.h - the mappings of a process. */
#ifndef CACHEGRAM_AREAS_H
#define CACHEGRAM_AREAS_H

#include <stddef.h>
#include <stdint.h>
#include "collect/objects/vma.h"

struct areas {
    struct vmas *vmas; /* NULL: the process may not be inspected */
    uint32_t buffer;
    uint64_t refreshed_ns;
    uint64_t looked_ns; /* areas_look_again: when; 0: never */
    struct area **list; /* by start, without overlap */
    size_t n, capacity;
};

/* stack_top: an address on the main thread's stack. */
void areas_init(struct areas *a, uint32_t pid, uint64_t stack_top);
void areas_clear(struct areas *a);
/* From now on as if the process had ended. */
void areas_close(struct areas *a);
/* Reads all mappings. Again: if that was some time ago. */
void areas_look(struct areas *a);
void areas_look_again(struct areas *a);
/* A buffer follows, which ended then. */
void areas_buffer(struct areas *a, uint64_t end_ns);
/* The mapping at the address; NULL: unknown. */
const struct vma *areas_find(struct areas *a, uint64_t address);
/* Whether the first known mapping that ends above `low` ends at `high` or before. */
int areas_end_between(const struct areas *a, uint64_t low, uint64_t high);

#endif
