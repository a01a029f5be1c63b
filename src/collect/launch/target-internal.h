/* SPDX-License-Identifier: Apache-2.0 */
/* target-internal.h - what the files of target.h share: target-process.c is at the bottom, target.c at the
 * top. */
#ifndef CACHEGRAM_TARGET_INTERNAL_H
#define CACHEGRAM_TARGET_INTERNAL_H

#include <sys/resource.h>

#include "collect/launch/target.h"

/* R, S, T (stopped by a signal), ... as in proc(5); 0 if there is no such thread. */
char target_thread_state(pid_t pid, pid_t tid);
/* Signals are read from t->signals from now on; target_give_signals_back: as before. */
void target_take_signals(struct target *t);
void target_give_signals_back(struct target *t);
/* A child's end, as wait4 told it. */
void target_note_end(struct target *t, int status, const struct rusage *usage);
/* 1 if it has ended; takes a child's status then. */
int target_see_end(struct target *t);
/* Waits for signals, or its end, till `until_ns`, and passes signals on. As target_wait; 0 at each signal. */
int target_wait_once(struct target *t, uint64_t until_ns);

/* target-hold.c: the first half of a start, for a child that waits to be allowed to execute its command. */
int target_hold_begin(struct target *t, struct error *err);
/* The second: it has executed it, and is stopped. 0, or -ECANCELED if it has ended instead. */
int target_hold_at_start(struct target *t);
/* In the guardian, after our death: a breakpoint of ours must not be left in it. */
void target_hold_rescue(pid_t pid);
/* Orders to the guardian. */
#define TARGET_RESCUE 'r' /* if we die, target_hold_rescue */
#define TARGET_FREE 'f'   /* not any more */

#endif
