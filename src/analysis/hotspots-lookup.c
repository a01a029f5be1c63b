/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots-lookup.c - what a table refers to by id. Ids of images and frames are consecutive, from 1 on
 * (symbols/name.c). */
#include "analysis/hotspots.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base-name.h"
#include "base/fit-text.h"

const struct profile_image *analysis_image_of(const struct analysis_hotspots *h, uint64_t id)
{
    return id >= 1 && id <= h->nimages && h->images[id - 1].id == id ? &h->images[id - 1] : NULL;
}

const struct profile_frame *analysis_frame_of(const struct analysis_hotspots *h, uint64_t id)
{
    return id >= 1 && id <= h->nframes && h->frames[id - 1].id == id ? &h->frames[id - 1] : NULL;
}

const struct profile_frame *analysis_caller(const struct analysis_hotspots *h,
                                            const struct profile_frame *frame)
{
    /* Callers have smaller ids: corrupt profiles cannot cause endless chains. */
    return frame->caller < frame->id ? analysis_frame_of(h, frame->caller) : NULL;
}

void analysis_object_text(const struct profile_object *object, char *text, size_t size)
{
    static const char *const beginnings[PROFILE_OBJECT_KINDS] = {
        [PROFILE_OBJECT_VARIABLE] = "",
        [PROFILE_OBJECT_BLOCK] = "blocks of ",
        [PROFILE_OBJECT_FILE] = "the file ",
        [PROFILE_OBJECT_STACK] = "the stack of ",
        [PROFILE_OBJECT_TLS] = "thread-local data of ",
        [PROFILE_OBJECT_THREAD_LOCAL] = "thread-local ",
        [PROFILE_OBJECT_LOCAL] = "",
    };
    const char *beginning = object ? beginnings[object->kind] : NULL;
    *text = '\0';
    if (beginning)
        fit_text(text, size, beginning,
                 object->kind == PROFILE_OBJECT_FILE ? base_name(object->name) : object->name);
}

static int is_pattern_of(const char *pattern, const char *name)
{
    return strcmp(pattern, name) == 0 || fnmatch(pattern, name, 0) == 0;
}

/* Likewise of the name without its parameters. */
static int is_pattern_of_function(const char *pattern, const char *function)
{
    if (is_pattern_of(pattern, function))
        return 1;
    for (const char *at = strchr(function, '('); at; at = strchr(at + 1, '(')) {
        char *before = strndup(function, (size_t)(at - function));
        int found = before && *before && is_pattern_of(pattern, before);
        free(before);
        if (found)
            return 1;
    }
    return 0;
}

/* Whether a function's name ends there, but for parameters and for arguments of a template: "C<int>::f" does
 * not end after C. */
static int ends(const char *at)
{
    int depth = 0;
    if (*at != '<')
        return strchr("( ", *at) != NULL;
    do
        depth += (*at == '<') - (*at == '>');
    while (*at++ != '\0' && depth > 0);
    return depth > 0 || *at != ':';
}

static int begins(const char *function, const char *at)
{
    return at == function || strchr(" .*~^", at[-1]) != NULL ||
           (at - function >= 2 && at[-1] == ':' && at[-2] == ':');
}

int analysis_function_matches(const char *asked, const char *function)
{
    size_t n = strlen(asked);
    int depth = 0, is_pattern = strpbrk(asked, "*?[") != NULL;
    if (n == 0)
        return 0;
    if (is_pattern_of_function(asked, function))
        return 1;
    for (const char *at = function; *at != '\0'; at++) {
        if (depth <= 0 && begins(function, at) &&
            ((strncmp(at, asked, n) == 0 && ends(at + n)) ||
             (is_pattern && is_pattern_of_function(asked, at))))
            return 1;
        depth += (*at == '<' || *at == '(') - (*at == '>' || *at == ')');
    }
    return 0;
}

static int is_installed(const char *file)
{
    static const char *const beginnings[] = {"/usr/include/", "/usr/lib/", "/usr/local/include/",
                                             /* Rust's library as it is shipped, compiled */
                                             "library/core/src/", "library/alloc/src/", "library/std/src/"};
    static const char *const parts[] = {"/include/c++/", "/lib/gcc/",   "/lib/clang/",       "/rustc/",
                                        "/rustlib/",     "/rust/deps/", "/.cargo/registry/", "/.cargo/git/"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(file, beginnings[i], strlen(beginnings[i])) == 0)
            return 1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(file, parts[i]) != NULL)
            return 1;
    return 0;
}

int analysis_is_own(const struct profile_frame *frame)
{
    return *frame->file && !is_installed(frame->file);
}

const struct profile_frame *analysis_own_frame(const struct analysis_hotspots *h,
                                               const struct profile_frame *frame)
{
    for (const struct profile_frame *at = frame; at != NULL; at = analysis_caller(h, at))
        if (analysis_is_own(at))
            return at;
    return frame;
}

const struct profile_object *analysis_object_of(const struct analysis_hotspots *h, uint64_t id)
{
    size_t end = ARRAY_UP_TO(h->data, h->ndata, id, id); /* objects that were never touched have no row */
    return end > 0 && h->data[end - 1].id == id ? &h->data[h->same[end - 1]] : NULL;
}
