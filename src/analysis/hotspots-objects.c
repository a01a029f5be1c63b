/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hotspots-objects.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base-name.h"
#include "base/fit-text.h"

#define NAME_CAPACITY 4096
#define PLACE_CAPACITY 300 /* of these, for the file's base name and the line */

/* Functions that allocate for others, as patterns. Not those that take large pieces for many callers, such as
 * GCC's garbage collector and g_slice_alloc: the one that happened to need the next piece does not own what
 * is in it. */
static const char *const usual_wrappers[] = {
    "xmalloc*",        "xcalloc*",         "xrealloc*",       "xzalloc*",         "xnmalloc*",
    "xnrealloc*",      "x2realloc*",       "x2nrealloc",      "xpalloc",          "xstrdup*",
    "xstrndup*",       "xmemdup*",         "safe_malloc*",    "g_malloc*",        "g_realloc*",
    "g_calloc*",       "g_try_malloc*",    "g_strdup*",       "g_memdup*",        "PyMem_*",
    "_PyMem_*",        "PyObject_Malloc",  "PyObject_Calloc", "PyObject_Realloc", "_PyObject_Malloc*",
    "operator new*",   "std::*",           "__gnu_cxx::*",    "__rust_alloc*",    "__rdl_alloc*",
    "__rdl_realloc*",  "Perl_safesys*",    "sqlite3Mem*",     "sqlite3Malloc*",   "sqlite3Realloc*",
    "alloc::*",        "<alloc::*",        "__rustc::*",      "core::*",          "<core::*",
    "<std::*",         "hashbrown::*",     "<hashbrown::*",   "<* as alloc::*",   "<* as core::*",
    "<* as std::*",    "*::operator new*", "zmalloc*",        "zcalloc*",         "zrealloc*",
    "ztrymalloc*",     "ztrycalloc*",      "ztryrealloc*",    "CRYPTO_malloc*",   "CRYPTO_zalloc*",
    "CRYPTO_realloc*", "ruby_xmalloc*",    "ruby_xcalloc*",   "ruby_xrealloc*",   "av_malloc*",
    "av_calloc*",      "av_realloc*",      "luaM_*",          "l_alloc",          "os::malloc*",
    "os::realloc*",    "__gnat_malloc*",   "__gnat_realloc*", "jv_mem_*",         "__zend_malloc*",
    "__zend_calloc*",  "__zend_realloc*",  "x264_malloc*",    "fftw*_malloc*",    "av_buffer_alloc*",
};

static int matches_one_of(const char *names, const char *function)
{
    char pattern[256];
    while (*names) {
        size_t length = strcspn(names, ",");
        snprintf(pattern, sizeof pattern, "%.*s", (int)(length < sizeof pattern ? length : 0), names);
        if (*pattern && analysis_function_matches(pattern, function))
            return 1;
        names += length + (names[length] == ',');
    }
    return 0;
}

static int is_wrapper(const char *function, const char *wrappers)
{
    for (size_t i = 0; i < sizeof usual_wrappers / sizeof usual_wrappers[0]; i++)
        if (fnmatch(usual_wrappers[i], function, 0) == 0)
            return 1;
    return wrappers && matches_one_of(wrappers, function);
}

/*
 * What says more than the function: the variable that has a block's address, "variable@depth" in a profile,
 * if it is of the function at that depth of the path, and not of a wrapper that is inlined there. NULL:
 * unknown.
 */
static char *variable_of(const char *name, size_t depth, const char *wrappers)
{
    const char *at = strrchr(name, '@');
    char *variable = at && strtoull(at + 1, NULL, 10) == depth ? strndup(name, (size_t)(at - name)) : NULL;
    char *end = variable ? strrchr(variable, ':') : NULL;
    if (!end || end == variable)
        return variable;
    end[-1] = '\0';
    int is_wrappers = is_wrapper(variable, wrappers);
    end[-1] = ':';
    if (!is_wrappers)
        return variable;
    free(variable);
    return NULL;
}

/* The frame to be shown of a call path of n places, and its place: the innermost that allocates for itself.
 * Code of installed headers does so for the program, if that is in the path. If no frame is known to allocate
 * for itself, the outermost one, as a path may be cut. NULL: none has a name. */
static const struct profile_frame *choose(const struct analysis_hotspots *h,
                                          const struct profile_object_frame *path, size_t n,
                                          const char *wrappers, const struct profile_object_frame **place)
{
    const struct profile_frame *last = NULL, *header = NULL;
    const struct profile_object_frame *header_place = path;
    *place = path;
    for (size_t i = 0; i < n; i++) {
        const struct profile_frame *frame = analysis_frame_of(h, path[i].frame);
        if (!frame && i == 0)
            return NULL;
        for (; frame; frame = analysis_caller(h, frame)) {
            if (!*frame->function)
                continue;
            last = frame;
            *place = &path[i];
            if (is_wrapper(frame->function, wrappers))
                continue;
            if (analysis_is_own(frame) || (!*frame->file && !header))
                return frame;
            header_place = header ? header_place : &path[i];
            header = header ? header : frame;
        }
    }
    *place = header ? header_place : *place;
    return header ? header : last;
}

/* Functions of a path inside the shown one; of more, the outermost. */
#define MOST_INNER 24u

struct named_block {
    struct profile_object *object;
    const struct profile_frame *inner[MOST_INNER]; /* from the shown one inwards */
    size_t ninner;
    uint32_t column; /* of the call in the line that the name has; 0: not known */
    uint64_t frame;  /* of that line, if it is of Fortran; else 0 */
    uint64_t offset; /* of the call in its module */
};

static int is_fortran(const char *file)
{
    const char *ending = strrchr(file, '.');
    return ending && (fnmatch(".[fF]", ending, 0) == 0 || fnmatch(".[fF][0-9][0-9]", ending, 0) == 0 ||
                      strcasecmp(ending, ".for") == 0);
}

/* The frames of a path inside the one that is shown. */
static void find_inner(const struct analysis_hotspots *h, const struct profile_object_frame *path, size_t n,
                       const struct profile_frame *shown, struct named_block *block)
{
    block->ninner = 0;
    for (size_t i = 0; i < n; i++)
        for (const struct profile_frame *frame = analysis_frame_of(h, path[i].frame); frame;
             frame = analysis_caller(h, frame)) {
            if (frame == shown)
                return;
            size_t kept = block->ninner < MOST_INNER ? block->ninner : MOST_INNER - 1;
            memmove(block->inner + 1, block->inner, kept * sizeof block->inner[0]);
            block->inner[0] = frame;
            block->ninner = kept + 1;
        }
    block->ninner = 0;
}

static int name_block(const struct analysis_hotspots *h, const struct profile_object_frame *path, size_t n,
                      const char *wrappers, struct named_block *block)
{
    struct profile_object *object = block->object;
    char text[NAME_CAPACITY] = "unknown code";
    const struct profile_object_frame *place = NULL;
    const struct profile_frame *frame = n > 0 ? choose(h, path, n, wrappers, &place) : NULL;
    char *variable = frame ? variable_of(object->name, (size_t)(place - path), wrappers) : NULL;
    if (frame)
        fit_text(text, sizeof text - PLACE_CAPACITY, "", variable ? variable : frame->function);
    free(variable);
    if (frame && *frame->file)
        snprintf(text + strlen(text), PLACE_CAPACITY, " %s:%s%" PRIu32, base_name(frame->file),
                 frame->guessed ? "~" : "", frame->line);
    if (!frame && place && *place->module)
        snprintf(text, sizeof text, "%s+0x%" PRIx64, base_name(place->module), place->offset);
    find_inner(h, path, frame ? n : 0, frame, block);
    block->column = frame && *frame->file ? frame->column : 0;
    block->frame = frame && is_fortran(frame->file) ? frame->id : 0;
    block->offset = place ? place->offset : 0;
    free(object->name);
    free(object->module);
    object->name = strdup(text);
    object->module = strdup(place ? place->module : "");
    return object->name && object->module ? 0 : -ENOMEM;
}

static int compare(const void *a, const void *b)
{
    const struct profile_object *x = *(struct profile_object *const *)a,
                                *y = *(struct profile_object *const *)b;
    int order = (int)x->kind - (int)y->kind;
    if (order == 0)
        order = x->offset < y->offset ? -1 : x->offset > y->offset;
    if (order == 0)
        order = strcmp(x->name, y->name);
    if (order == 0)
        order = strcmp(x->module, y->module);
    return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

static int compare_blocks(const void *a, const void *b)
{
    const struct named_block *x = a, *y = b;
    int order = strcmp(x->object->name, y->object->name);
    if (order == 0)
        order = strcmp(x->object->module, y->object->module);
    if (order == 0)
        order = x->column < y->column ? -1 : x->column > y->column;
    return order ? order : x->offset < y->offset ? -1 : x->offset > y->offset;
}

/*
 * gfortran's columns are those of statements: "main a.f90:7 call 2" for the second array of an
 * "allocate(a(n), b(n))". blocks[n] of one name are in the order of the code. If the line was inlined to
 * several places, the calls there may be copies, and remain one object. 0 or -ENOMEM.
 */
static int number_calls(struct named_block *blocks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (blocks[i].frame == 0 || blocks[i].frame != blocks[0].frame)
            return 0;
    if (n == 0 || blocks[n - 1].offset == blocks[0].offset)
        return 0;
    for (size_t i = 0, call = 0; i < n; i++) {
        char *name;
        call += i == 0 || blocks[i].offset != blocks[i - 1].offset;
        if (asprintf(&name, "%s call %zu", blocks[i].object->name, call) < 0)
            return -ENOMEM;
        free(blocks[i].object->name);
        blocks[i].object->name = name;
    }
    return 0;
}

/* "_M_allocate_node" of "std::_Hashtable<...>::_M_allocate_node<int>(int&&)". */
static void shorten_function(const char *function, char *text, size_t size)
{
    const char *first = function, *end = NULL;
    int depth = 0;
    for (const char *at = function; *at; at++) {
        if (depth == 0 && strncmp(at, "operator", 8) == 0) { /* may have brackets in its name */
            end = strncmp(at, "operator=<", 10) == 0 ? at + 9 : NULL;
            break;
        }
        if (depth == 0 && (*at == '<' || *at == '('))
            end = end ? end : at;
        depth += (*at == '<' || *at == '(') - (*at == '>' || *at == ')');
        if (depth == 0 && strncmp(at, "::", 2) == 0) {
            first = at + 2;
            end = NULL;
        }
    }
    snprintf(text, size, "%.*s", end ? (int)(end - first) : (int)strlen(first), first);
}

static const char *inner_function(const struct named_block *block, size_t i)
{
    return i < block->ninner ? block->inner[i]->function : "";
}

/* "main a.cpp:7 by _M_allocate_buckets" where a line calls a library that allocates in several of its
 * functions: the outermost one in which the call paths differ. Not in Rust, where the first piece of a Vec
 * and the larger ones that follow are allocated by different functions. blocks[n] have one name. */
static int name_inner(struct named_block *blocks, size_t n)
{
    size_t at = 0, differ = 0;
    for (; at < MOST_INNER && !differ; at += !differ)
        for (size_t i = 1; i < n; i++)
            differ += strcmp(inner_function(&blocks[i], at), inner_function(&blocks[0], at)) != 0;
    for (size_t i = 0; i < n && differ; i++) {
        char text[128], *name;
        shorten_function(inner_function(&blocks[i], at), text, sizeof text);
        if (!*text)
            continue;
        if (asprintf(&name, "%s by %s", blocks[i].object->name, text) < 0)
            return -ENOMEM;
        free(blocks[i].object->name);
        blocks[i].object->name = name;
    }
    return 0;
}

static int is_rust(const struct named_block *block)
{
    for (size_t i = 0; i < block->ninner; i++)
        if (fnmatch("*.rs", block->inner[i]->file, 0) == 0)
            return 1;
    return 0;
}

/* "main a.c:7:14" where blocks are allocated by several calls in line 7. Copies that the compiler made of one
 * call have its column, and are one object. */
static int tell_apart(struct named_block *blocks, size_t n)
{
    if (n > 0)
        qsort(blocks, n, sizeof *blocks, compare_blocks);
    for (size_t first = 0, end; first < n; first = end) {
        const struct profile_object *object = blocks[first].object;
        for (end = first + 1; end < n && strcmp(blocks[end].object->name, object->name) == 0 &&
                              strcmp(blocks[end].object->module, object->module) == 0;)
            end++;
        int several = blocks[end - 1].column != blocks[first].column;
        for (size_t i = first; i < end && several; i++) {
            char *name;
            if (blocks[i].column == 0)
                continue;
            if (asprintf(&name, "%s:%" PRIu32, blocks[i].object->name, blocks[i].column) < 0)
                return -ENOMEM;
            free(blocks[i].object->name);
            blocks[i].object->name = name;
        }
        if (!several && number_calls(&blocks[first], end - first) < 0)
            return -ENOMEM;
        for (size_t i = first, next; i < end; i = next) {
            for (next = i + 1; next < end && blocks[next].column == blocks[i].column;)
                next++;
            if (!is_rust(&blocks[i]) && name_inner(&blocks[i], next - i) < 0)
                return -ENOMEM;
        }
    }
    return 0;
}

static int is_same(const struct profile_object *x, const struct profile_object *y)
{
    return x->kind == y->kind && x->offset == y->offset && strcmp(x->name, y->name) == 0 &&
           strcmp(x->module, y->module) == 0;
}

static int find_same(struct analysis_hotspots *h)
{
    struct profile_object **sorted = calloc(h->ndata + 1, sizeof(struct profile_object *));
    h->same = calloc(h->ndata + 1, sizeof *h->same);
    if (!sorted || !h->same) {
        free(sorted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < h->ndata; i++)
        sorted[i] = &h->data[i];
    if (h->ndata > 0)
        qsort(sorted, h->ndata, sizeof(struct profile_object *), compare);
    for (size_t i = 0, first = 0; i < h->ndata; i++) {
        first = is_same(sorted[first], sorted[i]) ? first : i;
        h->same[sorted[i] - h->data] = (uint32_t)(sorted[first] - h->data);
    }
    free(sorted);
    return 0;
}

static void take_counter(void *ctx, const char *name, uint64_t value)
{
    struct analysis_hotspots *h = ctx;
    h->own_malloc |= strcmp(name, "heap_replaced") == 0 && value != 0;
}

int analysis_objects_load(struct profile *p, struct analysis_hotspots *h, const char *wrappers,
                          struct error *err)
{
    struct profile_object_frame *paths = NULL;
    size_t n = 0;
    int code = profile_objects(p, &h->data, &h->ndata, err);
    if (code == 0)
        code = profile_object_frames(p, &paths, &n, err);
    if (code == 0)
        code = profile_counters(p, take_counter, h, err);
    if (code < 0) {
        profile_object_frames_free(paths, n);
        return code;
    }
    struct named_block *blocks = calloc(h->ndata + 1, sizeof *blocks);
    size_t nblocks = 0;
    if (!blocks)
        code = -ENOMEM;
    for (size_t i = 0, at = 0; i < h->ndata && code == 0; i++) {
        struct profile_object *object = &h->data[i];
        size_t first, length = 0;
        while (at < n && paths[at].object < object->id)
            at++;
        for (first = at; at < n && paths[at].object == object->id; at++)
            length++;
        if (object->kind != PROFILE_OBJECT_BLOCK)
            continue;
        blocks[nblocks].object = object;
        code = name_block(h, paths + first, length, wrappers, &blocks[nblocks++]);
    }
    if (!(h->allocations = calloc(h->ndata + 1, sizeof *h->allocations)))
        code = -ENOMEM;
    for (size_t i = 0; i < nblocks && code == 0; i++)
        h->allocations[blocks[i].object - h->data] =
            (struct analysis_allocation){strlen(blocks[i].object->name), blocks[i].column, blocks[i].offset};
    if (code == 0)
        code = tell_apart(blocks, nblocks);
    free(blocks);
    if (code == 0)
        code = find_same(h);
    profile_object_frames_free(paths, n);
    return code == 0 ? 0 : error_set(err, code, "out of memory for the data objects");
}
