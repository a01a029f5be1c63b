/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - the recorder's signals while a command runs. The keyboard's reach the command by
 * themselves (same process group) and leave the recorder alone; those sent to the recorder are passed on.
 * One command at a time: handlers need globals.
 */
#ifndef CACHEGRAM_SIGNALS_H
#define CACHEGRAM_SIGNALS_H

#include <sys/types.h>
#include "wire/wire.h"

/* From now on signals are kept for signals_forward, and a limit on the size of files does not kill. */
void signals_begin(void);
/* And every signal, and every child's end, rings the session's doorbell. */
void signals_bell(struct wire_session *session);
/* As before signals_begin. Also what a child calls before it executes the command. */
void signals_end(void);
/* Passes on to the command what has arrived since the last call. */
void signals_forward(pid_t command);
/* Is `pid` the process `from`, or a descendant of it? By /proc, so as far as it is not orphaned. */
int signals_descends(pid_t pid, pid_t from);

#endif
