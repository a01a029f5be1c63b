/* SPDX-License-Identifier: Apache-2.0 */
/* code.h - instructions that made references, identified by their file and offset, and the data objects that
 * were referenced. */
#ifndef CACHEGRAM_SYMBOLS_CODE_H
#define CACHEGRAM_SYMBOLS_CODE_H

#include <stddef.h>
#include <stdint.h>
#include "profile/objects.h"

struct symbols_site {
    uint32_t image;  /* index of its file */
    uint64_t offset; /* in the file; the address, if the file is unknown */
};

struct symbols_code {
    const char *const *images; /* paths, as in /proc/PID/maps; "": unknown */
    size_t nimages;
    const struct symbols_site *sites; /* by number */
    size_t nsites;
    const struct profile_object *objects; /* [i] has the id i + 1; without counts */
    size_t nobjects;
    /* Blocks have a name like "3+1a40 3+1b07": files, by number, and offsets in them, of the calls by which
     * they were allocated, innermost first. */
    const char *const *files;
    size_t nfiles;
};

#endif
