/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle.c - uses libstdc++'s demangler, which handles C++ and, since its names have the same form, Rust's
 * older scheme. It does not handle Rust's newer one ("_R..."). gfortran's names of what is in a module are
 * simple.
 */
#include "symbols/demangle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cxxabi.h is a C++ header. */
char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *status);

/* Rust's names end with a hash: "::h" and 16 digits. */
static void cut_hash(char *name)
{
    size_t n = strlen(name);
    if (n > 19 && strncmp(name + n - 19, "::h", 3) == 0 && strspn(name + n - 16, "0123456789abcdef") == 16)
        name[n - 19] = '\0';
}

/*
 * Removes parameters and everything after them: the last group of parentheses that is not within brackets,
 * and is not "operator()" or "(anonymous namespace)".
 */
static void cut_parameters(char *name)
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
    if (open != NULL && open != name)
        *open = '\0';
}

/* Template functions have their result type in front: "void f<int>". */
static char *after_result(char *name)
{
    char *start = name;
    int angle = 0, depth = 0;
    if (strstr(name, "operator") != NULL)
        return name;
    for (char *c = name; *c != '\0'; c++) {
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

char *symbols_demangle(const char *name)
{
    int status = 0;
    char *found;
    if (strncmp(name, "_Z", 2) != 0 && strncmp(name, "__Z", 3) != 0)
        return (found = fortran(name)) != NULL ? found : strdup(name);
    char *full = __cxa_demangle(name, NULL, NULL, &status);
    if (full == NULL)
        return strdup(name);
    cut_hash(full);
    cut_parameters(full);
    char *result = strdup(after_result(full));
    free(full);
    return result;
}
