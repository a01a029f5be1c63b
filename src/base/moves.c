/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/moves.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_TRIED 1000u

/* An unused name in the folder of `path`, short regardless of the file's own name; NULL: none. */
static char *spare_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    int folder = slash != NULL ? (int)(slash + 1 - path) : 0;
    struct stat st;
    for (unsigned i = 0; i < NAMES_TRIED; i++) {
        char *name;
        if (asprintf(&name, "%.*s.cachegram-%d-%u", folder, path, (int)getpid(), i) < 0)
            return NULL;
        if (lstat(name, &st) != 0 && errno == ENOENT)
            return name;
        free(name);
    }
    return NULL;
}

static int note(struct moves *m, const char *from, char *to, int spare)
{
    char *copy = strdup(from);
    if (copy == NULL || to == NULL || m->n == MOVES_MOST || rename(from, to) != 0) {
        int code = copy == NULL || to == NULL || m->n == MOVES_MOST ? -ENOMEM : -errno;
        free(copy);
        free(to);
        return code;
    }
    m->move[m->n].from = copy;
    m->move[m->n].to = to;
    m->move[m->n++].spare = spare;
    return 0;
}

/* 1: there is a file that may be moved; 0: nothing; or a negative errno. */
static int movable(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISDIR(st.st_mode) ? -EISDIR : 1;
}

static void undo_last(struct moves *m)
{
    m->n--;
    rename(m->move[m->n].to, m->move[m->n].from);
    free(m->move[m->n].from);
    free(m->move[m->n].to);
}

int moves_rename(struct moves *m, const char *from, const char *to)
{
    int before = m->n, code = movable(from);
    if (code <= 0)
        return code;
    if (to == NULL)
        return note(m, from, spare_name(from), 1);
    if ((code = movable(to)) > 0)
        code = note(m, to, spare_name(to), 1);
    if (code == 0)
        code = note(m, from, strdup(to), 0);
    while (code < 0 && m->n > before)
        undo_last(m);
    return code;
}

void moves_undo(struct moves *m)
{
    while (m->n > 0)
        undo_last(m);
}

void moves_keep(struct moves *m)
{
    for (int i = 0; i < m->n; i++) {
        if (m->move[i].spare)
            unlink(m->move[i].to);
        free(m->move[i].from);
        free(m->move[i].to);
    }
    m->n = 0;
}
