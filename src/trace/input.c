/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_CAPACITY (UINT32_C(1) << 18)
#define LINE_MAX_BYTES (UINT32_C(1) << 16)

int trace_input_open(struct trace_input *in, const char *path, struct error *err)
{
    struct stat st;
    *in = (struct trace_input){.path = strcmp(path, "-") == 0 ? "stdin" : path, .fd = -1};
    in->fd =
        strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0)
        return error_set(err, -errno, "cannot open %s: %s", in->path, strerror(errno));
    if (fstat(in->fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        trace_input_close(in);
        return error_set(err, -EISDIR, "cannot read %s: it is a folder", in->path);
    }
    if (fstat(in->fd, &st) == 0 && S_ISREG(st.st_mode)) {
        off_t here = lseek(in->fd, 0, SEEK_CUR); /* stdin may be at a position within a file */
        in->file_bytes = (uint64_t)st.st_size;
        in->end_offset = here > 0 ? (uint64_t)here : 0;
    }
    in->buffer = malloc(FIRST_CAPACITY);
    in->capacity = FIRST_CAPACITY;
    if (in->buffer == NULL) {
        trace_input_close(in);
        return error_set(err, -ENOMEM, "out of memory for reading %s", in->path);
    }
    return 0;
}

void trace_input_close(struct trace_input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    free(in->buffer);
    in->buffer = NULL;
    in->fd = -1;
}

int64_t trace_input_need(struct trace_input *in, size_t n, struct error *err)
{
    if (in->end - in->at >= n || in->at_end)
        return (int64_t)(in->end - in->at);
    if (in->capacity - in->at < n) {
        memmove(in->buffer, in->buffer + in->at, in->end - in->at);
        in->end -= in->at;
        in->at = 0;
        if (in->capacity < n) {
            uint8_t *larger = n <= TRACE_INPUT_MAX ? realloc(in->buffer, n) : NULL;
            if (larger == NULL)
                return error_set(err, -ENOMEM, "out of memory for reading %s", in->path);
            in->buffer = larger;
            in->capacity = n;
        }
    }
    while (in->end - in->at < n) {
        ssize_t got = read(in->fd, in->buffer + in->end, in->capacity - in->end);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, -errno, "cannot read %s: %s", in->path, strerror(errno));
        if (got == 0) {
            in->at_end = 1;
            break;
        }
        in->end += (size_t)got;
        in->end_offset += (uint64_t)got;
    }
    return (int64_t)(in->end - in->at);
}

int64_t trace_input_line(struct trace_input *in, const char **line, struct error *err)
{
    size_t searched = 0;
    for (;;) {
        const uint8_t *start = in->buffer + in->at;
        size_t have = in->end - in->at;
        const uint8_t *newline = memchr(start + searched, '\n', have - searched);
        *line = (const char *)start;
        if (newline != NULL) {
            in->at += (size_t)(newline - start) + 1;
            return newline - start;
        }
        if (have >= LINE_MAX_BYTES || in->at_end) {
            in->at = in->end;
            return have == 0 ? -1 : (int64_t)have;
        }
        searched = have;
        int64_t got = trace_input_need(in, have + 1, err);
        if (got < 0)
            return got == -1 ? -EIO : got; /* -1: the end of the file */
    }
}

uint64_t trace_input_offset(const struct trace_input *in)
{
    return in->end_offset - (in->end - in->at);
}
