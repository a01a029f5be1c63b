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
#include "base/base-name.h"

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

int symbols_jit_dump_is(const char *path, uint32_t *pid)
{
    char wanted[SYMBOLS_JIT_MAP_PATH];
    if (sscanf(base_name(path), "jit-%" SCNu32, pid) != 1)
        return 0;
    snprintf(wanted, sizeof wanted, "jit-%" PRIu32 ".dump", *pid);
    return strcmp(base_name(path), wanted) == 0;
}

/* The contents, ending with 0; NULL: there are none for us. Anybody may write to /tmp: as perf does, only
 * this user's and root's files are read, and no links. */
static char *read_text(const char *path, size_t *length)
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
        *length = used;
    }
    close(fd);
    return text;
}

static int add_entry(struct jit_map *map, uint64_t low, uint64_t size, const char *name)
{
    if (size == 0 || low + size < low || *name == '\0')
        return 0;
    if (ARRAY_GROW(map->entries, map->n, map->capacity) < 0)
        return -1;
    map->entries[map->n] = (struct entry){low, low + size, 0, (uint32_t)map->n, name};
    map->n++;
    return 0;
}

static int add_line(struct jit_map *map, char *line)
{
    char *end;
    uint64_t low = strtoull(line, &end, 16), size;
    if (end == line || *end != ' ')
        return 0;
    char *second = end + 1;
    size = strtoull(second, &end, 16);
    if (end == second || *end != ' ')
        return 0;
    return add_entry(map, low, size, end + 1);
}

static int add_lines(struct jit_map *map)
{
    char *rest;
    int code = 0;
    for (char *line = strtok_r(map->text, "\n", &rest); line != NULL && code == 0;
         line = strtok_r(NULL, "\n", &rest))
        code = add_line(map, line);
    return code;
}

/* --- jitdump --- */

struct dump_header {
    uint32_t magic, version, size, machine, pad, pid;
    uint64_t time, flags;
};
#define DUMP_MAGIC 0x4a695444u
struct dump_record {
    uint32_t kind, size; /* size: of all of it */
    uint64_t time;
};
enum { DUMP_LOAD = 0, DUMP_MOVE = 1 };
struct dump_load { /* then the name, and the code */
    uint32_t pid, tid;
    uint64_t vma, address, bytes, index;
};
struct dump_move {
    uint32_t pid, tid;
    uint64_t vma, from, to, bytes, index;
};

/* The name of what was made last at that address; NULL: nothing was. */
static const char *last_name(const struct jit_map *map, uint64_t address)
{
    for (size_t i = map->n; i > 0; i--)
        if (map->entries[i - 1].low == address)
            return map->entries[i - 1].name;
    return NULL;
}

/* The rest of a record, n bytes. */
static int add_record(struct jit_map *map, uint32_t kind, const char *rest, size_t n)
{
    struct dump_load load;
    struct dump_move move;
    if (kind == DUMP_LOAD && n > sizeof load && memchr(rest + sizeof load, '\0', n - sizeof load) != NULL) {
        memcpy(&load, rest, sizeof load);
        return add_entry(map, load.address, load.bytes, rest + sizeof load);
    }
    if (kind == DUMP_MOVE && n >= sizeof move) {
        memcpy(&move, rest, sizeof move);
        const char *name = last_name(map, move.from);
        return name != NULL ? add_entry(map, move.to, move.bytes, name) : 0;
    }
    return 0;
}

static int add_records(struct jit_map *map, size_t length)
{
    struct dump_header header;
    struct dump_record record;
    if (length < sizeof header)
        return -1;
    memcpy(&header, map->text, sizeof header);
    if (header.magic != DUMP_MAGIC || header.size < sizeof header)
        return -1;
    for (size_t at = header.size; at <= length && length - at >= sizeof record; at += record.size) {
        memcpy(&record, map->text + at, sizeof record);
        if (record.size < sizeof record || record.size > length - at)
            break;
        if (add_record(map, record.kind, map->text + at + sizeof record, record.size - sizeof record) < 0)
            return -1;
    }
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
    size_t length = 0;
    uint32_t pid;
    int failed = map == NULL || (map->text = read_text(path, &length)) == NULL;
    if (!failed)
        failed = (symbols_jit_dump_is(path, &pid) ? add_records(map, length) : add_lines(map)) < 0;
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
