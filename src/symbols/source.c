/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Source files are smaller; another file of that name must not fill the memory. */
#define MOST_BYTES (64 << 20)

static int read_all(int fd, size_t size, struct source *source)
{
    size_t used = 0;
    source->text = malloc(size + 1);
    if (!source->text)
        return -ENOMEM;
    while (used < size) {
        ssize_t got = read(fd, source->text + used, size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    source->text[used] = '\0';
    for (size_t i = 0; i < used; i++)
        if (source->text[i] == '\0')
            source->text[i] = '?';
    return 0;
}

static int split(struct source *source)
{
    size_t n = 1;
    for (const char *at = source->text; (at = strchr(at, '\n')) != NULL; at++)
        n++;
    source->lines = calloc(n, sizeof *source->lines);
    if (!source->lines)
        return -ENOMEM;
    for (char *line = source->text; *line;) {
        char *end = strchr(line, '\n');
        source->lines[source->nlines++] = line;
        if (!end)
            break;
        *end = '\0';
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
        line = end + 1;
    }
    return 0;
}

static int load(const char *path, struct source *source)
{
    struct stat st;
    /* Not blocking: the name may be that of a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code = 0;
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? -ENOENT : -errno;
    if (fstat(fd, &st) != 0)
        code = -errno;
    else if (!S_ISREG(st.st_mode))
        code = -ENOENT;
    else if (st.st_size > MOST_BYTES)
        code = -EFBIG;
    if (code == 0)
        code = read_all(fd, (size_t)st.st_size, source);
    close(fd);
    if (code == 0)
        code = split(source);
    if (code == 0 && !(source->path = strdup(path)))
        code = -ENOMEM;
    if (code != 0)
        source_clear(source);
    else
        source->changed = st.st_mtim;
    return code;
}

static int load_in(const char *folder, size_t length, const char *name, struct source *source)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.*s%s%s", (int)length, folder, *name == '/' ? "" : "/", name);
    return n > 0 && (size_t)n < sizeof path ? load(path, source) : -ENOENT;
}

/* With NEW instead of OLD, if the name begins with that folder. */
static int load_mapped(const char *map, const char *name, struct source *source)
{
    const char *equals = strchr(map, '=');
    size_t old = equals ? (size_t)(equals - map) : 0;
    while (old > 1 && map[old - 1] == '/')
        old--;
    if (!equals || old == 0 || strncmp(name, map, old) != 0 || (name[old] != '/' && map[old - 1] != '/'))
        return -ENOENT;
    return load_in(equals + 1, strlen(equals + 1), name + old, source);
}

int source_load(const char *name, const struct source_search *search, struct source *source)
{
    int code = -ENOENT;
    *source = (struct source){0};
    for (size_t i = 0; i < search->nmaps && code == -ENOENT; i++)
        code = load_mapped(search->maps[i], name, source);
    if (code == -ENOENT)
        code = load(name, source);
    for (size_t i = 0; i < search->nfolders && code == -ENOENT; i++)
        for (const char *rest = name; rest && code == -ENOENT;) {
            code = load_in(search->folders[i], strlen(search->folders[i]), rest, source);
            rest = strchr(rest, '/');
            while (rest && *rest == '/')
                rest++;
        }
    return code;
}

void source_clear(struct source *source)
{
    free(source->path);
    free(source->text);
    free(source->lines);
    *source = (struct source){0};
}
