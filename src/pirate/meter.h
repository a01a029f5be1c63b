/* SPDX-License-Identifier: Apache-2.0 */
/* meter.h - how far a running program has got, read from outside: the clock that measured intervals go by. */
#ifndef CACHEGRAM_METER_H
#define CACHEGRAM_METER_H

#include <sys/types.h>
#include "base/error.h"
#include "pirate/perf-count.h"

struct meter {
    enum { METER_NONE, METER_VARIABLE, METER_IO, METER_EVENT } kind;
    const char *variable; /* its name; not owned */
    unsigned long address;
    unsigned size;
    int fd; /* METER_IO: /proc/PID/io; else -1 */
    enum perf_event_kind event;
    struct perf_count count; /* METER_EVENT; all kinds are counted then */
};

/*
 * What "io", an event of perf-count.h or the name of a variable stands for: the bytes that the process has
 * read and written by system calls; events; or a counter of the program's own, an unsigned global of 4 or 8
 * bytes that never falls. For a variable path, the program's file, is looked into (NULL: later, in the
 * process). Errors as elf_symbol_find; -EINVAL for a function or another size.
 */
int meter_init(struct meter *m, const char *what, const char *path, struct error *err);
/* The process is there. A variable's address is looked up, for up to a tenth of a second after an exec. */
int meter_attach(struct meter *m, pid_t pid, struct error *err);
void meter_detach(struct meter *m);
/* Units so far; negative errno when the process is gone or does not let us read. */
int meter_read(const struct meter *m, pid_t pid, double *units);
/* Counts of all kinds so far; NaN unless it is a METER_EVENT, and where they cannot be counted. */
void meter_read_events(const struct meter *m, double sums[PERF_KINDS]);
/* "bytes", "steps", or the event's name. */
const char *meter_unit(const struct meter *m);

#endif
