/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - the ELF files of a run while a profile gets its names, each opened once: to decompress the debug
 * information of a library takes longer than the rest.
 */
#ifndef CACHEGRAM_SYMBOLS_FILES_H
#define CACHEGRAM_SYMBOLS_FILES_H

#include <stddef.h>

#include "profile/sites.h"
#include "symbols/code.h"
#include "symbols/disassemble.h"
#include "symbols/image.h"
#include "symbols/locals.h"
#include "symbols/types.h"

/* All zero: none yet. */
struct symbols_files {
    struct symbols_file *list;
    size_t n, capacity;
    const struct profile_module
        *mapped; /* the caller's: a jitdump among them names the code of its process */
    size_t nmapped;
    const struct symbols_growth *growth; /* as for symbols_jit_map_open; the caller's */
    size_t ngrowth;
};

/* Of the file with that path, which must stay valid; owned by `files`. NULL: it has none, or memory is short.
 */
struct symbols_image *symbols_files_image(struct symbols_files *files, const char *path);
struct symbols_types *symbols_files_types(struct symbols_files *files, const char *path);
struct symbols_locals *symbols_files_locals(struct symbols_files *files, const char *path);
struct disassembler *symbols_files_disassembler(struct symbols_files *files, const char *path);
/* The file that was opened for that path, if it is another one, else the path. */
const char *symbols_files_opened(struct symbols_files *files, const char *path);
void symbols_files_clear(struct symbols_files *files);

#endif
