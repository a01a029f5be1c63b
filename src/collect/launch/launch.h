/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - finds the command, examines it, and starts it with the agent in it.
 *
 * This folder starts a program and communicates with it; it knows nothing of what is recorded:
 *
 *     launch.h        finds the command and executes it; LD_PRELOAD loads the agent
 *     session.h       the memory that agents and collector share, and the doorbell that wakes the collector
 *     signals.h       what the recorder does with its own signals while the command runs
 *     target.h        for the Pirate: a program that is confined to some CPUs, held, stopped and continued
 *     process-time.h  clocks
 */
#ifndef CACHEGRAM_LAUNCH_H
#define CACHEGRAM_LAUNCH_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>
#include "base/error.h"

/*
 * Finds the command as execvp would. 0, -ENOENT, or -EACCES (found, not executable); path is
 * filled only on 0.
 */
int launch_find(const char *command, char *path, size_t size, struct error *err);

/*
 * Why the agent cannot be loaded into the program at path (statically linked, set-uid, 32-bit; for a script,
 * its interpreter is examined), to be appended to "it ...", or NULL.
 */
const char *launch_obstacle(const char *path);
/* The one of statically linked programs, which pass on the environment: their children can be profiled. */
extern const char launch_static[];

/*
 * Privileges that the program at path would gain at exec, to be appended to "it ...". It would lose them if
 * it were traced at its start. NULL: none.
 */
const char *launch_rights(const char *path);

/*
 * Full path of the agent: $CACHEGRAM_AGENT, or next to the running binary (build tree or installed). -ENOENT
 * if it is in none of them, -EINVAL if LD_PRELOAD cannot name it.
 */
int launch_agent(char *path, size_t size, struct error *err);

/*
 * Forks and executes argv, with `agent` first in LD_PRELOAD and `session` in WIRE_ENV (agent NULL: the
 * environment is unchanged). The child starts with the given signal mask. 0, or the errno of a failed exec or
 * fork, negative; then there is no child.
 */
int launch(char **argv, const char *agent, const char *session, const sigset_t *mask,
           void (*restore_signals)(void), pid_t *pid, struct error *err);

/* The command as it could be typed again, as profiles store it; truncated if very long. size: 16 or more. */
void launch_quote(char **argv, char *text, size_t size);

/* The same in two steps. After launch_begin there is a child that has not executed the command yet, unless
 * restore_signals lets it; launch_finish waits until it has, and reaps it if it could not. */
struct launching {
    pid_t pid;
    int report;       /* pipe that carries exec's errno */
    const char *name; /* not owned */
};
int launch_begin(struct launching *l, char **argv, const char *agent, const char *session,
                 const sigset_t *mask, void (*restore_signals)(void), struct error *err);
int launch_finish(struct launching *l, struct error *err);

#endif
