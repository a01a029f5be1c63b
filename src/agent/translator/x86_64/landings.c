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

static uint64_t *entry(uint64_t pc, int is_return)
{
    return tables + (is_return ? TABLE_SIZE : 0) + (pc & (TABLE_SIZE - 1));
}

int landings_make(void)
{
    if (tables)
        return 0;
    tables = own_map(NULL, TABLES_BYTES, OWN_SHARED);
    if (!tables)
        return -1;
    for (uint32_t i = 0; i < 2 * TABLE_SIZE; i++)
        tables[i] = (uint64_t)landings_miss[i / TABLE_SIZE];
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
    return tables ? TABLES_BYTES : 0;
}

void landings_forked(void)
{
    if (tables)
        own_unmap(tables, TABLES_BYTES);
    tables = NULL;
}

void landings_set(uint64_t pc, int is_return, const uint8_t *landing)
{
    __atomic_store_n(entry(pc, is_return), (uint64_t)landing, __ATOMIC_RELEASE);
}

void landings_clear(uint64_t pc, int is_return)
{
    if (tables)
        *entry(pc, is_return) = (uint64_t)landings_miss[is_return];
}
