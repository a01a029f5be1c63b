/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_ERROR_H
#define CACHEGRAM_ERROR_H

/* One sentence that says what failed, where, and what to do. Owned by the caller. */
struct error {
    char text[1024];
};

/*
 * Fills err (NULL is allowed) with a formatted sentence and returns code, which is a negative errno value, so
 * that library code can write `return error_set(err, -EINVAL, "...")`.
 */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
