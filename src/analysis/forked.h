/* SPDX-License-Identifier: Apache-2.0 */
/* forked.h - processes that work with memory which their parent may have touched before. */
#ifndef CACHEGRAM_ANALYSIS_FORKED_H
#define CACHEGRAM_ANALYSIS_FORKED_H

#include "profile/profile.h"

/* Whether one of the processes (of many: of the first ones) was forked and has not executed a program since.
 */
int analysis_has_forked(struct profile *p);

#endif
