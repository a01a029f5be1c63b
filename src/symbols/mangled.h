/* SPDX-License-Identifier: Apache-2.0 */
/* mangled.h - the mangled names of one image, to tell which functions of C++ are overloaded. */
#ifndef CACHEGRAM_SYMBOLS_MANGLED_H
#define CACHEGRAM_SYMBOLS_MANGLED_H

#include <stddef.h>

struct mangled_name {
    const char *name;
    int overloaded; /* -1: not asked for yet */
};

/* Starts as zeros. */
struct mangled {
    struct mangled_name *names; /* after mangled_sort: in the order of strcmp */
    size_t n, capacity;
};

/* Keeps the pointer, if it is a name of C++. When memory is short, a name is missing. */
void mangled_add(struct mangled *m, const char *name);

/* After the last mangled_add. */
void mangled_sort(struct mangled *m);

/* 1: another function of the image has other parameters, and else the same name. 0 if `name` is not one of
 * the image's: it is inlined everywhere. */
int mangled_has_overload(struct mangled *m, const char *name);

void mangled_clear(struct mangled *m);

#endif
