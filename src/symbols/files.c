/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/files.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct symbols_file {
    const char *path;
    struct symbols_image *image;
    struct symbols_types *types;
    struct disassembler *disassembler;
    int types_tried, disassembler_tried;
};

/* NULL when memory is short. Valid until the next call. */
static struct symbols_file *file_of(struct symbols_files *files, const char *path)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->list[i].path, path) == 0)
            return &files->list[i];
    if (ARRAY_GROW(files->list, files->n, files->capacity) < 0)
        return NULL;
    files->list[files->n] = (struct symbols_file){.path = path, .image = symbols_image_open(path)};
    return &files->list[files->n++];
}

struct symbols_image *symbols_files_image(struct symbols_files *files, const char *path)
{
    const struct symbols_file *f = file_of(files, path);
    return f != NULL ? f->image : NULL;
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
        symbols_image_close(files->list[i].image);
        disassembler_close(files->list[i].disassembler);
    }
    free(files->list);
    *files = (struct symbols_files){0};
}
