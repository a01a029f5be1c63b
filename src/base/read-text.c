/* SPDX-License-Identifier: Apache-2.0 */
#include "base/read-text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

ssize_t read_text(char *text, size_t size, const char *format, ...)
{
    char path[256];
    va_list args;
    text[0] = '\0';
    va_start(args, format);
    int length = vsnprintf(path, sizeof path, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof path)
        return -ENAMETOOLONG;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, text, size - 1);
    if (n < 0)
        n = -errno;
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}
