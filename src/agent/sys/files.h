/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - files that the agent reads while the target runs.
 *
 * A descriptor is open for moments only, but another thread may fork meanwhile. So no fork through libc
 * begins while one is being opened or closed, and the child closes those that are open.
 */
#ifndef CACHEGRAM_AGENT_SYS_FILES_H
#define CACHEGRAM_AGENT_SYS_FILES_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

/* Opens a file for reading; the string must stay valid until own_close. A descriptor, or negative: it may
 * fail at any time. */
long own_open(const char *path);
long own_open_to_write(const char *path); /* and for reading */
void own_close(long fd);

/* The name of the descriptor's file, as the kernel writes it: its length, at most size, or negative. Without
 * a 0 at its end. */
long files_name(int fd, char *name, size_t size);

/* Before and after a fork through libc, in the parent. */
void files_fork_begins(void);
void files_fork_ends(void);

/* In a child: closes what the parent had open. sure: the target cannot have reused the numbers yet. */
void files_close_inherited(int sure);

#pragma GCC visibility pop
#endif
