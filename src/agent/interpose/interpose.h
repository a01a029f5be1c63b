/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpose.h - the functions that the target calls in place of libc's, and what they share.
 *
 * Each behaves as libc's function does, errors and side effects included, also with bad arguments. They run
 * as the target's own code: natively, or in translated code, where their references are not recorded. So they
 * may be interrupted anywhere, and left by a jump out of a signal handler: nothing of the agent's is held
 * while memory of the target's is read or written.
 */
#ifndef CACHEGRAM_AGENT_INTERPOSE_H
#define CACHEGRAM_AGENT_INTERPOSE_H

#include <alloca.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/thread.h"

struct thread;

#pragma GCC visibility push(hidden)

/* rt_sigaction and sigaltstack by libc's syscall(); args are the call's. The first returns the kernel's
 * result; of the second, 0: the kernel is to be asked, it has the target's own. t NULL: the caller is not
 * followed. */
long interposed_sigaction(const uint64_t *args);
int interposed_sigaltstack(struct thread *t, uint64_t sp, const uint64_t *args, long *result);

/* Programs that are executed (exec.c). */
void exec_init(void);
void calls_find_next(void); /* libc's functions behind those that are interposed */
void threads_find_next(void);
/* For the caller, right before it executes another program, for which thread_exec_begins waits; and if that
 * fails. Of a followed thread, what was done is kept in its structure. */
/* Replaces envp, on the caller's stack, where what is executed is not to be profiled. */
#define EXEC_FILTER_ENVIRONMENT(envp)                                            \
    do {                                                                         \
        size_t count = exec_session_hidden() ? exec_environment_count(envp) : 0; \
        if (count) {                                                             \
            char **room = alloca(count * sizeof *room);                          \
            (envp) = exec_filter_environment((envp), room, count);               \
        }                                                                        \
    } while (0)
void exec_announce(const char *path); /* what is about to be executed; a pointer of the target's */
void exec_begins(struct executing *e);
void exec_failed(struct executing *e);
void exec_undo(struct thread *t); /* libc's function that would execute it may be left by a jump */

#pragma GCC visibility pop
#endif
