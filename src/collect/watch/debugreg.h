/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugreg.h - waits for a thread's next touch of a few words, by the CPU's debug registers, which the kernel
 * sets through performance events. The thread is not stopped: its touch costs it some microseconds, once.
 * What the kernel touches for the thread is not seen. All is gone when we are.
 */
#ifndef CACHEGRAM_DEBUGREG_H
#define CACHEGRAM_DEBUGREG_H

#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

#define DEBUGREG_WORDS 4u /* registers that a CPU has; a word is 8 bytes */

/* {.n = 0} is closed. */
struct debugreg {
    int fd[DEBUGREG_WORDS];
    unsigned n;
    uint64_t from_ns; /* the process' CPU time when it began */
};

/*
 * Watches n words, 1 to DEBUGREG_WORDS, whose addresses are multiples of 8, from now on. The process pid has
 * no other thread than tid; 0, 0: the caller, likewise. 0; negative errno, and nothing is watched, where that
 * is not allowed (-EPERM, -EACCES), or the registers are in use (-ENOSPC).
 */
int debugreg_open(struct debugreg *d, pid_t pid, pid_t tid, const uint64_t *words, unsigned n);
/*
 * 1: one of them was touched, when the process' CPU time was *at_ns; 0: not yet; -EIO: not known.
 */
int debugreg_touched(const struct debugreg *d, uint64_t *at_ns);
void debugreg_close(struct debugreg *d);
/* 0, or negative with a sentence: they cannot be had here. Measures what a touch takes; to be called first.
 */
int debugreg_check(struct error *err);

#endif
