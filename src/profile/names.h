/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - the words under which the profile stores codes, so that SQL users need no header of ours.
 */
#ifndef CACHEGRAM_PROFILE_NAMES_H
#define CACHEGRAM_PROFILE_NAMES_H

#include <stdint.h>
#include "profile/profile.h"

/* Why a burst ended (enum wire_end): "full", "syscall", ... ; "unknown" for a code we do not know. */
const char *profile_end_name(uint32_t end);
/* "stack", "reuse", "first", "age". */
const char *profile_hist_name(enum profile_hist kind);

#endif
