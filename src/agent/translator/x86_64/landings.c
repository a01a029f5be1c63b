/* SPDX-License-Identifier: Apache-2.0 */
/* See landings.h. */
#include "agent/sys/own.h"
#include "agent/translator/x86_64/landings.h"

#define TABLE_SIZE (1u << COUNT_TABLE_BITS)
#define TABLES_BYTES (2 * sizeof(uint64_t) * TABLE_SIZE)

uint8_t *landings_miss[2];

/* The table of jumps, then that of returns. NULL: not made yet in this process. */
static uint64_t *tables;
static uint32_t made; /* number of times that they were made */
/* So many low bits of an address are the index: the first entries of both tables are in use. */
static unsigned bits = COUNT_TABLE_FIRST_BITS;
static uint32_t collisions; /* entries that another address took, since there were so many bits */

static uint64_t *entry(uint64_t pc, int is_return)
{
    return tables + (is_return ? TABLE_SIZE : 0) + (pc & ((UINT64_C(1) << bits) - 1));
}

static void clear(void)
{
    for (unsigned is_return = 0; is_return < 2; is_return++)
        for (uint64_t i = 0; i < UINT64_C(1) << bits; i++)
            __atomic_store_n(entry(i, (int)is_return), (uint64_t)landings_miss[is_return], __ATOMIC_RELAXED);
    collisions = 0;
}

int landings_make(void)
{
    if (tables)
        return 0;
    tables = own_map(NULL, TABLES_BYTES, OWN_SHARED);
    if (!tables)
        return -1;
    clear();
    made++;
    return 0;
}

int landings_map(struct thread *t)
{
    if (t->translation.has_tables == made)
        return 0;
    if (own_map_again(tables, TABLES_BYTES, t->tables.jumps))
        return -1;
    t->translation.has_tables = made;
    return 0;
}

uint64_t landings_bytes(void)
{
    return tables ? (2 * sizeof(uint64_t)) << bits : 0;
}

void landings_forked(void)
{
    if (tables)
        own_unmap(tables, TABLES_BYTES);
    tables = NULL;
    bits = COUNT_TABLE_FIRST_BITS;
    collisions = 0;
}

unsigned landings_bits(void)
{
    return bits;
}

int landings_are_crowded(void)
{
    return tables && collisions >= COUNT_TABLE_COLLISIONS && bits < COUNT_TABLE_BITS;
}

void landings_flushed(void)
{
    if (!landings_are_crowded())
        return;
    bits = COUNT_TABLE_BITS;
    clear();
}

void landings_set(uint64_t pc, int is_return, const uint8_t *landing)
{
    uint64_t *at = entry(pc, is_return);
    collisions += *at != (uint64_t)landings_miss[is_return] && *at != (uint64_t)landing;
    __atomic_store_n(at, (uint64_t)landing, __ATOMIC_RELEASE);
}

void landings_clear(uint64_t pc, int is_return)
{
    if (tables)
        *entry(pc, is_return) = (uint64_t)landings_miss[is_return];
}
