/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - numbers and strings in the three formats, and the terminal's properties. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int report_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return 1; /* the default */
}

struct report_style report_style_of(FILE *out, enum report_color color)
{
    struct report_style style = {80, color == REPORT_COLOR_ALWAYS};
    struct winsize size;
    const char *columns = getenv("COLUMNS"), *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    int fd = fileno(out);
    if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        style.width = size.ws_col;
    } else if (columns) {
        long n = strtol(columns, NULL, 10);
        if (n > 0 && n < 10000)
            style.width = (unsigned)n;
    }
    if (style.width < REPORT_WIDTH_MIN)
        style.width = REPORT_WIDTH_MIN;
    if (color == REPORT_COLOR_AUTO)
        style.color =
            fd >= 0 && isatty(fd) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    return style;
}

/* Bytes of the valid UTF-8 character at s, 0 if there is none. */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
               : (s[0] & 0xf0) == 0xe0       ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

void report_json_string(FILE *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    putc('"', out);
    while (*s) {
        size_t n = utf8_length(s);
        if (n == 0) {
            fputs("\\ufffd", out);
            n = 1;
        } else if (*s == '"' || *s == '\\') {
            fprintf(out, "\\%c", *s);
        } else if (*s == '\n') {
            fputs("\\n", out);
        } else if (*s < 0x20 || *s == 0x7f) {
            fprintf(out, "\\u%04x", *s);
        } else if (s[0] == 0xc2 && s[1] < 0xa0) { /* U+0080 to U+009F are control characters, too */
            fprintf(out, "\\u%04x", s[1]);
        } else {
            fwrite(s, 1, n, out);
        }
        s += n;
    }
    putc('"', out);
}

/* Whether the valid character at s could change what a terminal shows of the rest: control characters, also
 * those of C2 80 to C2 9F, and of U+2028 to U+202E and U+2066 to U+2069 separators and directions. */
static int is_control(const unsigned char *s)
{
    return *s < 0x20 || *s == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0) ||
           (s[0] == 0xe2 && s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
           (s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

/* kept: a control character that stays; 0: none. */
static char *make_plain(char *text, unsigned char kept)
{
    unsigned char *s = (unsigned char *)text, *to = s;
    while (*s) {
        size_t n = utf8_length(s);
        if (n == 0 || (is_control(s) && *s != kept)) {
            *to++ = '?';
            s += n ? n : 1;
            continue;
        }
        while (n-- > 0)
            *to++ = *s++;
    }
    *to = '\0';
    return text;
}

char *report_make_plain(char *text)
{
    return make_plain(text, 0);
}

void report_plain(FILE *out, const char *text)
{
    char *plain = strdup(text);
    if (plain)
        fputs(make_plain(plain, 0), out);
    free(plain);
}

static void put_csv_plain(FILE *out, const char *text, unsigned char kept)
{
    char *plain = strdup(text);
    if (plain)
        report_csv_string(out, make_plain(plain, kept));
    free(plain);
}

void report_csv_plain(FILE *out, const char *text)
{
    put_csv_plain(out, text, 0);
}

void report_csv_lines(FILE *out, const char *text)
{
    put_csv_plain(out, text, '\n');
}

void report_csv_number(FILE *out, double value)
{
    if (isnan(value))
        return;
    char text[400]; /* the largest double has 309 digits */
    snprintf(text, sizeof text, "%.10f", value);
    char *point = strchr(text, '.');
    /* What is rounded to an integer looks like one: readers of numbers could not tell the difference. */
    if (point && strspn(point + 1, "0") == strlen(point + 1))
        *point = '\0';
    fputs(strcmp(text, "-0") == 0 ? "0" : text, out);
}

void report_json_number(FILE *out, double value)
{
    if (isfinite(value))
        report_csv_number(out, value);
    else
        fputs("null", out);
}

void report_csv_string(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

void report_json_member_string(FILE *out, const char *lead, const char *key, const char *text)
{
    fprintf(out, "%s\"%s\": ", lead, key);
    if (text)
        report_json_string(out, text);
    else
        fputs("null", out);
}

void report_json_member_number(FILE *out, const char *lead, const char *key, double value)
{
    fprintf(out, "%s\"%s\": ", lead, key);
    report_json_number(out, value);
}

void report_csv_next_number(FILE *out, double value)
{
    putc(',', out);
    report_csv_number(out, value);
}

void report_csv_next_plain(FILE *out, const char *text)
{
    putc(',', out);
    report_csv_plain(out, text);
}

void report_percent(FILE *out, const char *before, int width, int decimals, double ratio, const char *after)
{
    if (isnan(ratio))
        fprintf(out, "%s%*s%s", before, width, "-", after);
    else
        fprintf(out, "%s%*.*f%%%s", before, width - 1, decimals, 100 * ratio, after);
}

size_t report_columns(const char *text, size_t bytes)
{
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += ((unsigned char)text[i] & 0xc0u) != 0x80; /* the first byte of a character */
    return columns;
}

void report_wrapped(FILE *out, const char *text, unsigned width)
{
    size_t column = 0;
    while (*text) {
        size_t bytes = strcspn(text, " \n"), columns = report_columns(text, bytes);
        if (column > 0 && column + 1 + columns > width) {
            putc('\n', out);
            column = 0;
        }
        if (column > 0)
            putc(' ', out);
        column += columns + (column > 0);
        fwrite(text, 1, bytes, out);
        text += bytes;
        if (*text == '\n') {
            putc('\n', out);
            column = 0;
        }
        text += *text != '\0';
    }
}

char *report_count(double count, char text[REPORT_COUNT])
{
    if (count < 1e6)
        snprintf(text, REPORT_COUNT, "%.0f", count);
    else if (count < 999.5e6)
        snprintf(text, REPORT_COUNT, "%.3gM", count * 1e-6);
    else if (count < 9999.5e9)
        snprintf(text, REPORT_COUNT, "%.4gG", count * 1e-9);
    else /* of a run of hours */
        snprintf(text, REPORT_COUNT, count < 9999.5e12 ? "%.4gT" : "%.0fT", count * 1e-12);
    return text;
}
