/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - what the parts of watching tell each other.
 *
 *   watch.c        questions to the collector, when pages are closed and when all is given up
 *   watch-pages.c  the pages of watched lines: which there are, open and closed; the lines' fate
 *   watch-faults.c touches of closed pages, and the short bursts behind them
 *   watch-time.c   the program's own CPU time, and what watching takes of it
 */
#ifndef CACHEGRAM_AGENT_WATCH_H
#define CACHEGRAM_AGENT_WATCH_H

#include <stdint.h>
#include "agent/agent.h"

#pragma GCC visibility push(hidden)

/* A page with watched lines, or that had some. */
struct page {
    uint64_t address;
    int protection;
    int closed;
};

static inline struct wire_watching *watching(void)
{
    return &proc->watching;
}

static inline int is_wanted(const struct wire_watch *w)
{
    return __atomic_load_n(&w->state, __ATOMIC_RELAXED) == WIRE_WATCH_WANTED;
}

/* watch-pages.c */
extern struct page pages[WIRE_MAX_WATCHES];
extern unsigned npages, nclosed;
struct page *find_page(uint64_t address); /* NULL: none of them */
int page_is_wanted(const struct page *p); /* a line of it is still waited for */
int open_page(struct page *p);            /* 0: it is not there any more, or not as it was */
void close_page(struct page *p);
void list_pages(void); /* those of the wanted lines, after the table has changed; none is closed */
void open_pages(void); /* all of them */
void hit(struct wire_watch *w);
/* Every watched line in [low, high) has met its fate. */
void settle_range(uint64_t low, uint64_t high, enum wire_watch_state state);
void settle(struct wire_watch *w, enum wire_watch_state state);
void lose_all(void);

/* watch-time.c */
uint64_t cpu_ns(void); /* of the thread */
void burst_is_over(void);
void spending_starts_anew(void); /* from question to question */
void watch_time_forked(void);

#pragma GCC visibility pop
#endif
