/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch-internal.h - what the parts of watching tell each other.
 *
 * From the lowest to the highest; each uses those before it:
 *
 *   time.c          the program's own CPU time
 *   call-notes.c    the threads, the lock, whose system calls may touch which pages
 *   pages.c         the pages of watched lines: which there are, open and closed; the lines' fate
 *   call-tracker.c  several threads: notes each one's calls; when that begins, rests and ends
 *   allowance.c     the CPU time that watching may take
 *   watch.c         questions to the collector, when pages are closed and when all is given up
 *   faults.c        touches of closed pages, and the short bursts behind them
 *   threads.c       threads come and go
 *
 * Functions called watch_* take the lock of call-notes.c where they need it; all others are called with
 * it.
 */
#ifndef CACHEGRAM_AGENT_WATCH_INTERNAL_H
#define CACHEGRAM_AGENT_WATCH_INTERNAL_H

#include <stdint.h>
#include "agent/thread.h"
#include "agent/watch/watch.h"

#pragma GCC visibility push(hidden)

/* A page with watched lines, or that had some. */
struct page {
    uint64_t address;
    int protection;
    int closed;
    /* Other threads may touch it unseen since it was opened, at that own time (0: there are none), by a
     * thread with that id; and the process' and the thread's CPU time then. */
    uint64_t opened_ns, opened_process_ns, opened_thread_ns;
    uint32_t opened_by;
};

static inline int is_wanted(const struct wire_watch *w)
{
    return __atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == WIRE_WATCH_WANTED;
}

/* Lengths are the target's: a call's argument of 32 bits may have anything in its upper half. */
static inline uint64_t end_of(uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    return end < address ? UINT64_MAX : end;
}

static inline int page_overlaps(const struct page *p, uint64_t address, uint64_t bytes)
{
    return address < p->address + WIRE_PAGE && end_of(address, bytes) > p->address;
}

/* pages.c */
extern struct page pages[WIRE_MAX_WATCHES];
extern unsigned npages, nclosed;
extern uint64_t closings;                         /* pages closed so far; changes before one is */
struct page *find_page(uint64_t address);         /* NULL: none of them */
int page_is_wanted(const struct page *p);         /* a line of it is still waited for */
int open_page(struct page *p);                    /* 0: it is not there any more, or not as it was */
void open_pages(void);                            /* all of them */
int open_range(uint64_t address, uint64_t bytes); /* nonzero: something of it was closed */
void close_pages(void); /* those of wanted lines, where nothing and nobody keeps them open */
/* Those of the wanted lines, after the table has changed; new ones, of t's burst, wait since then. */
void list_pages(const struct thread *t, uint64_t own_ns);
/* Lines that the thread left behind, and those of the page, wait since so much later. */
void lines_wait(uint32_t tid, uint64_t page, uint64_t ns);
/* Every watched line in [low, high) has met its fate. */
void settle_range(uint64_t low, uint64_t high, enum wire_watch_state state);
/* Lines there were touched, so much CPU time ago that went into profiling, after so many references in
 * translated code. */
void hit_range(uint64_t low, uint64_t high, uint64_t ago_ns, uint64_t inside_refs);
void lose_range(uint64_t low, uint64_t high); /* that memory cannot be watched */
void settle(struct wire_watch *w, enum wire_watch_state state);
void lose_all(void);
/* What the collector sees of mappings while it answers may be out of date by then. */
void mapping_changes(uint64_t low, uint64_t high);
void mappings_are_asked_for(void);
void lose_changed(void); /* lines in what has changed since */

/* call-notes.c; what the watch_ functions do: watch.h */
extern struct thread *threads;      /* those that there are, a list */
extern unsigned nthreads, starting; /* of the list; and those that are being made */
extern int guarding;                /* 0: not yet, for good, or it rests */
extern uint64_t guard_number;       /* of the guard now, or of the last one */
void watch_lock(void);
void watch_unlock(void);
int watch_holds_lock(void);            /* this thread does */
int threads_let_close(void);           /* nonzero: what each thread's call may touch is known */
int page_in_use(const struct page *p); /* some thread's call, or short burst, may touch it */
void notes_forked(void);

/* call-tracker.c */
void settle_own_memory(void);   /* lines on threads' stacks, where the kernel may write, are given up */
void is_seen(struct thread *t); /* outside of any call but that which it makes now */
void set_selector(struct thread *t);
void guard_begins(struct thread *t);      /* t calls, outside of any call */
void guard_meets_burst(struct thread *t); /* likewise, as its burst begins, unless the guard rests */
void guard_ends(void);
void guard_rests(void); /* if no line is wanted: a guard costs something for every call */
int guard_rests_now(void);
void guard_is_worth_it(void);
void guard_forked(void);
void turn_off(enum wire_unwatched why);
/* divert_enable; if the kernel cannot, turn_off. */
int divert_calls(struct thread *t);
void unlink_thread(const struct thread *gone); /* takes it off the list */

/* allowance.c */
void spending_starts_anew(void); /* from question to question */

/* time.c */
uint64_t cpu_ns(void);                            /* of the thread */
void add_overhead(struct thread *t, uint64_t ns); /* CPU time that was not its own; ns may be negative */
void burst_is_over(struct thread *t);
void watch_time_forked(void);

#pragma GCC visibility pop
#endif
