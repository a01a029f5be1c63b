/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpose.h - the functions that the target calls in place of libc's, and what they share.
 *
 * Each behaves as libc's function does, including errors and side effects, with bad arguments, too. These
 * functions run as the target's own code: natively, or in translated code, where their references are not
 * recorded. A signal may interrupt them anywhere, and its handler may jump out of them. So they hold no lock
 * or other state of the agent while they access the target's memory.
 */
#ifndef CACHEGRAM_AGENT_INTERPOSE_H
#define CACHEGRAM_AGENT_INTERPOSE_H

#include <alloca.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/thread.h"

struct thread;

#pragma GCC visibility push(hidden)

/* rt_sigaction and sigaltstack called through libc's syscall(); args are the call's. The first returns the
 * kernel's result. The second returns 0 if the kernel must make the call, since it has the target's own
 * stack; t NULL: the caller is not followed. */
long interposed_sigaction(const uint64_t *args);
int interposed_sigaltstack(struct thread *t, uint64_t sp, const uint64_t *args, long *result);

/* Executing programs (exec.c). */
void exec_init(void);
void calls_find_next(void); /* looks up libc's own functions */
/* The target is about to make a mapping with MAP_GROWSDOWN: if no page is protected at the moment, its call
 * is not diverted. */
void calls_mapping_grows(void);
void threads_find_next(void);
/* The allocation functions (heap.c): blocks are reported from heap_init on; in a forked child. */
void heap_find_next(void);
void heap_init(void);
void heap_forked(int followed);
/* Makes a system call for the target. */
typedef long (*call_maker)(long number, const long *a);
/* process_vm_readv or process_vm_writev, as if no page of another profiled process were protected. */
long other_memory_call(call_maker make, long number, const long *a);
/* Replaces envp with a copy on the caller's stack, if the program must run without the agent. */
#define EXEC_FILTER_ENVIRONMENT(envp, ...)                                                                 \
    do {                                                                                                   \
        size_t count = exec_filters((struct program)__VA_ARGS__, envp) ? exec_environment_count(envp) : 0; \
        if (count) {                                                                                       \
            char **room = alloca(count * sizeof *room);                                                    \
            (envp) = exec_filter_environment((envp), room, count, alloca(EXEC_TEXT));                      \
        }                                                                                                  \
    } while (0)
/* Announces a program to the collector, which recognises those that the agent cannot be loaded into, and
 * those whose environment lacks it; and the signal mask to the next agent of the process. The pointers are
 * the target's; path: NULL: by a descriptor. exec_hidden_signals: the hidden signals that were announced for
 * this process; for its start, once. */
void exec_announce(const char *path, char *const *envp);
uint64_t exec_hidden_signals(void);
/* Called by a thread right before it executes a program: waits until the collector has no event half open on
 * it (thread_exec_begins), and prepares the signals. exec_failed undoes that. What has to be undone is kept
 * in the structure of a followed thread, else in *e. */
void exec_begins(struct executing *e);
void exec_failed(struct executing *e);
void exec_undo(struct thread *t); /* undoes it early: libc's function may be left by a jump */

#pragma GCC visibility pop
#endif
