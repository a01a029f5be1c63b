/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - the recorder's signals while a command runs. Signals from the keyboard reach the command
 * directly (same process group), and the recorder only notes them; signals that are sent to the recorder are
 * passed on. One command at a time: handlers need globals.
 */
#ifndef CACHEGRAM_SIGNALS_H
#define CACHEGRAM_SIGNALS_H

#include <sys/types.h>
#include "wire/wire.h"

/*
 * From now on signals are queued for signals_forward, and a limit on file sizes does not kill the recorder.
 */
void signals_begin(void);
/* Every signal, and every child's end, rings the session's doorbell from now on. */
void signals_set_doorbell(struct wire_session *session);
/* Restores what signals_begin changed. Also called in a child before it executes the command. */
void signals_end(void);
/* Passes on to the command the signals since the last call. */
void signals_forward(pid_t command);
/* The signal that asked to stop (SIGINT, SIGQUIT, SIGTERM, SIGHUP) since signals_begin, or 0. Those that the
 * command, or a child of it that still runs, sent to its process group do not count. */
int signals_stopped(pid_t command);
/* Is `pid` the process `from`, or a descendant of it? From /proc: no longer known for orphans. */
int signals_descends(pid_t pid, pid_t from);

#endif
