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

struct thread;

#pragma GCC visibility push(hidden)

/* rt_sigaction and sigaltstack by libc's syscall(); args are the call's. The first returns the kernel's
 * result; of the second, 0: the kernel is to be asked, it has the target's own. t NULL: the caller is not
 * followed. */
long interposed_sigaction(const uint64_t *args);
int interposed_sigaltstack(struct thread *t, uint64_t sp, const uint64_t *args, long *result);

#pragma GCC visibility pop
#endif
