/* SPDX-License-Identifier: Apache-2.0 */
/* stackdist-rare.c - operations that few touches need: more numbers, a larger table. */
#include "sim/stackdist-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

/* 48 KB of bits and counts. With a quarter of that, renumbering took 3% of the time (perl, sqlite3). */
#define MIN_NUMBERS 262144u

uint64_t stackdist_wanted_numbers(uint64_t lines, uint64_t capacity)
{
    uint64_t wanted = 8 * lines;

    if (wanted < capacity)
        wanted = capacity;
    if (wanted < MIN_NUMBERS)
        wanted = MIN_NUMBERS;
    return wanted < TAIL_MAX_NUMBERS ? wanted : TAIL_MAX_NUMBERS;
}

uint64_t stackdist_older(const struct stackdist *sd, uint32_t number)
{
    uint32_t word = number / 64;

    if (word < sd->open)
        return tail_below(&sd->tail, number);
    uint64_t to_come = (64 - sd->next % 64) % 64;
    return sd->lines - 1 - (recent_newer(sd, sd->later.of[word - sd->open], number) - to_come);
}

/* Renumbers the lines without gaps. */
static int renumber(struct stackdist *sd)
{
    uint64_t wanted = stackdist_wanted_numbers(sd->lines, sd->capacity);
    struct tail larger;

    if (sd->lines + 64 > wanted)
        return -ENOMEM;
    if (wanted > sd->tail.limit && tail_init(&larger, wanted) < 0)
        return -ENOMEM;
    for (uint64_t i = 0; i < sd->capacity; i++) {
        struct entry *e = &sd->entries[i];
        if (e->last > sd->start)
            e->number = (uint32_t)stackdist_older(sd, e->number);
    }
    if (wanted > sd->tail.limit) {
        tail_free(&sd->tail);
        sd->tail = larger;
    }
    tail_fill(&sd->tail, (uint32_t)sd->lines);
    sd->open = (uint32_t)((sd->lines + 63) / 64);
    sd->next = 64 * sd->open;
    memset(&sd->later, 0, sizeof sd->later);
    return 0;
}

int stackdist_open_word(struct stackdist *sd)
{
    if (sd->next == sd->tail.limit && renumber(sd) < 0)
        return -ENOMEM;
    uint32_t word = sd->next / 64;
    if (word - sd->open == RECENT_WORDS) {
        tail_open(&sd->tail, sd->open++);
        memmove(sd->later.of, sd->later.of + 1, (RECENT_WORDS - 1) * sizeof sd->later.of[0]);
        sd->later.of[RECENT_WORDS - 1] = 0;
    }
    for (uint32_t i = 0; i < word - sd->open; i++)
        sd->later.of[i] = (int16_t)(sd->later.of[i] + 64);
    sd->tail.bits[word] = UINT64_MAX; /* future numbers: a touch has no bit to set then */
    return 0;
}

/* Makes the hash table larger by half. */
int stackdist_grow_table(struct stackdist *sd)
{
    uint64_t capacity = sd->capacity + sd->capacity / 2;
    struct entry *entries = pages_new(capacity * sizeof *entries);
    size_t given = 0;

    if (!entries)
        return -ENOMEM;
    struct entry *old = sd->entries;
    uint64_t old_capacity = sd->capacity;
    sd->entries = entries;
    sd->capacity = capacity;
    /*
     * Entries are nearly in the order of their homes: memory of the old table is freed as the new one fills.
     */
    for (uint64_t i = 0; i < old_capacity; i++) {
        if (old[i].last > sd->start)
            entries[find_entry(sd, old[i].line, hash_line(old[i].line))] = old[i];
        if (i % 65536 == 0)
            pages_shrink(old, old_capacity * sizeof *old, i * sizeof *old, &given);
    }
    pages_free(old, old_capacity * sizeof *old);
    return 0;
}
