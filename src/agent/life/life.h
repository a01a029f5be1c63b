/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life.h - how processes and threads start to be profiled, and stop.
 *
 * A thread is attached and detached here, part by part, in the required order. Children of libc's fork are
 * followed; other children detect by themselves that they are not (children.c). The agent ends permanently
 * before the target forbids the system calls that it needs (shutdown.c), and does not start in programs that
 * are executed after that (hide-session.c).
 */
#ifndef CACHEGRAM_AGENT_LIFE_H
#define CACHEGRAM_AGENT_LIFE_H

#include <stddef.h>
#include <stdint.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

struct thread;

/* The process is native from now on, and the kernel has the target's own signal state. */
void agent_shutdown(enum wire_disabled why);
/* Programs that the process executes from now on inherit a filter: they run without the agent. */
void agent_filter_installed(void);

int surroundings_other_pid_namespace(void); /* this process is in another PID namespace than the collector */
/* A Go runtime is loaded; a repeated call only searches if there are new modules. */
int surroundings_has_go(void);
/* Around libc's fork: no other thread is in surroundings_has_go meanwhile. */
void surroundings_fork_begins(void);
void surroundings_fork_ends(void);
/* Instead of the latter in the child; had_threads: its parent had several, once. */
void surroundings_forked(int had_threads);
/* Why the process cannot be profiled; WIRE_OFF_NOT: it can. */
enum wire_disabled surroundings_unsupported(void);

void children_init(void);
void child_is_followed(void);  /* this child is followed */
void child_not_followed(void); /* this child is not followed */
/* If the caller is in a child that was made without the agent's knowledge and has its own memory: calls
 * child_not_followed, once, and returns nonzero from then on. Must not be called in the agent's signal
 * handlers. */
int child_detach_copy(void);
void fork_in_child(void); /* in a child of libc's fork */

/* Threads. */
int threads_init(void);
/* A structure for a thread that is about to be created; NULL: no memory. */
struct thread *thread_make(void);
int thread_attach(struct thread *t); /* called by the thread itself */
void threads_forked(void);           /* in a forked child: forgets all threads but the caller */
/* Called first by each new thread: attaches it, unless the agent is off. Returns its argument. */
struct thread *thread_begins(void *thread);
/* Removes all triggers; agent_off must be set. Nonzero: no other thread is in a burst, or in a diverted call
 * that ends in a fault. *quiesced: 0 if a trigger may still arrive, because the collector does not respond.
 */
int threads_retire(int *quiesced);
/* Waits until no thread is in a burst, or in a diverted call that ends in a fault. 0: it took too long.
 * Bursts must be forbidden, and watching be off. */
int threads_await_native(void);
/* A signal for what a thread does (perf event, diverted call, protected page) is sent in the kernel. A thread
 * that was preempted there gets it when it runs again, even if event, diversion or protection have ended by
 * then; or later, if another signal's handler came first. Waits until every other thread has run since, or
 * sleeps, and no such signal is pending for it. 0: it took too long. */
int threads_await_delivery(void);
/* Like thread_self without a system call, but wrong in a vfork child. */
struct thread *thread_self_by_key(void);

/* The agent must not start in programs that the process executes from now on, or (vfork_child) that this
 * child executes. */
void exec_hide_session(int vfork_child);
int exec_session_hidden(void);
/* Remembers the path by which the agent was loaded. */
void exec_library_init(void);
/* Whether that file cannot be opened from here (chroot). */
int exec_library_missing(void);
/* A program about to be executed, as the target names it: a path, relative to `folder` (AT_FDCWD: to the
 * current folder); NULL: unknown; "": the descriptor `folder` itself. search: as execvp does. */
struct program {
    const char *path;
    int folder, search;
};
/* Whether the program is one for another class of machine, so that its dynamic loader cannot load the agent.
 */
int exec_is_foreign(struct program p);
/* Whether the dynamic loader only lists the libraries that the program would get, as for ldd. */
int exec_lists_libraries(char *const *envp);
/* Whether a program that gets this environment is without the agent. */
enum wire_lacks exec_lacks(char *const *envp);
/* Whether the program must be executed with another environment: without the session; or without the agent in
 * LD_PRELOAD, because its loader would print that it cannot load it, or would list it. */
int exec_filters(struct program p, char *const *envp);
/* Copies the environment to `room`, without what exec_filters names. count: from exec_environment_count.
 * text: room for LD_PRELOAD. */
#define EXEC_TEXT 4096u
char *const *exec_filter_environment(char *const *envp, char **room, size_t count, char text[EXEC_TEXT]);
/* Copies memory of the target, in a child without the agent's handlers, too. Returns the number of bytes that
 * could not be read. */
size_t target_read(void *to, const void *from, size_t bytes);
/* Opens a file for reading, which need not succeed, in a child that shares its parent's memory, too. */
long exec_open(const char *path);
void exec_close(long fd);
/* Number of pointers, including the NULL; 0: there is none that can be read. */
size_t exec_environment_count(char *const *envp);

#pragma GCC visibility pop
#endif
