/* SPDX-License-Identifier: Apache-2.0 */
/* sharers.h - processes that run in the memory of another one without being its threads. */
#ifndef CACHEGRAM_COLLECT_SHARERS_H
#define CACHEGRAM_COLLECT_SHARERS_H

#include <stdint.h>

/* Nonzero if a child of the process, created by its first thread or by thread tid, shares its memory:
 * created by clone with CLONE_VM and without CLONE_THREAD, as leak detectors do. 0 also if the kernel
 * cannot tell (it has neither lists of children nor kcmp). Takes some us, and one more for each child. */
int sharers_exist(uint32_t pid, uint32_t tid);

#endif
