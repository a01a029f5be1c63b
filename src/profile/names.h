/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - names that the profile stores for codes, so that SQL users need no header. */
#ifndef CACHEGRAM_PROFILE_NAMES_H
#define CACHEGRAM_PROFILE_NAMES_H

#include <stdint.h>
#include "profile/profile.h"

/* Why a burst ended (enum wire_end): "full", "syscall", ... ; "unknown" for an unknown code. */
const char *profile_end_name(uint32_t end);
/* "stack", "reuse", "first", "age". */
const char *profile_hist_name(enum profile_hist kind);

#define PROFILE_SETS_NAME 24
/* "group3" for group 3; returns name. */
const char *profile_group_name(unsigned group, char name[PROFILE_SETS_NAME]);
/* "sets64" for 64 sets; returns name. */
const char *profile_sets_name(unsigned sets, char name[PROFILE_SETS_NAME]);
/* "open", "reused", "dropped", "dangling", "unmapped", "refused". */
const char *profile_outcome_name(enum profile_outcome outcome);

#endif
