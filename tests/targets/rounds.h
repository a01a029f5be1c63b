/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounds.h - the work between what is tested, divided by the variable TARGET_WORK_DIVISOR. It is there for
 * bursts to fall into; in full mode, where each of its references costs some ten times as much and more, a
 * part of it will do.
 */
#ifndef CACHEGRAM_TARGETS_ROUNDS_H
#define CACHEGRAM_TARGETS_ROUNDS_H

#include <stdlib.h>

static int work_divisor = 1;

__attribute__((constructor)) static void read_work_divisor(void)
{
    const char *divisor = getenv("TARGET_WORK_DIVISOR");
    if (divisor != NULL)
        work_divisor = atoi(divisor);
}

static inline int rounds_of_work(int n)
{
    return n / work_divisor;
}

#endif
