/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (UINT32_C(1) << 18)

int trace_output_open(struct trace_output *out, const char *path, struct error *err)
{
    struct stat st;
    int is_stdout = strcmp(path, "-") == 0;
    *out = (struct trace_output){.fd = -1};
    out->path = strdup(is_stdout ? "stdout" : path);
    out->buffer = malloc(BUFFER_BYTES);
    if (out->path == NULL || out->buffer == NULL) {
        trace_output_abandon(out);
        return error_set(err, -ENOMEM, "out of memory for writing %s", path);
    }
    out->fd = is_stdout ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                        : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out->fd < 0) {
        int code = error_set(err, -errno, "cannot write %s: %s", out->path, strerror(errno));
        trace_output_abandon(out);
        return code;
    }
    /* A device such as /dev/null must not be deleted. */
    out->made = !is_stdout && fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode);
    return 0;
}

static int write_all(struct trace_output *out, const uint8_t *data, size_t n, struct error *err)
{
    while (n > 0) {
        ssize_t done = write(out->fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return error_set(err, -errno, "cannot write %s: %s", out->path, strerror(errno));
        data += done;
        n -= (size_t)done;
        out->bytes += (uint64_t)done;
    }
    return 0;
}

int trace_output_flush(struct trace_output *out, struct error *err)
{
    size_t n = out->used;
    out->used = 0;
    return write_all(out, out->buffer, n, err);
}

int trace_output_put(struct trace_output *out, const void *data, size_t n, struct error *err)
{
    if (n > BUFFER_BYTES - out->used) {
        int status = trace_output_flush(out, err);
        if (status < 0)
            return status;
    }
    if (n == 0)
        return 0; /* data may be NULL */
    if (n > BUFFER_BYTES)
        return write_all(out, data, n, err);
    memcpy(out->buffer + out->used, data, n);
    out->used += n;
    return 0;
}

static void clear(struct trace_output *out)
{
    free(out->buffer);
    free(out->path);
    *out = (struct trace_output){.fd = -1};
}

int trace_output_close(struct trace_output *out, struct error *err)
{
    int status = trace_output_flush(out, err);
    /* Some file systems report a full disk only when the file is closed. */
    if (close(out->fd) < 0 && status == 0)
        status = error_set(err, -errno, "cannot write %s: %s", out->path, strerror(errno));
    clear(out);
    return status;
}

void trace_output_abandon(struct trace_output *out)
{
    if (out->fd >= 0)
        close(out->fd);
    if (out->made)
        unlink(out->path);
    clear(out);
}
