/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - which process the caller is in. vfork, clone and _Fork create processes without the agent's
 * knowledge. They have its code, its handlers and perhaps its memory.
 */
#ifndef CACHEGRAM_AGENT_SYS_PROCESS_H
#define CACHEGRAM_AGENT_SYS_PROCESS_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

/* Nonzero: the caller is not in process `process_id`; *pid: its own number. */
int process_is_other(long *pid);
/* Nonzero: that, and its process has its own signal handlers. Its memory may be shared with its parent. */
int process_is_untracked(void);

/* As safe_copy, where the agent's handlers are not installed, so that a fault would reach the target: the
 * kernel copies. */
size_t process_copy(void *to, const void *from, size_t bytes);

/* Around libc's fork, of which the agent knows: whether the calling thread is in one. */
void process_fork_begins(void);
void process_fork_ends(void);
int process_forks(void);

#pragma GCC visibility pop
#endif
