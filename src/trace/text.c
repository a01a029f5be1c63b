/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/text.h"

#include <stdarg.h>
#include <string.h>

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

int trace_text_number(const char **at, const char *end, unsigned base, uint64_t *value)
{
    const char *c = *at;
    uint64_t n = 0;
    for (; c < end && (unsigned)digit(*c) < base; c++) {
        if (n > (UINT64_MAX - (unsigned)digit(*c)) / base)
            return -1;
        n = n * base + (unsigned)digit(*c);
    }
    if (c == *at)
        return -1;
    *at = c;
    *value = n;
    return 0;
}

int trace_text_next(struct trace_reader *r, struct error *err)
{
    while (r->arrays->n + 2 <= TRACE_BATCH) {
        const char *line;
        int64_t n = trace_input_line(&r->in, &line, err);
        if (n < -1)
            return (int)n;
        if (n == -1)
            return r->arrays->n > 0;
        r->line++;
        if (n > 0 && line[n - 1] == '\r')
            n--;
        int used = r->format->take_line(r, line, line + n);
        if (used < 0) {
            /* only the beginning of the line, without characters that could affect a terminal */
            char shown[41];
            size_t length = n < 40 ? (size_t)n : 40;
            for (size_t i = 0; i < length; i++)
                shown[i] = line[i] >= ' ' && line[i] < 127 ? line[i] : '?';
            shown[length] = '\0';
            trace_damaged(r, "line %llu cannot be read: '%s'", (unsigned long long)r->line, shown);
            return r->arrays->n > 0;
        }
        r->info.skipped += used == 0;
    }
    return 1;
}

int trace_text_probe(const uint8_t *start, size_t n, int (*parse_probe)(const char *line, const char *end))
{
    const char *at = (const char *)start, *stop = at + n;
    while (at < stop) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));
        if (end == NULL)
            return 0; /* the last line may be truncated */
        int answer = parse_probe(at, end);
        if (answer != 0)
            return answer > 0 ? 2 : 0;
        at = end + 1;
    }
    return 0;
}

int trace_text_put(struct trace_writer *w, struct error *err, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return trace_output_put(&w->out, text, n < 0 ? 0 : (size_t)n, err);
}
