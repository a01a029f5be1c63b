/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_READ_TEXT_H
#define CACHEGRAM_READ_TEXT_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads the beginning of a small file, as those of /proc and /sys are, by one read: size - 1 bytes at most,
 * zero-terminated. The path is formatted as by printf; longer ones than 255 bytes are not read. Returns the
 * number of bytes, or a negative errno with text "".
 */
ssize_t read_text(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
