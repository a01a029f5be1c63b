/* SPDX-License-Identifier: Apache-2.0 */
/* stackdist-rare.c - what only few touches need: room for numbers, lines and stamps, and giving up the front.
 */
#include "sim/stackdist-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

#define MIN_NUMBERS 4096u

uint64_t stackdist_wanted_numbers(uint64_t tail_lines, uint64_t capacity)
{
    uint64_t wanted = 4 * tail_lines;

    if (wanted < capacity)
        wanted = capacity;
    if (wanted < MIN_NUMBERS)
        wanted = MIN_NUMBERS;
    return wanted < TAIL_MAX_NUMBERS ? wanted : TAIL_MAX_NUMBERS;
}

/* Renumbers the tail without gaps. */
int stackdist_renumber(struct stackdist *sd)
{
    uint64_t tail_lines = sd->lines - sd->front_count;
    uint64_t wanted = stackdist_wanted_numbers(tail_lines, sd->capacity);
    struct tail larger;

    if (tail_lines >= wanted)
        return -ENOMEM;
    if (wanted > sd->tail.limit && tail_init(&larger, wanted) < 0)
        return -ENOMEM;
    for (uint64_t i = 0; i < sd->capacity; i++) {
        struct entry *e = &sd->entries[i];
        if (e->last > sd->start && e->place != PLACE_FRONT)
            e->place = tail_below(&sd->tail, e->place);
    }
    if (wanted > sd->tail.limit) {
        tail_free(&sd->tail);
        sd->tail = larger;
    } else {
        tail_clear(&sd->tail);
    }
    tail_fill(&sd->tail, (uint32_t)tail_lines);
    return 0;
}

/* Makes the hash table half as large again. */
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
    /* Entries are in the order of their homes, nearly: the new table comes into use as the old one goes. */
    for (uint64_t i = 0; i < old_capacity; i++) {
        if (old[i].last > sd->start)
            entries[find_entry(sd, old[i].line, hash_line(old[i].line))] = old[i];
        if (i % 65536 == 0)
            pages_shrink(old, old_capacity * sizeof *old, i * sizeof *old, &given);
    }
    for (unsigned slot = 0; slot < FRONT_LINES; slot++)
        if (sd->slot[slot].line != NO_LINE)
            sd->slot[slot].at = find_entry(sd, sd->slot[slot].line, hash_line(sd->slot[slot].line));
    pages_free(old, old_capacity * sizeof *old);
    return 0;
}

/* Stamps without gaps, the latest FRONT_LINES; the order stays. */
void stackdist_restamp(struct stackdist *sd)
{
    struct front_stamps old = sd->stamps;

    for (unsigned slot = 0; slot < FRONT_LINES; slot++) {
        int16_t stamp = sd->slot[slot].stamp, newer = 0;
        if (sd->slot[slot].line == NO_LINE)
            continue;
        for (unsigned i = 0; i < FRONT_NEAR; i++)
            newer = (int16_t)(newer + (old.near[i] > stamp));
        for (unsigned i = 0; i < FRONT_FAR; i++)
            newer = (int16_t)(newer + (old.far[i] > stamp));
        stamp = (int16_t)(FRONT_LINES - (unsigned)newer);
        sd->slot[slot].stamp = stamp;
        if (slot < FRONT_NEAR)
            sd->stamps.near[slot] = stamp;
        else
            sd->stamps.far[slot - FRONT_NEAR] = stamp;
    }
    sd->tick = FRONT_LINES;
}

unsigned stackdist_slots_oldest_first(const struct stackdist *sd, unsigned *out)
{
    unsigned count = 0;

    for (unsigned slot = 0; slot < FRONT_LINES; slot++) {
        if (sd->slot[slot].line == NO_LINE)
            continue;
        unsigned i = count++;
        for (; i > 0 && sd->slot[out[i - 1]].stamp > sd->slot[slot].stamp; i--)
            out[i] = out[i - 1];
        out[i] = slot;
    }
    return count;
}

void stackdist_clear_front(struct stackdist *sd)
{
    memset(&sd->stamps, 0, sizeof sd->stamps);
    for (uint32_t slot = 0; slot < FRONT_LINES; slot++)
        sd->slot[slot].line = NO_LINE;
    sd->front_count = 0;
    sd->tick = 0;
    sd->plain = false;
}

void stackdist_leave_front(struct stackdist *sd)
{
    unsigned by_age[FRONT_LINES];

    if (sd->tail.limit - sd->tail.next < sd->front_count && stackdist_renumber(sd) < 0)
        return;
    if (sd->tail.limit - sd->tail.next < sd->front_count)
        return;
    unsigned count = stackdist_slots_oldest_first(sd, by_age);
    for (unsigned i = 0; i < count; i++) {
        const struct slot *slot = &sd->slot[by_age[i]];
        sd->entries[slot->at].last = slot->last;
        sd->entries[slot->at].place = tail_give(&sd->tail);
    }
    stackdist_clear_front(sd);
    sd->plain = true;
}

unsigned stackdist_slot_of(const struct stackdist *sd, uint64_t line)
{
    unsigned slot = 0;

    while (sd->slot[slot].line != line) {
        slot++;
        assert(slot < FRONT_LINES);
    }
    return slot;
}
