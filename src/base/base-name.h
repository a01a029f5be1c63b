/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_BASE_NAME_H
#define CACHEGRAM_BASE_NAME_H

#include <string.h>

/* The part of a path after its last slash: "libc.so.6" of "/lib/libc.so.6". Points into `path`. */
static inline const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
