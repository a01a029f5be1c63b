/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.h - cuts the execution of each thread into windows of about equal work, for the miss ratio over
 * time and for phases (model/phases.h). In full mode a window holds a number of references, and its stack
 * distances are exact; otherwise it holds an amount of CPU time, in which code was sampled. Once there are
 * too many windows, neighbours are joined and later windows are twice as long.
 */
#ifndef CACHEGRAM_WINDOWS_REDUCE_H
#define CACHEGRAM_WINDOWS_REDUCE_H

#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"
#include "collect/records/decode.h"
#include "profile/profile.h"
#include "wire/wire.h"

/* --- places of code of one process --- */

struct windows_code;

/* modules, nmodules: as the agent reports them, in shared memory; NULL: none are known. */
struct windows_code *windows_code_new(const struct wire_module *modules, const uint32_t *nmodules,
                                      struct error *err);
void windows_code_free(struct windows_code *c); /* NULL is allowed */

/* --- windows of a run --- */

struct windows;

struct windows *windows_new(unsigned line_bytes, uint64_t start_ns, struct error *err);
void windows_free(struct windows *w); /* NULL is allowed */

/*
 * The process began to run its program at start_ns (CLOCK_MONOTONIC); before that its main thread, tid, had
 * used cpu_ns in other programs, which exec has replaced. Before its first buffer, burst or tick. 0, or
 * -ENOMEM.
 */
int windows_process(struct windows *w, uint64_t process, uint32_t tid, uint64_t start_ns, uint64_t cpu_ns);
/* What a buffer's touches are in some cache. */
struct windows_distances {
    const struct hist *stack; /* stack distances; those of bins below `bins` only */
    uint32_t bins;
    uint64_t cold; /* first touches */
};
/*
 * Full mode: a buffer was reduced. shared: in a cache that the threads of the process share; own: in one of
 * its thread alone, NULL: the same; executed: counts of the blocks executed in it (decoder). 0, or -ENOMEM.
 */
int windows_buffer(struct windows *w, uint64_t process, struct windows_code *code,
                   const struct wire_desc *desc, uint64_t references, const struct windows_distances *shared,
                   const struct windows_distances *own, const struct decoder *decoder,
                   const struct decode_sites *executed);
/* A burst was reduced; executed: NULL if not counted. 0, or -ENOMEM. */
int windows_burst(struct windows *w, uint64_t process, struct windows_code *code,
                  const struct wire_desc *desc, const struct hist *stack, uint64_t first_touches,
                  const struct decoder *decoder, const struct decode_sites *executed);
/* A thread was at an instruction. 0, or -ENOMEM. */
int windows_tick(struct windows *w, uint64_t process, struct windows_code *code,
                 const struct wire_tick *tick);
/*
 * Finds the phases and stores everything, replacing what was stored before. Unless it is the last time, that
 * is only done if there are a tenth more windows than then, and if it will not take long
 * (COLLECT_CLUSTER_MOST). 0, or negative with err.
 */
int windows_store(struct windows *w, int last, struct profile *p, struct error *err);

#endif
