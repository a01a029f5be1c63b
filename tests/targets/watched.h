/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watched.h - memory whose lines are survivors of bursts, so that their pages are closed now and then while
 * the program goes on; and a check that counts what went wrong instead of ending.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rounds.h"

enum { PAGE = 4096, PAGES = 64 };

static uint8_t *pool; /* PAGES whole pages of the heap */
static uint32_t dice = 12345;
static long wrong, checks;

static inline uint32_t roll(void)
{
    dice = dice * 1664525u + 1013904223u;
    return dice >> 8;
}

/* Touches a line of each page once, and then others for long enough that bursts come and go. */
static inline void churn(void)
{
    static uint32_t hot[1024];
    for (int i = 0; i < PAGES; i++)
        (void)*(volatile uint8_t *)&pool[i * PAGE + (int)(roll() % PAGE)];
    uint32_t h = roll();
    for (int i = 0; i < rounds_of_work(40000); i++) {
        hot[h & 1023] += (uint32_t)i;
        h = h * 69069 + hot[h >> 7 & 1023];
    }
}

static inline void make_pool(void)
{
    uint8_t *p = malloc((PAGES + 1) * PAGE);
    if (p == NULL)
        exit(99);
    pool = (uint8_t *)(((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    memset(pool, 1, PAGES * PAGE);
}

/* At most 3000 bytes somewhere in the last three quarters of a page, at a multiple of 16: the next page each
 * time, so that PAGES of them do not overlap. */
static inline void *place(size_t bytes)
{
    static unsigned next;
    return pool + next++ % PAGES * PAGE + PAGE / 4 + roll() % ((3 * PAGE / 4 - bytes) / 16) * 16;
}

#define CHECK(what)                                        \
    do {                                                   \
        checks++;                                          \
        if (!(what) && wrong++ < 20)                       \
            printf("line %d: %s (%m)\n", __LINE__, #what); \
    } while (0)

#endif
