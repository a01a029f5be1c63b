/* SPDX-License-Identifier: Apache-2.0 */
/* record-debug.h - what tests ask of `record`, and no user needs: the variable CACHEGRAM_DEBUG. */
#ifndef CACHEGRAM_RECORD_DEBUG_H
#define CACHEGRAM_RECORD_DEBUG_H

#include "collect/collect.h"

/* Sets the options that the variable names (tests/README.md), and removes it from the environment, so that
 * the command runs as without. 0, or the exit status after a message. */
int record_debug(struct collect_options *o);

#endif
