/* SPDX-License-Identifier: Apache-2.0 */
/* meter.h - progress of a running program, read from outside: the unit of measured intervals. */
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
 * what: "io", the bytes that the process has read and written by system calls; an event of perf-count.h; or
 * the name of a counter in the program, an unsigned global variable of 4 or 8 bytes that never decreases. A
 * variable is looked up in the program's file at path (NULL: later, in the process). Errors as
 * elf_symbol_find; -EINVAL for a function or another size.
 */
int meter_init(struct meter *m, const char *what, const char *path, struct error *err);
/* The process exists now. Looks up a variable's address, for up to 0.1 s after an exec. */
int meter_attach(struct meter *m, pid_t pid, struct error *err);
void meter_detach(struct meter *m);
/* Units so far; negative errno if the process has ended or may not be read. */
int meter_read(const struct meter *m, pid_t pid, double *units);
/* Counts of all kinds so far; NaN without METER_EVENT, and for kinds that cannot be counted. */
void meter_read_events(const struct meter *m, double sums[PERF_KINDS]);
/* "bytes", "steps", or the event's name. */
const char *meter_unit(const struct meter *m);

#endif
