/* SPDX-License-Identifier: Apache-2.0 */
/* unknown-threads.h - burst mode: threads that the agent does not know, whose time is not profiled. */
#ifndef CACHEGRAM_COLLECT_UNKNOWN_THREADS_H
#define CACHEGRAM_COLLECT_UNKNOWN_THREADS_H

#include <stdint.h>
#include <sys/types.h>
#include "wire/wire.h"

#define UNKNOWN_THREADS 16u /* observed in a process; others are ignored */

struct unknown_threads {
    uint64_t ns; /* CPU time of such threads so far */
    unsigned n;  /* such threads at the last look, and their CPU time */
    struct unknown_thread {
        pid_t tid;
        uint64_t cpu_ns;
    } thread[UNKNOWN_THREADS];
};

/* To be called from time to time. A thread is not known in its first and last moments. So only the CPU time
 * counts that it used between two looks at which it was unknown. Without perf events nothing is found. */
void unknown_threads_look(struct unknown_threads *u, const struct wire_proc *proc, pid_t pid);

#endif
