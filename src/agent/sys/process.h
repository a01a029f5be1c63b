/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - whose process the caller is in. vfork, clone and _Fork make processes that the agent is not
 * told of: they have its code, its handlers and, perhaps, its memory.
 */
#ifndef CACHEGRAM_AGENT_SYS_PROCESS_H
#define CACHEGRAM_AGENT_SYS_PROCESS_H

#pragma GCC visibility push(hidden)

/* Nonzero: the caller is not in the process that the agent believes to be in; *pid: its own number. */
int process_is_other(long *pid);
/* Likewise, and that process has signal handlers of its own. Its memory may be its parent's. */
int process_is_untracked(void);

#pragma GCC visibility pop
#endif
