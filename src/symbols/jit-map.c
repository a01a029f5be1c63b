/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/jit-map.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base-name.h"
#include "base/clock-ns.h"
#include "symbols/jit-dump.h"

#define MOST_BYTES (256 << 20) /* of a map; the rest is ignored */

void symbols_jit_map_path(uint32_t pid, char path[SYMBOLS_JIT_MAP_PATH])
{
    snprintf(path, SYMBOLS_JIT_MAP_PATH, "/tmp/perf-%" PRIu32 ".map", pid);
}

static int map_pid(const char *path, uint32_t *pid)
{
    char wanted[SYMBOLS_JIT_MAP_PATH];
    if (sscanf(path, "/tmp/perf-%" SCNu32, pid) != 1)
        return 0;
    symbols_jit_map_path(*pid, wanted);
    return strcmp(path, wanted) == 0;
}

int symbols_jit_map_is(const char *path)
{
    uint32_t pid;
    return map_pid(path, &pid);
}

int symbols_jit_dump_is(const char *path, uint32_t *pid)
{
    char wanted[SYMBOLS_JIT_MAP_PATH];
    if (sscanf(base_name(path), "jit-%" SCNu32, pid) != 1)
        return 0;
    snprintf(wanted, sizeof wanted, "jit-%" PRIu32 ".dump", *pid);
    return strcmp(base_name(path), wanted) == 0;
}

/* Anybody may write to /tmp: as perf does, only this user's and root's files are read, and no links. */
static int open_file(const char *path, size_t *size)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (info.st_uid == geteuid() || info.st_uid == 0)) {
        *size = info.st_size < MOST_BYTES ? (size_t)info.st_size : MOST_BYTES;
        return fd;
    }
    close(fd);
    return -1;
}

/* --- a map --- */

/* When the file was last seen without what ends at a place. */
struct clock {
    const struct symbols_growth *growth;
    size_t n, next;  /* the last one that shows less of the file is before `next` */
    uint64_t *least; /* least size from there on */
    uint32_t pid;
};

static uint64_t time_of(struct clock *c, uint64_t end)
{
    while (c->next < c->n && c->least[c->next] < end)
        c->next++;
    return c->next > 0 ? c->growth[c->next - 1].at_ns : 0;
}

static int clock_init(struct clock *c, const char *path, const struct symbols_growth *growth, size_t n)
{
    *c = (struct clock){.growth = growth, .n = n};
    uint64_t least = UINT64_MAX;
    if (!map_pid(path, &c->pid) || (c->least = calloc(n + 1, sizeof *c->least)) == NULL)
        return -1;
    for (size_t i = n; i > 0; i--) {
        if (growth[i - 1].pid == c->pid && growth[i - 1].bytes < least)
            least = growth[i - 1].bytes;
        c->least[i - 1] = least;
    }
    return 0;
}

static int add_line(struct jit_entries *entries, char *line, struct clock *c, uint64_t end_of_line)
{
    char *end;
    uint64_t low = strtoull(line, &end, 16), size;
    if (end == line || *end != ' ')
        return 0;
    char *second = end + 1;
    size = strtoull(second, &end, 16);
    if (end == second || *end != ' ')
        return 0;
    return jit_entries_add(
        entries, (struct jit_entry){
                     .low = low, .high = low + size, .from_ns = time_of(c, end_of_line), .name = end + 1});
}

static int add_lines(struct jit_entries *entries, int fd, size_t size, struct clock *c)
{
    size_t used = 0;
    char *rest, *text = jit_entries_keep(entries, size + 1);
    int code = text != NULL ? 0 : -1;
    for (ssize_t got = 1; text != NULL && used < size && got > 0; used += got > 0 ? (size_t)got : 0)
        got = read(fd, text + used, size - used);
    if (text != NULL)
        text[used] = '\0';
    for (char *line = text != NULL ? strtok_r(text, "\n", &rest) : NULL; line != NULL && code == 0;
         line = strtok_r(NULL, "\n", &rest))
        code = add_line(entries, line, c, (uint64_t)(line - text) + strlen(line));
    return code;
}

static int read_map(struct jit_entries *entries, const char *path, int fd, size_t size,
                    const struct symbols_growth *growth, size_t n)
{
    struct clock c;
    if (clock_init(&c, path, growth, n) < 0)
        return -1;
    int code = add_lines(entries, fd, size, &c);
    free(c.least);
    return code;
}

struct jit_entries *symbols_jit_map_open(const char *path, const struct symbols_growth *growth, size_t n)
{
    size_t size;
    uint32_t pid;
    int fd = open_file(path, &size), code;
    struct jit_entries *entries = fd >= 0 ? jit_entries_new() : NULL;
    if (entries == NULL)
        code = -1;
    else if (symbols_jit_dump_is(path, &pid))
        code = jit_dump_read(entries, fd, clock_ns(CLOCK_MONOTONIC));
    else
        code = read_map(entries, path, fd, size, growth, n);
    if (fd >= 0)
        close(fd);
    if (code < 0) {
        jit_entries_free(entries);
        return NULL;
    }
    jit_entries_sort(entries);
    return entries;
}
