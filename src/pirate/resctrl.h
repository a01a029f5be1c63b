/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resctrl.h - the last level partitioned by the hardware (Intel CAT, AMD QoS), through the kernel's resctrl
 * files (Documentation/filesystems/resctrl.rst): a group of tasks may fill only some of the ways.
 */
#ifndef CACHEGRAM_MACHINE_RESCTRL_H
#define CACHEGRAM_MACHINE_RESCTRL_H

#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

#define RESCTRL_FOLDER "/sys/fs/resctrl"

struct resctrl; /* opaque */

/*
 * Makes a group of our own in `folder`, and removes those that killed runs of ours have left. size_bytes: of
 * the last level. -ENOTSUP where the file system is not mounted or cannot partition the last level, -EACCES
 * where we may not; each with a sentence.
 */
int resctrl_new(const char *folder, uint64_t size_bytes, struct resctrl **resctrl, struct error *err);
/* Removes the group; its tasks get all of the cache again. NULL is allowed. */
void resctrl_free(struct resctrl *r);
/* Puts a process with all its threads, and so children to come, into the group. */
int resctrl_add(struct resctrl *r, pid_t pid, struct error *err);
/* The group may fill so much, rounded as resctrl_round does. What it has elsewhere stays until it is evicted.
 */
int resctrl_leave(struct resctrl *r, uint64_t bytes, struct error *err);
/* The nearest size that whole ways make, at least the least that the hardware allows. */
uint64_t resctrl_round(const struct resctrl *r, uint64_t bytes);

#endif
