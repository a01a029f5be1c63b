/* SPDX-License-Identifier: Apache-2.0 */
/* meter.h - how far a running program has got, read from outside: the clock that measured intervals go by. */
#ifndef CACHEGRAM_METER_H
#define CACHEGRAM_METER_H

#include <sys/types.h>
#include "base/error.h"

struct meter {
    enum { METER_NONE, METER_VARIABLE, METER_IO } kind;
    const char *variable; /* its name; not owned */
    unsigned long address;
    unsigned size;
    int fd; /* METER_IO: /proc/PID/io; else -1 */
};

/*
 * What "io" or the name of a variable stands for: the bytes that the process has read and written by system
 * calls; or a counter of the program's own, an unsigned global of 4 or 8 bytes that never falls. For a
 * variable path, the program's file, is looked into (NULL: later, in the process). Errors as elf_symbol_find;
 * -EINVAL for a function or another size.
 */
int meter_init(struct meter *m, const char *what, const char *path, struct error *err);
/* The process is there. A variable's address is looked up, for up to a tenth of a second after an exec. */
int meter_attach(struct meter *m, pid_t pid, struct error *err);
void meter_detach(struct meter *m);
/* Units so far; negative errno when the process is gone or does not let us read. */
int meter_read(const struct meter *m, pid_t pid, double *units);
/* "bytes", "steps". */
const char *meter_unit(const struct meter *m);

#endif
