/* SPDX-License-Identifier: Apache-2.0 */
/* frames.c - the table of frames: lines of source, and what they are inlined into, each once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "symbols/naming.h"

static size_t hash_frame(const struct symbols_frame *f, uint64_t caller)
{
    uint64_t hash = (f->line + ((uint64_t)f->column << 32)) * UINT64_C(0x9e3779b97f4a7c15) + caller;
    hash = hash_text(hash, f->function != NULL ? f->function : "");
    hash = hash_text(hash, f->file != NULL ? f->file : "");
    return (size_t)(hash ^ hash >> 32);
}

static int grow_frames(struct naming *n)
{
    size_t capacity = n->frames_capacity != 0 ? 2 * n->frames_capacity : 1024;
    struct known_frame *grown = calloc(capacity, sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < n->frames_capacity; i++) {
        const struct known_frame *k = &n->frames[i];
        if (k->id == 0)
            continue;
        size_t at = hash_frame(
                        &(struct symbols_frame){
                            .function = k->function, .file = k->file, .line = k->line, .column = k->column},
                        k->caller) &
                    (capacity - 1);
        while (grown[at].id != 0)
            at = (at + 1) & (capacity - 1);
        grown[at] = *k;
    }
    free(n->frames);
    n->frames = grown;
    n->frames_capacity = capacity;
    return 0;
}

/* The row of that frame in that caller; made if there is none. 0 or negative. */
static int find_frame(struct naming *n, const struct symbols_frame *f, uint64_t caller, uint64_t *id)
{
    const char *function = f->function != NULL ? f->function : "", *file = f->file != NULL ? f->file : "";
    if (2 * (n->nframes + 1) > n->frames_capacity && grow_frames(n) < 0)
        return error_set(n->err, -ENOMEM, "out of memory for the names of functions");
    size_t at = hash_frame(f, caller) & (n->frames_capacity - 1);
    for (; n->frames[at].id != 0; at = (at + 1) & (n->frames_capacity - 1)) {
        const struct known_frame *k = &n->frames[at];
        if (k->line == f->line && k->column == f->column && k->caller == caller &&
            k->guessed == (uint32_t)f->guessed && strcmp(k->function, function) == 0 &&
            strcmp(k->file, file) == 0) {
            *id = k->id;
            return 0;
        }
    }
    struct known_frame *k = &n->frames[at];
    *k = (struct known_frame){
        strdup(function), strdup(file), f->line, f->column, (uint32_t)f->guessed, 0, caller};
    if (k->function == NULL || k->file == NULL) {
        free(k->function);
        free(k->file);
        return error_set(n->err, -ENOMEM, "out of memory for the names of functions");
    }
    *id = k->id = (uint32_t)++n->nframes;
    return profile_add_frame(n->profile,
                             &(struct profile_frame){.id = k->id,
                                                     .function = k->function,
                                                     .file = k->file,
                                                     .line = k->line,
                                                     .column = k->column,
                                                     .guessed = f->guessed,
                                                     .caller = caller},
                             n->err);
}

int naming_place(struct naming *n, struct symbols_image *image, uint32_t made, uint64_t offset,
                 enum naming_detail detail, uint64_t *inner, uint64_t *outer)
{
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    int code = 0, lines = detail != NAMING_FUNCTION;
    unsigned nframes = 0;
    if (image != NULL)
        nframes = made != 0 ? symbols_image_frames_made(image, made, offset, lines, frames)
                            : symbols_image_frames(image, offset, lines, frames);
    *inner = *outer = 0;
    for (unsigned i = nframes; i > 0 && code == 0; i--) {
        if (detail != NAMING_COLUMNS)
            frames[i - 1].column = 0;
        code = find_frame(n, &frames[i - 1], *inner, inner);
        if (i == nframes)
            *outer = *inner;
    }
    return code;
}
