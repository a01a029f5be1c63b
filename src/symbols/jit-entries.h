/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-entries.h - functions that a JIT compiler made: where their code was, from when on, and its lines.
 *
 * Code may be made at a place where other code was before. Each function has the time at which it was made,
 * as far as that is known, and names its place until the next one is made there.
 */
#ifndef CACHEGRAM_SYMBOLS_JIT_ENTRIES_H
#define CACHEGRAM_SYMBOLS_JIT_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

struct jit_line {
    uint32_t offset, line;
    const char *file;
};

struct jit_entry {
    uint64_t low, high;           /* addresses */
    uint64_t from_ns;             /* CLOCK_MONOTONIC, when it was made; 0: not known, before all others */
    const char *name;             /* kept by the entries, as are the lines */
    const struct jit_line *lines; /* by offset; jit_entries_shift is added to offsets of the code */
    size_t nlines;
    uint64_t highest; /* set by jit_entries_sort */
    uint32_t order;   /* of entries of the same time the last one counts; set by jit_entries_add */
};

struct jit_entries;

/* NULL when memory is short. */
struct jit_entries *jit_entries_new(void);
void jit_entries_free(struct jit_entries *e); /* NULL is allowed */
/* Memory of `size` bytes that lives as long as the entries. NULL: memory is short, or they have as much as
 * they may have. */
void *jit_entries_keep(struct jit_entries *e, size_t size);
/* Adds an entry, unless it is empty or there are too many. 0, or -ENOMEM. */
int jit_entries_add(struct jit_entries *e, struct jit_entry entry);
/* The entry that was added as number i, from 0; before they are sorted. NULL: there is none. */
const struct jit_entry *jit_entries_added(const struct jit_entries *e, size_t i);
size_t jit_entries_count(const struct jit_entries *e);
/* Forgets all times: the order counts. Before they are sorted. */
void jit_entries_without_times(struct jit_entries *e);
/* Offsets of lines are so much larger than those of the code. */
void jit_entries_shift(struct jit_entries *e, uint32_t bytes);
/* To be called after the last entry was added, before those below. */
void jit_entries_sort(struct jit_entries *e);

/*
 * What was made at an address, as numbers of entries in the order of time: each names the code there from its
 * own time to that of the next one. Returns how many; *list is valid until the next call.
 */
size_t jit_entries_at(struct jit_entries *e, uint64_t address, const uint32_t **list);
/* Of such a list, what was there for most of a time; if it was made only after that, the first one. n > 0. */
uint32_t jit_entries_during(const struct jit_entries *e, const uint32_t *list, size_t n, uint64_t from_ns,
                            uint64_t until_ns);
/* Likewise, but its place in the list. */
size_t jit_entries_during_at(const struct jit_entries *e, const uint32_t *list, size_t n, uint64_t from_ns,
                             uint64_t until_ns);
/* Whether the address is in that entry's code. */
int jit_entries_has(const struct jit_entries *e, uint32_t number, uint64_t address);
const char *jit_entries_name(const struct jit_entries *e, uint32_t number);
/* Line of the code of that entry at an address, and its file; 0: not known. */
uint32_t jit_entries_line(const struct jit_entries *e, uint32_t number, uint64_t address, const char **file);

#endif
