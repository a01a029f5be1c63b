/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memmem */
#include "base/sizes.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const char units[] = "KMGT";

/* ASCII only, independent of the locale: sizes in scripts mean the same everywhere. */
static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/*
 * Reads "", "B", "K", "KB" or "KiB" (and M, G, T) at text[0..length). Returns the shift of the unit, or -1.
 */
static int parse_unit(const char *text, size_t length)
{
    if (length == 0 || (length == 1 && upper(text[0]) == 'B'))
        return 0;
    const char *unit = memchr(units, upper(text[0]), sizeof units - 1);
    if (unit == NULL)
        return -1;
    bool known = length == 1 || (length == 2 && upper(text[1]) == 'B') ||
                 (length == 3 && upper(text[1]) == 'I' && upper(text[2]) == 'B');
    return known ? 10 * (int)(unit - units + 1) : -1;
}

/* floor(2^(half/2)), exact; half < 126. */
static uint64_t half_power(unsigned half)
{
    const uint64_t root = 0xb504f333f9de6484u; /* floor(2^63.5) */
    return half % 2 == 0 ? UINT64_C(1) << (half / 2) : root >> (63 - half / 2);
}

/*
 * The half power of two that size_format writes as these digits with the unit of 2^shift bytes; 0: none. Half
 * powers of two are printed rounded (1482910 is "1.41M"), and what is printed can be given back.
 */
static uint64_t named_half_power(const char *text, size_t digits, int shift)
{
    char name[SIZE_TEXT];
    for (unsigned half = 2 * (unsigned)shift + 1; shift > 0 && half < 2 * (unsigned)shift + 20; half += 2) {
        size_t length = strlen(size_format(half_power(half), name)) - 1; /* without the unit */
        if (length == digits && memcmp(name, text, length) == 0)
            return half_power(half);
    }
    return 0;
}

static int parse_span(const char *text, size_t length, uint64_t *bytes, struct error *err)
{
    int shown = length > 60 ? 60 : (int)length;
    uint64_t whole = 0, fraction = 0, fraction_scale = 1;
    bool too_large = false;
    size_t i = 0, digits = 0;

    for (; i < length && is_digit(text[i]); i++, digits++) {
        if (whole > SIZE_MAX_BYTES)
            too_large = true; /* continue: a later syntax error is the better message */
        else
            whole = whole * 10 + (uint64_t)(text[i] - '0');
    }
    if (i < length && text[i] == '.') {
        for (i++; i < length && is_digit(text[i]); i++, digits++) {
            if (fraction_scale < 1000000000u) { /* nine digits resolve a byte of 1G */
                fraction = fraction * 10 + (uint64_t)(text[i] - '0');
                fraction_scale *= 10;
            }
        }
    }
    int shift = digits > 0 ? parse_unit(text + i, length - i) : -1;
    if (shift < 0)
        return error_set(err, -EINVAL, "'%.*s' is not a size; write it like 32K, 8MiB or 1048576", shown,
                         text);

    if (too_large || whole > SIZE_MAX_BYTES >> shift)
        return error_set(err, -ERANGE, "size '%.*s' is too large; the largest is 2^60 bytes", shown, text);
    uint64_t named = named_half_power(text, i, shift);
    if (named > 0) {
        *bytes = named;
        return 0;
    }
    unsigned __int128 part = ((unsigned __int128)fraction << shift) / fraction_scale;
    uint64_t value = (whole << shift) + (uint64_t)part;
    if (value > SIZE_MAX_BYTES)
        return error_set(err, -ERANGE, "size '%.*s' is too large; the largest is 2^60 bytes", shown, text);
    if (value == 0)
        return error_set(err, -ERANGE, "size '%.*s' is less than one byte", shown, text);
    *bytes = value;
    return 0;
}

int size_parse(const char *text, uint64_t *bytes, struct error *err)
{
    assert(text != NULL && bytes != NULL);
    return parse_span(text, strlen(text), bytes, err);
}

struct list {
    uint64_t *sizes;
    size_t n, capacity;
};

static int list_add(struct list *list, uint64_t size, struct error *err)
{
    if (list->n == SIZE_LIST_MAX)
        return error_set(err, -ERANGE, "more than %u sizes", SIZE_LIST_MAX);
    if (ARRAY_GROW(list->sizes, list->n, list->capacity) < 0)
        return error_set(err, -ENOMEM, "out of memory for a list of sizes");
    list->sizes[list->n++] = size;
    return 0;
}

static int list_add_range(struct list *list, uint64_t low, uint64_t high, struct error *err)
{
    int ret = list_add(list, low, err);
    for (unsigned half = 0; ret == 0 && half <= 120; half++) {
        uint64_t size = half_power(half);
        if (size > low && size < high)
            ret = list_add(list, size, err);
    }
    return ret == 0 ? list_add(list, high, err) : ret;
}

/* One item: a size or LOW..HIGH. */
static int list_add_item(struct list *list, const char *item, size_t length, struct error *err)
{
    const char *dots = memmem(item, length, "..", 2);
    uint64_t low, high;
    if (dots == NULL) {
        int ret = parse_span(item, length, &low, err);
        return ret == 0 ? list_add(list, low, err) : ret;
    }
    size_t low_length = (size_t)(dots - item);
    if (low_length == 0 || low_length + 2 == length)
        return error_set(err, -EINVAL, "the range '%.*s' has one end only; write it like 32K..8M",
                         length > 60 ? 60 : (int)length, item);
    int ret = parse_span(item, low_length, &low, err);
    if (ret == 0)
        ret = parse_span(dots + 2, length - low_length - 2, &high, err);
    if (ret != 0)
        return ret;
    if (low > high)
        return error_set(err, -EINVAL, "the range '%.*s' runs backwards; write the smaller size first",
                         length > 60 ? 60 : (int)length, item);
    return list_add_range(list, low, high, err);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int size_parse_list(const char *text, uint64_t **sizes, size_t *n, struct error *err)
{
    assert(text != NULL && sizes != NULL && n != NULL);
    struct list list = {0};
    for (const char *item = text;;) {
        size_t length = strcspn(item, ",");
        int ret = list_add_item(&list, item, length, err);
        if (ret != 0) {
            free(list.sizes);
            return ret;
        }
        if (item[length] == '\0')
            break;
        item += length + 1;
    }

    qsort(list.sizes, list.n, sizeof *list.sizes, compare);
    size_t kept = 1;
    for (size_t i = 1; i < list.n; i++) {
        if (list.sizes[i] != list.sizes[kept - 1])
            list.sizes[kept++] = list.sizes[i];
    }
    *sizes = list.sizes;
    *n = kept;
    return 0;
}

char *size_format(uint64_t bytes, char text[SIZE_TEXT])
{
    int unit = -1;
    double value = (double)bytes;
    /* 1023.5 would be printed as 1024: the next unit is more readable. */
    while (unit < (int)sizeof units - 2 && value >= 1023.5) {
        value /= 1024;
        unit++;
    }
    int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    int length = snprintf(text, SIZE_TEXT, "%.*f", digits, value);
    if (digits > 0) { /* "32.0" is 32, "1.50" is 1.5 */
        while (text[length - 1] == '0')
            length--;
        if (!is_digit(text[length - 1])) /* the locale's decimal point */
            length--;
    }
    if (unit >= 0)
        text[length++] = units[unit];
    text[length] = '\0';
    return text;
}
