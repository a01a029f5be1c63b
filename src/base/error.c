/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int code, const char *format, ...)
{
    if (err == NULL)
        return code;

    /* Formatted into a separate buffer first: an argument may be the text of the same error ("%s; ..."). */
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0)
        text[0] = '\0';
    else if ((size_t)length >= sizeof text) /* truncated: make it visible */
        memcpy(text + sizeof text - 4, "...", 4);
    memcpy(err->text, text, sizeof text);
    return code;
}
