/* SPDX-License-Identifier: Apache-2.0 */
/* thread-time.h - how much of its process' CPU time a thread has, by the sampled windows of a profile. */
#ifndef CACHEGRAM_ANALYSIS_THREAD_TIME_H
#define CACHEGRAM_ANALYSIS_THREAD_TIME_H

#include <stdint.h>

#include "profile/profile.h"

struct thread_time;

/* A profile without windows is no error: every thread then counts as alone. NULL with err. */
struct thread_time *thread_time_load(struct profile *p, struct error *err);
void thread_time_free(struct thread_time *t); /* NULL is allowed */
/* Nonzero: as far as is known the process has no other thread. */
int thread_time_is_alone(const struct thread_time *t, uint64_t process, uint32_t tid);
/* The thread's share of the next cpu_ns of CPU time that its process uses after start_ns, nanoseconds since
 * the run's start: 0 .. 1. */
double thread_time_share(const struct thread_time *t, uint64_t process, uint32_t tid, uint64_t start_ns,
                         double cpu_ns);

#endif
