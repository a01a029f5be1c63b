/* SPDX-License-Identifier: Apache-2.0 */
/* counting.h - native execution time, estimated from a counting stretch (agent/clock). */
#ifndef CACHEGRAM_COUNTING_H
#define CACHEGRAM_COUNTING_H

/*
 * Estimates how long code would take natively that took `ns` of CPU time in counting code (without the
 * agent's C code), in so many counting blocks, of which so many ended with a turn (wire_desc.count_turns).
 * Positive if ns is.
 *
 * Each block adds an addition; each turn adds a table look-up, after which the processor waits longer; no
 * block takes less than about a cycle (tunables.h).
 */
double counting_native_ns(double ns, double blocks, double turns);

#endif
