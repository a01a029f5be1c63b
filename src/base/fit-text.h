/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_FIT_TEXT_H
#define CACHEGRAM_FIT_TEXT_H

#include <stdio.h>
#include <string.h>

/* `before` and `name` in `size` bytes, 4 or more; what does not fit ends with "...". */
static inline void fit_text(char *to, size_t size, const char *before, const char *name)
{
    int n = snprintf(to, size, "%s%s", before, name);
    if (n >= 0 && (size_t)n >= size)
        memcpy(to + size - sizeof "...", "...", sizeof "...");
}

#endif
