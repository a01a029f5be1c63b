/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - names for the code of one file: function, inlined functions, source lines (elfutils' libdw).
 *
 * Debug information may be in the file, or in a separate one where libdwfl looks for it: by build id under
 * /usr/lib/debug, by .gnu_debuglink, and from debuginfod if $DEBUGINFOD_URLS is set. Without any, functions
 * are named by the symbol table, and without that by their beginning (.eh_frame): "libx.so.1+0x1139".
 * In code without an unwind table each page counts as a function: "libx.so.1+0x1xxx".
 */
#ifndef CACHEGRAM_SYMBOLS_IMAGE_H
#define CACHEGRAM_SYMBOLS_IMAGE_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

/* Frames of inlined functions beyond that are omitted. */
#define SYMBOLS_MOST_FRAMES 32u

struct symbols_frame {
    const char *function; /* owned by the image */
    const char *file;     /* likewise; NULL: unknown */
    uint32_t line;        /* 0: unknown */
    uint32_t column;      /* likewise */
    int guessed;          /* the instruction has no line: the nearest previous one is used */
};

struct symbols_image;

/* For a path as in /proc/PID/maps, including "[vdso]", or that of a JIT compiler's map (symbols/jit-map.h),
 * whose offsets are addresses. NULL if it cannot be read, or memory is short. */
struct symbols_image *symbols_image_open(const char *path);
struct symbols_growth;
struct jit_entries;
/* Likewise; growth[n]: as for symbols_jit_map_open. */
struct symbols_image *symbols_image_open_grown(const char *path, const struct symbols_growth *growth,
                                               size_t n);
/* What a JIT compiler made, if it is such a file; else NULL. */
struct jit_entries *symbols_image_jit(const struct symbols_image *image);
void symbols_image_close(struct symbols_image *image); /* NULL is allowed */
/* For tests that do without source lines: from now on, debug information is not read. For the C library that
 * takes longer than most programs run. */
void symbols_image_no_debug_info(void);
/* Hexadecimal; "" if it has none. */
const char *symbols_image_build_id(const struct symbols_image *image);
/*
 * Names the code at an offset of the file: innermost frame first, the compiled function last. Returns their
 * number; 0: nothing is known. lines 0: the compiled function only, without its line; that does not read
 * debug information.
 */
unsigned symbols_image_frames(struct symbols_image *image, uint64_t offset, int lines,
                              struct symbols_frame frames[SYMBOLS_MOST_FRAMES]);
/* Likewise for code of entry `made` - 1 of symbols_image_jit, at an address. made 0: of the last one there.
 */
unsigned symbols_image_frames_made(struct symbols_image *image, uint32_t made, uint64_t address, int lines,
                                   struct symbols_frame frames[SYMBOLS_MOST_FRAMES]);
struct Dwfl_Module;
/* The file with its debug information, owned by the image; NULL: it has none. */
struct Dwfl_Module *symbols_image_module(struct symbols_image *image);
struct definitions;
/* Of its structures, owned by the image; NULL: it has no debug information. image may be NULL. */
struct definitions *symbols_image_definitions(struct symbols_image *image);
/* The name of a function, or of one that is inlined there, by its entry in the image's debug information.
 * NULL: it has none. */
const char *symbols_image_name(struct symbols_image *image, Dwarf_Die *die);
struct scopes;
/* Those of the unit of debug information that has an offset of the file, and its address there. NULL: there
 * is none. */
const struct scopes *symbols_image_scopes(struct symbols_image *image, uint64_t offset, uint64_t *address);
/* The function around an offset of the file, [low, high) of the file, by the symbol table. 0: not known. */
int symbols_image_function(struct symbols_image *image, uint64_t offset, uint64_t *low, uint64_t *high);

#endif
