/* SPDX-License-Identifier: Apache-2.0 */
/* trace-stack.h - stack distances of a trace, for the commands stack and verify. */
#ifndef CACHEGRAM_TRACE_STACK_H
#define CACHEGRAM_TRACE_STACK_H

#include <stdint.h>
#include "base/error.h"
#include "sim/stackset.h"
#include "trace/trace.h"

/*
 * Reads the trace to its end, or until an interrupt (cli_interrupted), shows the progress of `what` on a
 * terminal, and waits until all is computed. separate: as for the set. *references: number read. 0 or more,
 * or negative with err filled.
 */
int trace_stack_read(const char *what, struct stackset *set, struct trace_reader *r, int separate,
                     uint64_t *references, struct error *err);

#endif
