/* SPDX-License-Identifier: Apache-2.0 */
/* counting.h - what a stretch of counting translation (agent/count.c) says of native code. */
#ifndef CACHEGRAM_COUNTING_H
#define CACHEGRAM_COUNTING_H

/*
 * Nanoseconds of CPU time that code would take natively which took `ns` there, without the agent's C code, in
 * so many counting blocks, of which so many ended with a turn (wire_desc.count_turns). More than 0 if ns is.
 *
 * Each block adds an addition, and a turn a look in a table, behind which the processor waits longer
 * (tunables.h).
 */
double counting_native_ns(double ns, double blocks, double turns);

#endif
