/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mangled.c - finds overloads without demangling every name of an image.
 *
 * A mangled name ends with its parameters, so overloads are neighbours in the order of strcmp, with at most
 * instances of a template of that name between them. Only a const member differs at its beginning, "_ZNK".
 * D's names, "_D", end with parameters, too.
 *
 * Example: _Z4walkIiEvT_ (walk<int>), _Z4walkd (walk(double)), _Z4walkl (walk(long)).
 */
#include "symbols/mangled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/demangle.h"

void mangled_add(struct mangled *m, const char *name)
{
    if ((strncmp(name, "_Z", 2) == 0 || strncmp(name, "_D", 2) == 0) &&
        ARRAY_GROW(m->names, m->n, m->capacity) == 0)
        m->names[m->n++] = (struct mangled_name){name, -1};
}

static int compare(const void *a, const void *b)
{
    const struct mangled_name *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void mangled_sort(struct mangled *m)
{
    if (m->n > 0)
        qsort(m->names, m->n, sizeof *m->names, compare);
}

void mangled_clear(struct mangled *m)
{
    free(m->names);
    *m = (struct mangled){0};
}

/* The first that is not before `name`. */
static size_t find(const struct mangled *m, const char *name)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(m->names[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* 1: an overload of the function `plain`, which is `full` with parameters. 0: the function itself, or an
 * instance of a template of that name. -1: another function. */
static int is_overload(const char *name, const char *plain, const char *full)
{
    char *other = symbols_demangle(name), *other_full = NULL;
    size_t n = strlen(plain);
    int found = -1;
    if (other != NULL && strncmp(other, plain, n) == 0 && (other[n] == '\0' || other[n] == '<')) {
        other_full = other[n] == '\0' ? symbols_demangle_overload(name) : NULL;
        found = other_full != NULL && strcmp(other_full, full) != 0;
    }
    free(other);
    free(other_full);
    return found;
}

/* Around where `name` is, or would be. */
static int look_around(const struct mangled *m, const char *name, const char *plain, const char *full)
{
    size_t middle = find(m, name);
    int found = 0;
    for (size_t i = middle; i < m->n && found == 0; i++)
        found = is_overload(m->names[i].name, plain, full);
    if (found == 1)
        return 1;
    found = 0;
    for (size_t i = middle; i > 0 && found == 0; i--)
        found = is_overload(m->names[i - 1].name, plain, full);
    return found == 1;
}

static int has_overload(const struct mangled *m, const char *name)
{
    char *plain = symbols_demangle(name), *full = symbols_demangle_overload(name), *other = NULL;
    int found = 0;
    if (plain != NULL && full != NULL) {
        found = look_around(m, name, plain, full);
        int is_const = strncmp(name, "_ZNK", 4) == 0;
        if (!found && strncmp(name, "_ZN", 3) == 0 &&
            asprintf(&other, "_ZN%s%s", is_const ? "" : "K", name + (is_const ? 4 : 3)) >= 0) {
            found = look_around(m, other, plain, full);
            free(other);
        }
    }
    free(plain);
    free(full);
    return found;
}

int mangled_has_overload(struct mangled *m, const char *name)
{
    size_t at = find(m, name), n = strlen(name);
    if (at == m->n || strncmp(m->names[at].name, name, n) != 0 ||
        (m->names[at].name[n] != '\0' && m->names[at].name[n] != '.')) /* '.': of a clone */
        return 0;
    if (m->names[at].overloaded < 0)
        m->names[at].overloaded = has_overload(m, name);
    return m->names[at].overloaded;
}
