/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/files.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/jit-map.h"

struct symbols_file {
    const char *path, *opened;
    struct symbols_image *image;
    struct symbols_types *types;
    struct symbols_locals *locals;
    struct disassembler *disassembler;
    int types_tried, disassembler_tried;
};

/* For code that was made at run time the jitdump of the process, if it has written one. */
static void open_file(struct symbols_files *files, struct symbols_file *f)
{
    char map[SYMBOLS_JIT_MAP_PATH];
    uint32_t pid;
    for (size_t i = 0; i < files->nmapped && f->image == NULL && symbols_jit_map_is(f->path); i++) {
        if (!symbols_jit_dump_is(files->mapped[i].path, &pid))
            continue;
        symbols_jit_map_path(pid, map);
        if (strcmp(map, f->path) == 0 && (f->image = symbols_image_open(files->mapped[i].path)) != NULL)
            f->opened = files->mapped[i].path;
    }
    if (f->image == NULL)
        f->image = symbols_image_open_grown(f->path, files->growth, files->ngrowth);
}

/* NULL when memory is short. Valid until the next call. */
static struct symbols_file *file_of(struct symbols_files *files, const char *path)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->list[i].path, path) == 0)
            return &files->list[i];
    if (ARRAY_GROW(files->list, files->n, files->capacity) < 0)
        return NULL;
    files->list[files->n] = (struct symbols_file){.path = path, .opened = path};
    open_file(files, &files->list[files->n]);
    return &files->list[files->n++];
}

struct symbols_image *symbols_files_image(struct symbols_files *files, const char *path)
{
    const struct symbols_file *f = file_of(files, path);
    return f != NULL ? f->image : NULL;
}

const char *symbols_files_opened(struct symbols_files *files, const char *path)
{
    const struct symbols_file *f = file_of(files, path);
    return f != NULL ? f->opened : path;
}

struct symbols_types *symbols_files_types(struct symbols_files *files, const char *path)
{
    struct symbols_file *f = file_of(files, path);
    if (f != NULL && f->image != NULL && !f->types_tried) {
        f->types_tried = 1;
        f->types = symbols_types_new(f->image);
    }
    return f != NULL ? f->types : NULL;
}

struct symbols_locals *symbols_files_locals(struct symbols_files *files, const char *path)
{
    struct symbols_file *f = file_of(files, path);
    if (f != NULL && f->image != NULL && f->locals == NULL)
        f->locals = symbols_locals_new(f->image);
    return f != NULL ? f->locals : NULL;
}

struct disassembler *symbols_files_disassembler(struct symbols_files *files, const char *path)
{
    struct symbols_file *f = file_of(files, path);
    struct error ignored;
    if (f != NULL && f->image != NULL && !f->disassembler_tried) {
        f->disassembler_tried = 1;
        f->disassembler = disassembler_open(path, &ignored);
    }
    return f != NULL ? f->disassembler : NULL;
}

void symbols_files_clear(struct symbols_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        symbols_types_free(files->list[i].types);
        symbols_locals_free(files->list[i].locals);
        symbols_image_close(files->list[i].image);
        disassembler_close(files->list[i].disassembler);
    }
    free(files->list);
    *files = (struct symbols_files){0};
}
