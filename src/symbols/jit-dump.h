/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-dump.h - reads a jitdump, which a JIT compiler writes for `perf inject --jit`: records of functions
 * that were made, with their times, of their lines, and of functions that were moved
 * (tools/perf/Documentation/jitdump-specification.txt in Linux). The code itself, unwinding information and
 * the mark of the end are passed over. The file may have any content.
 */
#ifndef CACHEGRAM_SYMBOLS_JIT_DUMP_H
#define CACHEGRAM_SYMBOLS_JIT_DUMP_H

#include "symbols/jit-entries.h"

/* Adds what the file has, up to the first damaged record. now_ns: CLOCK_MONOTONIC; later times are of another
 * clock, and unknown. 0; -EINVAL: it is no jitdump; -ENOMEM. */
int jit_dump_read(struct jit_entries *entries, int fd, uint64_t now_ns);

#endif
