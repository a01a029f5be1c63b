/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locals.h - the large variables that functions of a file have on the stack, by its debug information.
 *
 * Their places are relative to the canonical frame address (CFA): what the stack pointer is after the
 * function has returned. Small variables, those without a fixed place, and arrays of variable length are left
 * out.
 */
#ifndef CACHEGRAM_SYMBOLS_LOCALS_H
#define CACHEGRAM_SYMBOLS_LOCALS_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/image.h"
#include "symbols/unwind.h"

/* Bytes of the smallest variable that is listed. */
#define SYMBOLS_LOCAL_BYTES 128u

#define SYMBOLS_LOCAL_NOWHERE INT64_MIN

struct symbols_local {
    int64_t low, high;           /* its bytes, from the CFA on; low is SYMBOLS_LOCAL_NOWHERE if not known */
    int by_sp;                   /* they are relative to the stack pointer instead: the frame is aligned */
    const char *name;            /* "main::matrix" */
    Dwarf_Die type, scope;       /* scope: function, inlined function, or block */
    struct definitions *defined; /* of the type's file */
    uint32_t number;             /* for the caller; 0 at first */
};

/* A function and its variables. */
struct symbols_function {
    const void *die; /* where its entry is in memory: in split debug information offsets are not unique */
    uint64_t offset; /* in the file, of its beginning */
    int placed;      /* if not, places of variables mean nothing: the rule was not known */
    int64_t low;     /* of the lowest variable */
    struct symbols_local *list;
    size_t n, capacity;
    struct symbols_local lengths; /* arrays of variable length; without a name: there are none */
};

struct symbols_locals;

/* Of a file's image, which must live longer. NULL when memory is short. */
struct symbols_locals *symbols_locals_new(struct symbols_image *image);
void symbols_locals_free(struct symbols_locals *l); /* NULL is allowed */
/* The function around an offset of the file. rule: where its CFA is for the code there; NULL: not known,
 * which some functions can do without. The same for all offsets in a function, by the rule that was given
 * first. NULL: it has no such variables, or they are not known. */
struct symbols_function *symbols_locals_function(struct symbols_locals *l, uint64_t offset,
                                                 const struct symbols_rule *rule);
/* A frame of a function: sp is the stack pointer while the function calls others; 0: not known. offset: in
 * the file, of the code that is executed there. */
struct symbols_in_frame {
    uint64_t cfa, sp, offset;
};
/* The variable at an address in the frame, and where it begins, UINT64_MAX if that is not known. Of several
 * that share their bytes, one whose scope contains the code. NULL: none is known. */
struct symbols_local *symbols_function_at(struct symbols_locals *l, struct symbols_function *f,
                                          const struct symbols_in_frame *frame, uint64_t address,
                                          uint64_t *begin);
/* By its name. NULL: there is none. */
struct symbols_local *symbols_function_named(struct symbols_function *f, const char *name);

#endif
