/* SPDX-License-Identifier: Apache-2.0 */
#include "pirate/code-place.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pirate/elf-symbol.h"

#define MODULES 1024

/* A file that the process has mapped, and its executable part. */
struct module {
    char *path;
    uint64_t start;            /* address of its first byte; 0: not mapped */
    uint64_t from, to, offset; /* its code */
};

struct modules {
    struct module list[MODULES];
    size_t n;
    size_t own, loader; /* indices of the program and of the dynamic loader; n: none */
};

static int is_number(const char *text, uint64_t *value)
{
    char *end;
    if (strncmp(text, "0x", 2) != 0 || !isxdigit((unsigned char)text[2]))
        return 0;
    errno = 0;
    *value = strtoull(text, &end, 16);
    return *end == '\0' && errno == 0;
}

int code_place_check(const char *text, struct error *err)
{
    uint64_t value;
    const char *colon = strrchr(text, ':'), *name = colon ? colon + 1 : text;
    if (*name == '\0' || colon == text || (strncmp(name, "0x", 2) == 0 && !is_number(name, &value)))
        return error_set(err, -EINVAL,
                         "'%s' cannot be resolved: write FUNCTION, FILE:FUNCTION, FILE:0xOFFSET or 0xADDRESS",
                         text);
    return 0;
}

/* A value of the auxiliary vector, which the kernel passed to the program at its start; 0: none. */
static uint64_t auxiliary(pid_t pid, uint64_t type)
{
    char path[64];
    Elf64_auxv_t entry;
    uint64_t value = 0;
    snprintf(path, sizeof path, "/proc/%d/auxv", pid);
    FILE *f = fopen(path, "re");
    while (f && value == 0 && fread(&entry, sizeof entry, 1, f) == 1 && entry.a_type != AT_NULL)
        if (entry.a_type == type)
            value = entry.a_un.a_val;
    if (f)
        fclose(f);
    return value;
}

int code_place_entry(pid_t pid, uint64_t *address, struct error *err)
{
    uint64_t entry = auxiliary(pid, AT_ENTRY);
    if (entry == 0)
        return error_set(err, -ESRCH, "cannot find the entry point of process %d", pid);
    *address = entry;
    return 0;
}

static void modules_clear(struct modules *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->list[i].path);
    m->n = 0;
}

static struct module *module_of(struct modules *m, const char *path)
{
    for (size_t i = m->n; i-- > 0;)
        if (strcmp(m->list[i].path, path) == 0)
            return &m->list[i];
    char *copy = m->n < MODULES ? strdup(path) : NULL;
    if (!copy)
        return NULL;
    m->list[m->n] = (struct module){.path = copy};
    return &m->list[m->n++];
}

static int modules_read(pid_t pid, struct modules *m, struct error *err)
{
    char link[64], maps[64], own[PATH_MAX], line[PATH_MAX + 128];
    uint64_t loader = auxiliary(pid, AT_BASE);
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    snprintf(maps, sizeof maps, "/proc/%d/maps", pid);
    ssize_t n = readlink(link, own, sizeof own - 1);
    FILE *f = n > 0 ? fopen(maps, "re") : NULL;
    m->n = 0;
    if (!f)
        return error_set(err, -errno, "cannot find the program of process %d: %s", pid, strerror(errno));
    own[n] = '\0';
    while (fgets(line, sizeof line, f)) {
        unsigned long from, to, offset;
        char may[5];
        int at = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %*u %n", &from, &to, may, &offset, &at) != 4 || at == 0 ||
            line[at] != '/')
            continue;
        struct module *one = module_of(m, line + at);
        if (one && offset == 0 && one->start == 0)
            one->start = from;
        if (one && may[2] == 'x' && one->to == 0) {
            one->from = from;
            one->to = to;
            one->offset = offset;
        }
    }
    fclose(f);
    m->own = m->loader = m->n;
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->list[i].path, own) == 0)
            m->own = i;
        else if (loader != 0 && m->list[i].start == loader)
            m->loader = i;
    }
    return 0;
}

/* Finds the function in one file. 0, -ENOENT, -EINVAL. */
static int find_in(pid_t pid, const struct modules *m, size_t i, const char *name, uint64_t *address,
                   struct error *err)
{
    char path[PATH_MAX + 64];
    struct elf_symbol symbol;
    const struct module *one = &m->list[i];
    if (one->to == 0 || one->start == 0)
        return -ENOENT;
    if (i == m->own)
        snprintf(path, sizeof path, "/proc/%d/exe", pid);
    else
        snprintf(path, sizeof path, "/proc/%d/root%s", pid, one->path);
    if (elf_symbol_find(path, name, &symbol, NULL) != 0)
        return -ENOENT;
    if (symbol.is_chosen)
        return error_set(
            err, -EINVAL,
            "'%s' of %s is an ifunc, which selects one of several functions for the CPU: name that function",
            name, one->path);
    uint64_t found = one->start - symbol.base + symbol.value;
    if (!symbol.is_function && !(found >= one->from && found < one->to))
        return -ENOENT; /* a variable */
    *address = found;
    return 0;
}

static int is_named(const struct module *one, const char *file, size_t length)
{
    size_t n = strlen(one->path);
    return n >= length && strncmp(one->path + n - length, file, length) == 0 &&
           (n == length || one->path[n - length - 1] == '/');
}

static int find_in_file(pid_t pid, const struct modules *m, const char *text, const char *colon,
                        uint64_t *address, struct error *err)
{
    size_t length = (size_t)(colon - text);
    uint64_t offset;
    int known = 0, code = -ENOENT;
    for (size_t i = 0; i < m->n && code == -ENOENT; i++) {
        const struct module *one = &m->list[i];
        if (!is_named(one, text, length))
            continue;
        known = 1;
        if (!is_number(colon + 1, &offset)) {
            code = find_in(pid, m, i, colon + 1, address, err);
        } else if (offset >= one->offset && offset - one->offset < one->to - one->from) {
            *address = one->from + (offset - one->offset);
            code = 0;
        }
    }
    if (code == -ENOENT)
        error_set(err, code,
                  known ? "%.*s has no code '%s' (stripped, or inlined?)"
                        : "the program has not loaded %.*s, so there is no '%s' in it",
                  (int)length, text, colon + 1);
    return code;
}

/*
 * Searches the program first, then libraries in the order of the loader's search: later ones are mapped below
 * earlier ones; the loader itself comes last.
 */
static int find_by_name(pid_t pid, const struct modules *m, const char *name, int own_only, uint64_t *address,
                        struct error *err)
{
    int code = m->own < m->n ? find_in(pid, m, m->own, name, address, err) : -ENOENT;
    for (size_t i = m->n; i-- > 0 && code == -ENOENT && !own_only;)
        if (i != m->own && i != m->loader)
            code = find_in(pid, m, i, name, address, err);
    if (code == -ENOENT && !own_only && m->loader < m->n)
        code = find_in(pid, m, m->loader, name, address, err);
    if (code == -ENOENT)
        error_set(err, code,
                  "neither the program nor the libraries that it has loaded have a function '%s' (stripped, "
                  "inlined, or loaded later?)",
                  name);
    return code;
}

static int find_address(const struct modules *m, uint64_t wanted, uint64_t *address, struct error *err)
{
    for (size_t i = 0; i < m->n; i++)
        if (wanted >= m->list[i].from && wanted < m->list[i].to) {
            *address = wanted;
            return 0;
        }
    return error_set(err, -ENOENT, "the program has no code at %#llx", (unsigned long long)wanted);
}

int code_place_find(pid_t pid, const char *text, int own_only, uint64_t *address, struct error *err)
{
    const char *colon = strrchr(text, ':');
    uint64_t number;
    struct modules *m = malloc(sizeof *m);
    if (!m)
        return error_set(err, -ENOMEM, "out of memory");
    int code = modules_read(pid, m, err);
    if (code == 0)
        code = colon                      ? find_in_file(pid, m, text, colon, address, err)
               : is_number(text, &number) ? find_address(m, number, address, err)
                                          : find_by_name(pid, m, text, own_only, address, err);
    modules_clear(m);
    free(m);
    return code;
}
