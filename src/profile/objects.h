/* SPDX-License-Identifier: Apache-2.0 */
/* objects.h - the part of a profile that says which data was referenced (docs/format.md, "Data"). */
#ifndef CACHEGRAM_PROFILE_OBJECTS_H
#define CACHEGRAM_PROFILE_OBJECTS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/profile.h"

/* The profile has their names, not their numbers. */
enum profile_object_kind {
    PROFILE_OBJECT_VARIABLE = 0, /* global or static, by the symbol table of its module */
    PROFILE_OBJECT_SECTION,      /* of a module, where no symbol is: constants, code, stripped files */
    PROFILE_OBJECT_STACK,        /* of a thread */
    PROFILE_OBJECT_TLS,          /* thread-local variables of the main thread, and libc's own of it */
    PROFILE_OBJECT_HEAP,         /* what malloc got from brk */
    PROFILE_OBJECT_FILE,         /* mapped */
    PROFILE_OBJECT_ANONYMOUS,    /* mapped without a file */
    PROFILE_OBJECT_BLOCK,        /* allocated, by the call path of the allocation: table object_frame */
    PROFILE_OBJECT_UNKNOWN,      /* the mapping was not seen */
    PROFILE_OBJECT_OTHER,        /* there are more objects than the profile distinguishes */
    PROFILE_OBJECT_THREAD_LOCAL, /* variable of the program, of which each thread has its own */
    PROFILE_OBJECT_LOCAL,        /* large variable of a function, on a stack, by the debug information */
    PROFILE_OBJECT_KINDS
};

struct profile_object {
    uint64_t id;
    enum profile_object_kind kind;
    char *name;      /* demangled symbol, section, or what else there is to say; never NULL */
    char *module;    /* path of the file that it is in, or that it is; "": none */
    uint64_t offset; /* address in the module, or in a thread's block, as its symbol table has it; of a local
                      * variable the offset in the file of its function */
    uint64_t size;   /* 0: not known */
    uint64_t references, firsts; /* touches (an estimate), and of these first touches of a line */
};

/* A call of the path by which a block was allocated. */
struct profile_object_frame {
    uint64_t object;
    uint32_t depth;  /* 0: that of the allocation function; then its caller, ... */
    char *module;    /* path; "": code made at run time */
    uint64_t offset; /* in the file, right before the call's end */
    uint64_t frame;  /* id of its innermost frame; 0: nothing is known */
};

/* Whether it is named and, in the debug information, has a type. */
static inline int profile_object_is_variable(const struct profile_object *object)
{
    return object->kind == PROFILE_OBJECT_VARIABLE || object->kind == PROFILE_OBJECT_THREAD_LOCAL ||
           object->kind == PROFILE_OBJECT_LOCAL;
}
/* "variable", ...; kind below PROFILE_OBJECT_KINDS. */
const char *profile_object_kind(enum profile_object_kind kind);
/* With the id in it, which must be new. */
int profile_add_object(struct profile *p, const struct profile_object *object, struct error *err);
/* Touches of an object by a site, an estimate. */
int profile_add_site_object(struct profile *p, uint64_t site, uint64_t object, uint64_t references,
                            struct error *err);
/* All of them, by id; the caller frees by the function below. */
int profile_objects(struct profile *p, struct profile_object **objects, size_t *n, struct error *err);
void profile_objects_free(struct profile_object *objects, size_t n);
int profile_add_object_frame(struct profile *p, const struct profile_object_frame *frame, struct error *err);
/* All of them, by object and depth; the caller frees by the function below. */
int profile_object_frames(struct profile *p, struct profile_object_frame **frames, size_t *n,
                          struct error *err);
void profile_object_frames_free(struct profile_object_frame *frames, size_t n);

#endif
