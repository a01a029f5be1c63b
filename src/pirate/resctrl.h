/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resctrl.h - partitions the last level by hardware (Intel CAT, AMD QoS) through the kernel's resctrl files
 * (Documentation/filesystems/resctrl.rst): a group of tasks may fill only some of the ways.
 */
#ifndef CACHEGRAM_MACHINE_RESCTRL_H
#define CACHEGRAM_MACHINE_RESCTRL_H

#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

#define RESCTRL_FOLDER "/sys/fs/resctrl"

struct resctrl; /* opaque */

/*
 * Creates our own group in `folder`, and removes groups that killed runs of ours have left. size_bytes: of
 * the last level. -ENOTSUP if the file system is not mounted or cannot partition the last level, -EACCES if
 * we lack permission; each with err filled.
 */
int resctrl_new(const char *folder, uint64_t size_bytes, struct resctrl **resctrl, struct error *err);
/* Removes the group; its tasks may use the whole cache again. NULL is allowed. */
void resctrl_free(struct resctrl *r);
/* Moves a process with all its threads into the group; future children inherit it. */
int resctrl_add(struct resctrl *r, pid_t pid, struct error *err);
/* Limits the group to this size, rounded as by resctrl_round. Its lines elsewhere remain until evicted. */
int resctrl_leave(struct resctrl *r, uint64_t bytes, struct error *err);
/* The nearest size of whole ways, at least the minimum of the hardware. */
uint64_t resctrl_round(const struct resctrl *r, uint64_t bytes);

#endif
