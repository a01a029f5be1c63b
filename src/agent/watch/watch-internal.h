/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch-internal.h - the interfaces between the files of watching.
 *
 * From the lowest to the highest; each uses those before it:
 *
 *   time.c          the program's own CPU time
 *   call-notes.c    the threads, the lock, and which system calls may access which pages
 *   spare.c         mappings kept for unprotecting pages
 *   pages.c         the pages of watched lines and their protection; the final state of the lines
 *   call-tracker.c  several threads: notes the calls of each; starts, pauses and ends
 *   allowance.c     the CPU time that watching may take
 *   watch.c         questions to the collector; when pages are protected, and when all lines are censored
 *   faults.c        faults of protected pages, and the probe bursts after them
 *   threads.c       threads begin and end
 *
 * Functions called watch_* take the lock of call-notes.c where they need it; all others are called with the
 * lock held.
 */
#ifndef CACHEGRAM_AGENT_WATCH_INTERNAL_H
#define CACHEGRAM_AGENT_WATCH_INTERNAL_H

#include <stdint.h>
#include "agent/thread.h"
#include "agent/watch/watch.h"

#pragma GCC visibility push(hidden)

/* A page that has watched lines, or had some. */
struct page {
    uint64_t address;
    int protection;
    int is_protected;
    /* Since it was unprotected, other threads may have touched it unnoticed. At that moment: program CPU
     * time (0: there are no other threads), CPU time of the process and of the thread, and that thread's
     * id. */
    uint64_t accessible_ns, accessible_process_ns, accessible_thread_ns;
    uint32_t accessible_tid;
};

static inline int is_pending(const struct wire_watch *w)
{
    return __atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == WIRE_WATCH_PENDING;
}

/* Lengths come from the target: a 32-bit argument of a call may have anything in its upper half. */
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
extern unsigned npages, nprotected;
extern uint64_t protection_count;          /* pages protected so far; incremented before each */
struct page *find_page(uint64_t address);  /* NULL: none of the pages */
int page_is_pending(const struct page *p); /* a line of it is pending */
int unprotect_page(struct page *p);        /* 0: the page is not mapped any more, or not with these rights */
void unprotect_pages(void);
int unprotect_range(uint64_t address, uint64_t bytes); /* nonzero: something was protected */
void protect_pages(void); /* pages of pending lines, unless a thread or call needs them accessible */
/* Rebuilds the table of pages after an answer; new lines, survivors of t's burst, are pending from that
 * program CPU time on. */
void rebuild_pages(const struct thread *t, uint64_t app_cpu_ns);
/* Survivors of that thread, and lines of that page, have been pending for ns less than assumed. */
void postpone_lines(uint32_t tid, uint64_t page, uint64_t ns);
/* Sets the final state of each pending line in [low, high). */
void settle_range(uint64_t low, uint64_t high, enum wire_watch_state state);
/* Lines there were touched, so much CPU time ago (which went into profiling), after so many references in
 * translated code, by the instruction at pc (0: not known). */
void hit_range(uint64_t low, uint64_t high, uint64_t ago_ns, uint64_t translated_refs, uint64_t pc);
void censor_range(uint64_t low, uint64_t high); /* that memory cannot be watched */
void settle(struct wire_watch *w, enum wire_watch_state state);
void censor_all(void);
/* Changes of mappings, since what the collector sees of them while it answers may be out of date
 * afterwards. */
void mapping_changed(uint64_t low, uint64_t high);
void mappings_note_question(void);
/* From now on, threads' calls may not be diverted: an answer to a question asked before is out of date. */
void note_unnoticed_changes(void);

/* spare.c */
int spare_keep(unsigned n); /* nonzero: there are enough mappings to unprotect n pages */
/* That failed for this page, for want of mappings. Nonzero: it can be tried again. */
int spare_give_up(const void *page);

/* call-notes.c; see watch.h for the watch_* functions. */
extern struct thread *threads;      /* list of all threads */
extern unsigned nthreads, starting; /* their number; and threads being created */
extern int tracking;                /* 0: not yet, disabled, or pausing */
extern uint64_t tracker_epoch;      /* the current epoch of tracking, or the last one */
void watch_lock(void);
void watch_unlock(void);
int watch_holds_lock(void);            /* the calling thread holds it */
int threads_allow_protection(void);    /* nonzero: for each thread it is known what its call may access */
int page_in_use(const struct page *p); /* some thread's call or probe burst may access it */
void notes_forked(void);

/* call-tracker.c */
void censor_thread_memory(void); /* censors lines on threads' stacks, where the kernel may write */
/* It is outside of any call, except the one that it is about to make. */
void mark_quiescent(struct thread *t);
void set_selector(struct thread *t);
/* Whether the thread blocks signals of faults, by that mask. */
void note_blocked_faults(struct thread *t, uint64_t mask);
void tracker_start(struct thread *t);        /* called by t, outside of any call */
void tracker_burst_begins(struct thread *t); /* the same as its burst begins, unless the tracker pauses */
void tracker_pause(void); /* if no line is pending, since the tracker has a cost for every call */
int tracker_is_paused(void);
void tracker_shorten_pauses(void);
void tracker_forked(void);
void disable_watching(enum wire_unwatched why);
/* Calls divert_enable, and disable_watching if the kernel does not support it. */
int divert_calls(struct thread *t);
void unlink_thread(const struct thread *gone); /* removes it from the list */

/* allowance.c */
void reset_spending(void); /* at each question */

/* time.c */
uint64_t cpu_ns(void);                            /* of the thread */
uint64_t watch_thread_ns(const struct thread *t); /* without what profiling took */
/* ns of CPU time, perhaps negative, were not the program's own. */
void add_overhead(struct thread *t, uint64_t ns);
void charge_burst_end(struct thread *t);
void watch_time_forked(void);

#pragma GCC visibility pop
#endif
