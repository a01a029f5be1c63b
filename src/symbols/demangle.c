/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle.c - uses libstdc++'s demangler, which handles C++ and, since its names have the same form, Rust's
 * older scheme, and libiberty's for Rust's newer one ("_R...") and D ("_D..."). gfortran's names of what is
 * in a module are simple.
 */
#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cxxabi.h is a C++ header. */
char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *status);

#define IDENTIFIER "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$"

/* A mangled name of a few hundred bytes can demangle to gigabytes: each substitution may contain the previous
 * one twice. A name that would be longer than MOST_NAME is left mangled. One shorter than SHORT_NAME cannot
 * become that long, and is not tested. */
#define MOST_NAME 65536u
#define SHORT_NAME 128u

struct length {
    size_t n;
    jmp_buf too_long;
};

static void add_length(const char *text, size_t n, void *of)
{
    struct length *length = of;
    (void)text;
    length->n += n;
    if (length->n > MOST_NAME)
        longjmp(length->too_long, 1); /* the demanglers have nothing to free that is large */
}

static int is_too_long(const char *name, int options,
                       int (*demangle)(const char *, int, demangle_callbackref, void *))
{
    struct length length = {0};
    if (strlen(name) < SHORT_NAME)
        return 0;
    if (setjmp(length.too_long) != 0)
        return 1;
    demangle(name, options, add_length, &length);
    return 0;
}

/* Rust's names end with a hash: "::h" and 16 digits. Cuts it off; 0: it is not such a name. */
static int cut_hash(char *name)
{
    size_t n = strlen(name);
    if (n <= 19 || strncmp(name + n - 19, "::h", 3) != 0 || strspn(name + n - 16, "0123456789abcdef") != 16)
        return 0;
    name[n - 19] = '\0';
    return 1;
}

/* The character for which "$LT$" or "$u20$" is written, and the length of that; 0: it is something else. */
static char rust_escape(const char *text, size_t *length)
{
    static const struct {
        const char *text;
        char character;
    } escapes[] = {{"$SP$", '@'}, {"$BP$", '*'}, {"$RF$", '&'}, {"$LT$", '<'},
                   {"$GT$", '>'}, {"$LP$", '('}, {"$RP$", ')'}, {"$C$", ','}};
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        *length = strlen(escapes[i].text);
        if (strncmp(text, escapes[i].text, *length) == 0)
            return escapes[i].character;
    }
    char *end;
    unsigned long code = strncmp(text, "$u", 2) == 0 ? strtoul(text + 2, &end, 16) : 0;
    if (code < 0x20 || code > 0x7e || *end != '$')
        return 0;
    *length = (size_t)(end + 1 - text);
    return (char)code;
}

/* In place: no character becomes longer. */
static void decode_rust(char *name)
{
    char *to = name, escaped;
    size_t length;
    for (const char *from = name; *from != '\0';) {
        int begins = from == name || (from - name >= 2 && strncmp(from - 2, "::", 2) == 0);
        if (begins && strncmp(from, "_$", 2) == 0) {
            from++; /* since a name cannot begin with '$' */
        } else if ((escaped = rust_escape(from, &length)) != 0) {
            *to++ = escaped;
            from += length;
        } else if (strncmp(from, "..", 2) == 0) {
            *to++ = ':';
            *to++ = ':';
            from += 2;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/*
 * Where parameters begin: the last group of parentheses that is not within brackets, and is not "operator()"
 * or
 * "(anonymous namespace)". NULL: there are none.
 */
static char *find_parameters(char *name)
{
    char *open = NULL;
    int depth = 0, angle = 0;
    for (char *c = name; *c != '\0'; c++) {
        if (depth == 0 && strncmp(c, "operator", 8) == 0) {
            c += 8;
            if (strncmp(c, "()", 2) == 0)
                c += 2;
            else
                c += strspn(c, "<>=-");
            c--; /* the loop continues after the operator's name */
            continue;
        }
        if (*c == '<' && depth == 0)
            angle++;
        else if (*c == '>' && depth == 0)
            angle -= angle > 0;
        else if (*c == '(' && angle == 0 && depth++ == 0)
            open = strncmp(c, "(anonymous namespace)", 21) == 0 ? open : c;
        else if (*c == ')' && angle == 0 && depth > 0)
            depth--;
        else if (*c == ':' && depth == 0)
            open = NULL; /* they belong to a function that contains this one */
    }
    return open != name ? open : NULL;
}

/* Whether an operator's name begins there; it may have blanks, as in "operator unsigned long". */
static int is_operator(const char *name, const char *c)
{
    return strncmp(c, "operator", 8) == 0 && strcspn(c + 8, IDENTIFIER) > 0 &&
           (c == name || strchr(IDENTIFIER, c[-1]) == NULL);
}

/* Template functions have their result type in front: "void f<int>". */
static char *after_result(char *name)
{
    char *start = name;
    int angle = 0, depth = 0;
    for (char *c = name; *c != '\0' && (angle > 0 || depth > 0 || !is_operator(name, c)); c++) {
        angle += (*c == '<') - (*c == '>');
        depth += (*c == '(') - (*c == ')');
        if (*c == ' ' && angle == 0 && depth == 0)
            start = c + 1;
    }
    return *start != '\0' && *start != '[' && *start != '(' && *start != '{' ? start : name;
}

/* "__grid_MOD_field" is grid::field. NULL: another name, or memory is short. */
static char *fortran(const char *name)
{
    const char *middle = strncmp(name, "__", 2) == 0 ? strstr(name + 2, "_MOD_") : NULL;
    char *result = NULL;
    if (middle == NULL || middle == name + 2 || middle[5] == '\0' ||
        asprintf(&result, "%.*s::%s", (int)(middle - name - 2), name + 2, middle + 5) < 0)
        return NULL;
    return result;
}

/* Of C++ and Rust's older scheme; NULL: the name is not mangled so, or memory is short. */
static char *demangle_all(const char *name)
{
    int status = 0;
    if (strncmp(name, "_Z", 2) != 0 && strncmp(name, "__Z", 3) != 0)
        return NULL;
    /* LLVM gives local functions that it moves to another unit a number, which is no part of the name. */
    const char *suffix = strstr(name, ".llvm.");
    char *plain = suffix != NULL ? strndup(name, (size_t)(suffix - name)) : NULL;
    char *full = NULL;
    name = plain != NULL ? plain : name;
    if (!is_too_long(name, DMGL_PARAMS | DMGL_TYPES, cplus_demangle_v3_callback))
        full = __cxa_demangle(name, NULL, NULL, &status);
    free(plain);
    return full;
}

/* After a group of parentheses that begins at `open`; those in strings do not count. */
static const char *after_group(const char *open)
{
    int depth = 0;
    for (const char *c = open; *c != '\0'; c++) {
        if (*c == '"')
            for (c++; *c != '\0' && *c != '"'; c++)
                c += *c == '\\' && c[1] != '\0';
        depth += (*c == '(') - (*c == ')');
        if (*c == '\0' || depth == 0)
            return *c == '\0' ? c : c + 1;
    }
    return open + strlen(open);
}

/*
 * In place: "core.gc.mark!(false).mark(ulong).go() const" becomes "core.gc.mark!(false).mark.go". Parameters
 * of templates, after "!", stay; what follows a function's own, after a blank, goes with them.
 */
static void cut_d_parameters(char *name)
{
    char *to = name;
    for (const char *from = name; *from != '\0';) {
        const char *end = *from == '(' ? after_group(from) : from + 1;
        if (*from != '(' || (from > name && from[-1] == '!')) {
            memmove(to, from, (size_t)(end - from));
            to += end - from;
        } else if (*end != '.') {
            break;
        }
        from = end;
    }
    *to = '\0';
}

/* With parameters. NULL: not D's, or memory is short. */
static char *demangle_d(const char *name)
{
    return strncmp(name, "_D", 2) == 0 ? dlang_demangle(name, DMGL_NO_OPTS) : NULL;
}

char *symbols_demangle(const char *name)
{
    char *found;
    if ((found = demangle_d(name)) != NULL) {
        cut_d_parameters(found);
        return found;
    }
    if (strncmp(name, "_R", 2) == 0) {
        if (!is_too_long(name, DMGL_NO_OPTS, rust_demangle_callback))
            found = rust_demangle(name, DMGL_NO_OPTS);
        return found != NULL ? found : strdup(name);
    }
    char *full = demangle_all(name);
    if (full == NULL)
        return (found = fortran(name)) != NULL ? found : strdup(name);
    if (cut_hash(full)) {
        decode_rust(full);
        return full;
    }
    char *parameters = find_parameters(full);
    if (parameters != NULL)
        *parameters = '\0';
    char *result = strdup(after_result(full));
    free(full);
    return result;
}

char *symbols_demangle_overload(const char *name)
{
    char *full = demangle_d(name), *result = NULL;
    if (full != NULL) {
        char *plain = symbols_demangle(name);
        int has = plain != NULL && strcmp(plain, full) != 0;
        free(plain);
        if (!has)
            free(full);
        return has ? full : NULL;
    }
    full = demangle_all(name);
    char *parameters = full != NULL && !cut_hash(full) ? find_parameters(full) : NULL;
    if (parameters != NULL) {
        char *clone = strstr(parameters, " [clone ");
        if (clone != NULL)
            *clone = '\0';
        char *kept = strdup(parameters);
        *parameters = '\0';
        if (kept != NULL && asprintf(&result, "%s%s", after_result(full), kept) < 0)
            result = NULL;
        free(kept);
    }
    free(full);
    return result;
}

int symbols_is_of_standard_library(const char *name)
{
    static const char *const beginnings[] = {"std::", "__gnu_cxx::", "alloc::", "core::", "hashbrown::"};
    char *plain = symbols_demangle(name);
    const char *at = plain != NULL && *plain == '<' ? plain + 1 : plain;
    int is = 0;
    for (size_t i = 0; at != NULL && i < sizeof beginnings / sizeof beginnings[0]; i++)
        is |= strncmp(at, beginnings[i], strlen(beginnings[i])) == 0;
    free(plain);
    return is;
}
