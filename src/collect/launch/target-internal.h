/* SPDX-License-Identifier: Apache-2.0 */
/* target-internal.h - what the files of target.h share. Lowest: target-process.c; highest: target.c. */
#ifndef CACHEGRAM_TARGET_INTERNAL_H
#define CACHEGRAM_TARGET_INTERNAL_H

#include <sys/resource.h>

#include "collect/launch/target.h"

/* State letter as in proc(5): R, S, T (stopped by a signal), ...; 0 if there is no such thread. */
char target_thread_state(pid_t pid, pid_t tid);
/* From now on signals are read from t->signals; target_restore_signals undoes this. */
void target_block_signals(struct target *t);
void target_restore_signals(struct target *t);
/* Stores how a child ended, as wait4 returned it. */
void target_note_end(struct target *t, int status, const struct rusage *usage);
/* 1 if it has ended; reaps a child then. */
int target_reap(struct target *t);
/* Waits until `until_ns` for signals or its end, and passes signals on. As target_wait; 0 at each signal. */
int target_wait_once(struct target *t, uint64_t until_ns);

/* target-hold.c: first part of a start, for a child that waits for permission to execute its command. */
int target_hold_begin(struct target *t, struct error *err);
/* Second part: it has executed the command and is stopped. 0, or -ECANCELED if it has ended. */
int target_hold_at_start(struct target *t);
/* In the guardian, after our death: removes our breakpoint. */
void target_hold_rescue(pid_t pid);
/* Orders to the guardian. */
#define TARGET_RESCUE 'r' /* if we die, call target_hold_rescue */
#define TARGET_FREE 'f'   /* no longer */

#endif
