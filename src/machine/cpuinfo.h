/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_MACHINE_CPUINFO_H
#define CACHEGRAM_MACHINE_CPUINFO_H

#include <stddef.h>

/* What /proc/cpuinfo has for the first processor: "model name", "flags", ... Every word of the value follows
 * a space. 1; or 0 with text "". */
int cpuinfo_get(const char *key, char *text, size_t size);

#endif
