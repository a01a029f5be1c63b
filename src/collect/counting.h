/* SPDX-License-Identifier: Apache-2.0 */
/* counting.h - what a stretch of counting translation (agent/count.c) says of native code. */
#ifndef CACHEGRAM_COUNTING_H
#define CACHEGRAM_COUNTING_H

/* Nanoseconds that counting adds to so many blocks, of which such a share end with an indirect branch. */
double counting_added_ns(double blocks, double indirect_share);
/*
 * Nanoseconds of CPU time that code would take natively which took `ns` there, without the agent's C code, of
 * which about `added` were counting's. More than 0 if ns is.
 */
double counting_native_ns(double added, double ns);

#endif
