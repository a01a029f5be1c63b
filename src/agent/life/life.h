/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life.h - how processes and threads come to be profiled, and cease to be.
 *
 * A thread is attached and detached here, part by part, in the order that they need. Children of libc's fork
 * are followed; others find out by themselves that they are not (children.c). The agent goes for good before
 * the target forbids itself what it needs (shutdown.c), and programs that are executed after that run without
 * it (hide-session.c).
 */
#ifndef CACHEGRAM_AGENT_LIFE_H
#define CACHEGRAM_AGENT_LIFE_H

#include <stddef.h>
#include <stdint.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

struct thread;

/* Native for good, and the target's signals the kernel's business again. */
void agent_shutdown(enum wire_disabled why);
/* What the process executes from now on inherits a filter: it goes without the agent. */
void agent_filter_installed(void);

int surroundings_other_pid_namespace(void); /* process numbers mean others here than to the collector */
int surroundings_has_go(
    void); /* a Go runtime is there; asked again, it looks only if there are new modules */
enum wire_disabled surroundings_unsupported(void); /* WIRE_OFF_NOT: nothing does */

void children_init(void);
void child_is_followed(void);  /* from now on it is what process_id says */
void child_not_followed(void); /* it is not to be followed */
/* Nonzero if such a one has memory of its own; then it is child_not_followed, once. Not in handlers of ours.
 */
int child_detach_copy(void);
void fork_in_child(void); /* in a child that libc made */

/* Threads. */
int threads_init(void);
/* A structure for a thread that is about to be attached; NULL: no memory. */
struct thread *thread_make(void);
int thread_attach(struct thread *t); /* called by the thread itself */
void thread_detach(struct thread *t);
void threads_forked(void); /* forget all but the caller */
/* The first thing that a new thread does: it is attached, unless the agent is off. Returns its argument. */
struct thread *thread_begins(void *thread);
/* No thread is interrupted any more. Nonzero: nor is one of the others in a burst, or in a call that ends in
 * a fault of ours. agent_off is set. *quiesced: 0 if nobody can say that none is interrupted, the collector
 * being stopped. */
int threads_retire(int *quiesced);
/* Once bursts are forbidden, and nothing is watched: nonzero if no thread is in one, or in a call that ends
 * in a fault of ours, not at once, but soon. */
int threads_await_native(void);
struct thread *
thread_self_by_key(void); /* as thread_self, without a system call, and wrong in a vfork child */

/* From now on the agent is not to come to life in what the process executes; or in what this vfork child
 * does. */
void exec_hide_session(int vfork_child);
int exec_session_hidden(void);
/* An environment without the session; room for it: as many as exec_environment_count says. */
char *const *exec_filter_environment(char *const *envp, char **room, size_t count);
size_t
exec_environment_count(char *const *envp); /* with the NULL at its end; 0: there is none that can be read */

#pragma GCC visibility pop
#endif
