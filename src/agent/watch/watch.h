/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - lines whose next touch is waited for after a burst, by taking all access to their pages away.
 *
 * A fault on a protected page is the touch that was waited for, or one of a neighbour: then the page is
 * opened for a probe burst, and protected again. With several threads, calls of all of them are diverted, and
 * each says before it what memory the kernel may touch for it. watch.c opens with how that fits together.
 */
#ifndef CACHEGRAM_AGENT_WATCH_H
#define CACHEGRAM_AGENT_WATCH_H

#include <stdint.h>
#include <ucontext.h>
#include "agent/sys/session.h"
#include "agent/thread.h"

#pragma GCC visibility push(hidden)

static inline struct wire_watching *watching(void)
{
    return &proc->watching;
}

int watch_used(void);        /* this process is watched */
int watch_many(void);        /* there are several threads, or will be in a moment */
uint64_t watch_own_ns(void); /* the process' CPU time, less what profiling took of it */
/* Likewise, but as if the thread's burst that ends now had not been, from watch_burst_begins on. */
uint64_t watch_burst_own_ns(const struct thread *t);
/* References of the process that went through counting code and short bursts, whose time is none of these. */
uint64_t watch_inside_refs(void);
void watch_burst_begins(struct thread *t); /* from here to watch_ask, CPU time is not the program's own */
void watch_burst_so_far(struct thread *t); /* takes what has been of it off watch_own_ns already */
int watch_calls_last(const struct thread *self); /* another thread's call may yet end in a fault of ours */
int watch_was_in_fault(const struct thread *t);  /* until right now, where signals had to wait */
int watch_closed(void);                          /* some page is closed */
void watch_enters(struct thread *t);             /* the code cache, for the collector */
void watch_leaves(struct thread *t);             /* it, in any case */
/* Before a burst's buffer is handed over: the number to hand over with it, 0: nothing is asked. */
uint32_t watch_asks(struct thread *t, uint64_t number);
void watch_ask(struct thread *t, uint32_t asks); /* behind it: waits for the answer, closes pages */
void watch_pause(struct thread *t);              /* opens all pages, until the next answer */
/* Closes them again; mask: the target's. 0: that cannot be, and all lines were dropped. */
int watch_close(struct thread *t, uint64_t mask);
void watch_drop(struct thread *t);                         /* opens all pages, gives up all lines */
void watch_off(struct thread *t, enum wire_unwatched why); /* for good */
/* A signal frame is about to be put there: open, and never closed again. */
void watch_avoid(uint64_t low, uint64_t high);
/* The target changes its mapping there; gone: what was there is not there afterwards. */
void watch_unmapped(uint64_t address, uint64_t bytes, int gone);
/* Outside of handlers, around anything that changes pages or lines: no signal comes in but faults. NULL: not
 * followed, nothing is done. Not nested. */
void watch_quiet(struct thread *t);
void watch_quiet_end(struct thread *t);
void watch_quiet_native(struct thread *t); /* watch_quiet, and not in a burst; not NULL */
/* Around a system call that the agent makes for the target, with pointers of the target's. */
void watch_hold(struct thread *t);
void watch_release(struct thread *t);
/* Nonzero: the thread met a fault with the lock of watching in its hands, which is released, and all pages
 * are open. What is touched then is the agent's: somebody took memory away that he did not map. */
int watch_faulted(void);
/* A fault at that address; uc NULL: in code of ours. Nonzero: the page was closed, and is open now. */
int watch_fault(struct thread *t, uint64_t address, int write, ucontext_t *uc);
void watch_mini_end(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns);
void watch_spend(struct thread *t, uint64_t ns); /* CPU time of its that watching took */
void watch_forked(void);
/* Threads. A handler has interrupted it in the target's code, with that mask. */
void watch_seen(struct thread *t, uint64_t mask);
void watch_diverted(struct thread *t); /* one came to us, and so its mask is known */
/* A call of the thread's begins that may touch that (NULL: anything); nonzero: pages were opened for it. */
int watch_call_begins(struct thread *t, enum watch_call how, const struct memory *m);
/* The call, which is made here or from the code cache, changes the mappings there. */
void watch_change_begins(struct thread *t, const struct memory *m);
void watch_call_ends(struct thread *t);
void watch_lets_through(struct thread *t); /* it makes a call by itself, with all pages open */
void watch_was_let_through(struct thread *t);
/* `self` (NULL: not followed) is about to make a thread, whose structure is t; and has, or has failed to. */
void watch_starts(struct thread *self, struct thread *t, uint64_t stack_bytes);
void watch_started(struct thread *self, struct thread *t, int failed);
void watch_attached(struct thread *t);     /* called by the new thread */
void watch_not_attached(struct thread *t); /* instead: it goes unprofiled after all */
int watch_detached(struct thread *t); /* by one that will end; nonzero: watch_reap forgets it, once it has */
void watch_exits(struct thread *t);   /* it is about to call exit */
void watch_reap(void);                /* forgets threads that have ended */

/* touched.c: what a short burst's records tell. */
struct touched {
    uint64_t found;        /* which of the lines their instructions touched: bit i is lines[i] */
    uint64_t refs, before; /* references that they made; and of these, before the first of the lines */
};
/* lines: addresses; n <= 64. */
struct touched records_touched(const uint64_t *words, const uint64_t *end, uint32_t last_insns,
                               const uint64_t *lines, unsigned n);

#pragma GCC visibility pop
#endif
