/* SPDX-License-Identifier: Apache-2.0 */
/* counting.h - what a stretch of counting translation (agent/count.c) says of native code. */
#ifndef CACHEGRAM_COUNTING_H
#define CACHEGRAM_COUNTING_H

/*
 * Nanoseconds of CPU time that so many blocks would take natively which took `ns` there, without the agent's
 * C code. More than 0 if ns is. An estimate for any program: see COLLECT_COUNT_BLOCK_NS.
 */
double counting_native_ns(double blocks, double ns);

#endif
