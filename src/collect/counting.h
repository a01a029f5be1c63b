/* SPDX-License-Identifier: Apache-2.0 */
/* counting.h - what a stretch of counting translation (agent/count.c) says of native code. */
#ifndef CACHEGRAM_COUNTING_H
#define CACHEGRAM_COUNTING_H

/*
 * Nanoseconds of CPU time that code would take natively which took `ns` there, without the agent's C code,
 * and made so many references meanwhile. More than 0 if ns is.
 *
 * What counting adds is hidden where the program waits for memory anyway. So the share that is native is the
 * larger the longer a reference takes: for x nanoseconds it is a + b x / (x + c), with what was measured
 * (tunables.h).
 */
double counting_native_ns(double references, double ns);

#endif
