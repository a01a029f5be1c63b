/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/objects/vma.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/procmap.h"

struct vmas {
    int fd;
    int no_query; /* the kernel is too old for it */
    int statm;    /* the process' sizes, or -1 */
    char *text;   /* the whole list, if it was read since the last refresh */
    size_t used, capacity;
};

struct vmas *vmas_new(uint32_t pid)
{
    char path[64];
    struct vmas *v = calloc(1, sizeof(*v));
    if (v == NULL)
        return NULL;
    snprintf(path, sizeof(path), "/proc/%u/maps", pid);
    v->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (v->fd < 0) {
        free(v);
        return NULL;
    }
    snprintf(path, sizeof(path), "/proc/%u/statm", pid);
    v->statm = open(path, O_RDONLY | O_CLOEXEC);
    return v;
}

void vmas_free(struct vmas *v)
{
    if (v == NULL)
        return;
    close(v->fd);
    if (v->statm >= 0)
        close(v->statm);
    free(v->text);
    free(v);
}

uint64_t vmas_pages(struct vmas *v)
{
    char text[192], *at = text;
    unsigned long long field[6]; /* size, resident, shared, text, 0, data; in pages */
    ssize_t got = v->statm >= 0 ? pread(v->statm, text, sizeof(text) - 1, 0) : -1;
    if (got <= 0)
        return 0;
    text[got] = '\0';
    for (int i = 0; i < 6; i++)
        field[i] = strtoull(at, &at, 10);
    return field[0] > field[5] ? field[0] - field[5] : 0;
}

void vmas_refresh(struct vmas *v)
{
    v->used = 0;
}

/* The list as a string. NULL: it cannot be read. */
static const char *read_all(struct vmas *v)
{
    if (v->used != 0)
        return v->text;
    if (lseek(v->fd, 0, SEEK_SET) != 0)
        return NULL;
    for (;;) {
        if (v->capacity - v->used < 8192) {
            char *larger = realloc(v->text, 2 * v->capacity + 16384);
            if (larger == NULL)
                break;
            v->text = larger;
            v->capacity = 2 * v->capacity + 16384;
        }
        ssize_t got = read(v->fd, v->text + v->used, v->capacity - v->used - 1);
        if (got < 0)
            break;
        if (got == 0) {
            v->text[v->used] = '\0';
            return v->used != 0 ? v->text : NULL;
        }
        v->used += (size_t)got;
    }
    v->used = 0;
    return NULL;
}

/* The field after the one that begins there. */
static const char *next_field(const char *at)
{
    at += strcspn(at, " \n");
    return at + strspn(at, " ");
}

/* One line of the list. 0, or -EINVAL. Not by sscanf, which looks for the end of the whole list: for 65,000
 * mappings that would take the square of a long time. */
static int parse_line(const char *line, struct vma *vma)
{
    char *after_start, *after_end;
    uint64_t start = strtoull(line, &after_start, 16), end;
    if (*after_start != '-')
        return -EINVAL;
    end = strtoull(after_start + 1, &after_end, 16);
    const char *flags = next_field(after_end), *name = flags;
    if (strcspn(flags, " \n") != 4)
        return -EINVAL;
    *vma = (struct vma){.start = start, .end = end, .shared = flags[3] == 's'};
    vma->protection = (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0) |
                      (flags[2] == 'x' ? PROT_EXEC : 0);
    for (int i = 0; i < 4; i++) /* offset, device and inode come before it */
        name = next_field(name);
    size_t length = strcspn(name, "\n");
    if (length >= sizeof(vma->name))
        length = sizeof(vma->name) - 1;
    memcpy(vma->name, name, length);
    return 0;
}

int vmas_each(struct vmas *v, int (*each)(void *ctx, const struct vma *vma), void *ctx)
{
    const char *line = read_all(v);
    struct vma vma;
    while (line != NULL && *line != '\0') {
        int status = parse_line(line, &vma) == 0 ? each(ctx, &vma) : 0;
        if (status != 0)
            return status;
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return 0;
}

struct search {
    uint64_t address;
    struct vma *found;
};

static int is_there(void *ctx, const struct vma *vma)
{
    const struct search *s = ctx;
    if (s->address < vma->start || s->address >= vma->end)
        return 0;
    *s->found = *vma;
    return 1;
}

int vmas_find(struct vmas *v, uint64_t address, struct vma *found)
{
    if (!v->no_query) {
        struct procmap_query q = {.size = sizeof(q), .query_addr = address};
        char name[sizeof(found->name)] = "";
        q.vma_name_addr = (uint64_t)(uintptr_t)name;
        q.vma_name_size = sizeof(name);
        int status = ioctl(v->fd, PROCMAP_QUERY, &q);
        if (status != 0 && errno == ENAMETOOLONG) {
            memcpy(name, "/", 2); /* only paths are that long */
            q.vma_name_size = 0;
            q.vma_name_addr = 0; /* both or none */
            status = ioctl(v->fd, PROCMAP_QUERY, &q);
        }
        if (status == 0) {
            *found = (struct vma){.start = q.vma_start, .end = q.vma_end};
            found->shared = (q.vma_flags & PROCMAP_SHARED) != 0;
            found->protection = (q.vma_flags & PROCMAP_READABLE ? PROT_READ : 0) |
                                (q.vma_flags & PROCMAP_WRITABLE ? PROT_WRITE : 0) |
                                (q.vma_flags & PROCMAP_EXECUTABLE ? PROT_EXEC : 0);
            memcpy(found->name, name, sizeof(name));
            return 0;
        }
        if (errno != ENOTTY && errno != EINVAL)
            return errno == ESRCH ? -ESRCH : -ENOENT;
        v->no_query = 1;
    }
    if (read_all(v) == NULL)
        return -ESRCH;
    return vmas_each(v, is_there, &(struct search){address, found}) ? 0 : -ENOENT;
}

static int is_asynchronous(const struct vma *vma)
{
    static const char *const harmless[] = {"/dev/shm/", "/dev/zero", "/dev/null"};
    if (strncmp(vma->name, "anon_inode:", 11) == 0 || strncmp(vma->name, "/[aio]", 6) == 0)
        return 1;
    if (strncmp(vma->name, "/dev/", 5) != 0)
        return 0;
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        if (strncmp(vma->name, harmless[i], strlen(harmless[i])) == 0)
            return 0;
    return 1;
}

/* Only lines that contain such a word are parsed: parsing all of them would take as long as the kernel takes
 * to write them. */
int vmas_asynchronous(struct vmas *v)
{
    static const char *const words[] = {" anon_inode:", " /[aio]", " /dev/"};
    vmas_refresh(v);
    const char *text = read_all(v);
    if (text == NULL)
        return 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        for (const char *at = text; (at = strstr(at, words[i])) != NULL; at++) {
            const char *line = at;
            struct vma vma;
            while (line > text && line[-1] != '\n')
                line--;
            if (parse_line(line, &vma) == 0 && is_asynchronous(&vma))
                return 1;
        }
    return 0;
}
