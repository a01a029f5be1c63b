/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - the data objects of a run, numbered from 1 in the order of their first use. */
#ifndef CACHEGRAM_OBJECT_TABLE_H
#define CACHEGRAM_OBJECT_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/objects.h"
#include "symbols/data.h"
#include "symbols/locals.h"
#include "symbols/unwind.h"

struct object_table;

/* NULL when memory is short (err says so). */
struct object_table *object_table_new(struct error *err);
void object_table_free(struct object_table *t); /* NULL is allowed */
/*
 * The object's number. Objects are equal if kind, name, module and offset are. Names are copied; those of
 * variables are demangled. When memory is short, or there are too many objects: the number of a common one.
 */
uint32_t object_table_find(struct object_table *t, const struct profile_object *object);
/* All objects so far, owned by the table: [i] has number i + 1. Counts are 0. */
const struct profile_object *object_table_all(const struct object_table *t, size_t *n);
/* A block of that object has so many bytes. */
void object_table_block(struct object_table *t, uint32_t object, uint64_t bytes);
/* Of each object the largest number of which the sizes of all its blocks are multiples; 0: not known. Owned
 * by the table. */
const uint64_t *object_table_block_bytes(const struct object_table *t);
/* The variables of that file, which is opened once; NULL: not an ELF file, or it cannot be read. */
struct symbols_data *object_table_data(struct object_table *t, const char *path);

/* Likewise how to find the callers of its functions. */
struct symbols_unwind *object_table_unwind(struct object_table *t, const char *path);
/*
 * The large local variables of the function around an offset of a file, by its number; *locals: those of the
 * file. NULL: none are known. Only debug information on this machine is used.
 */
struct symbols_function *object_table_function(struct object_table *t, uint32_t file, uint64_t offset,
                                               struct symbols_locals **locals);
/* The number of the object that is such a variable. */
uint32_t object_table_local(struct object_table *t, uint32_t file, const struct symbols_function *function,
                            struct symbols_local *local);
/* The number of that file, and the files by number; UINT32_MAX when memory is short. */
uint32_t object_table_file(struct object_table *t, const char *path);
const char *const *object_table_files(struct object_table *t, size_t *n);

#endif
