/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/jit-map.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

#define MOST_BYTES (256 << 20) /* of a file; the rest is ignored */

struct entry {
    uint64_t low, high, highest; /* highest: of this entry and all before it */
    uint32_t order;              /* in the file */
    const char *name;            /* in the text */
};

struct jit_map {
    char *text;
    struct entry *entries; /* by low */
    size_t n, capacity;
};

void symbols_jit_map_path(uint32_t pid, char path[SYMBOLS_JIT_MAP_PATH])
{
    snprintf(path, SYMBOLS_JIT_MAP_PATH, "/tmp/perf-%" PRIu32 ".map", pid);
}

int symbols_jit_map_is(const char *path)
{
    char wanted[SYMBOLS_JIT_MAP_PATH];
    uint32_t pid;
    if (sscanf(path, "/tmp/perf-%" SCNu32, &pid) != 1)
        return 0;
    symbols_jit_map_path(pid, wanted);
    return strcmp(path, wanted) == 0;
}

/* The contents, ending with 0; NULL: there are none for us. Anybody may write to /tmp: as perf does, only
 * this user's and root's files are read, and no links. */
static char *read_text(const char *path)
{
    struct stat info;
    size_t used = 0;
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (info.st_uid == geteuid() || info.st_uid == 0)) {
        size_t size = info.st_size < MOST_BYTES ? (size_t)info.st_size : MOST_BYTES;
        text = malloc(size + 1);
        for (ssize_t got = 1; text != NULL && used < size && got > 0; used += got > 0 ? (size_t)got : 0)
            got = read(fd, text + used, size - used);
        if (text != NULL)
            text[used] = '\0';
    }
    close(fd);
    return text;
}

static int add_line(struct jit_map *map, char *line)
{
    char *end;
    uint64_t low = strtoull(line, &end, 16), size;
    if (end == line || *end != ' ')
        return 0;
    char *second = end + 1;
    size = strtoull(second, &end, 16);
    if (end == second || *end != ' ' || size == 0 || low + size < low || end[1] == '\0')
        return 0;
    if (ARRAY_GROW(map->entries, map->n, map->capacity) < 0)
        return -1;
    map->entries[map->n] = (struct entry){low, low + size, 0, (uint32_t)map->n, end + 1};
    map->n++;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

struct jit_map *symbols_jit_map_open(const char *path)
{
    struct jit_map *map = calloc(1, sizeof *map);
    char *rest;
    int failed = map == NULL || (map->text = read_text(path)) == NULL;
    if (!failed)
        for (char *line = strtok_r(map->text, "\n", &rest); line != NULL && !failed;
             line = strtok_r(NULL, "\n", &rest))
            failed = add_line(map, line) < 0;
    if (failed) {
        symbols_jit_map_close(map);
        return NULL;
    }
    if (map->n > 0)
        qsort(map->entries, map->n, sizeof *map->entries, compare);
    uint64_t highest = 0;
    for (size_t i = 0; i < map->n; i++) {
        highest = map->entries[i].high > highest ? map->entries[i].high : highest;
        map->entries[i].highest = highest;
    }
    return map;
}

void symbols_jit_map_close(struct jit_map *map)
{
    if (map == NULL)
        return;
    free(map->entries);
    free(map->text);
    free(map);
}

const char *symbols_jit_map_find(const struct jit_map *map, uint64_t address)
{
    const struct entry *best = NULL;
    size_t end = ARRAY_UP_TO(map->entries, map->n, low, address);
    for (; end > 0 && map->entries[end - 1].highest > address; end--) {
        const struct entry *e = &map->entries[end - 1];
        if (address < e->high && (best == NULL || e->order > best->order))
            best = e;
    }
    return best != NULL ? best->name : NULL;
}
