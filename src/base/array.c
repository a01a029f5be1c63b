/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ELEMENTS 64u

int array_grow(void *list, size_t n, size_t more, size_t *capacity, size_t bytes)
{
    if (more <= *capacity - n)
        return 0;
    size_t larger = 2 * *capacity + more + FIRST_ELEMENTS, size;
    void *old, *grown;
    memcpy(&old, list, sizeof old); /* `list` points to a pointer of any type */
    if (__builtin_mul_overflow(larger, bytes, &size) || (grown = realloc(old, size)) == NULL)
        return -ENOMEM;
    memcpy(list, &grown, sizeof grown);
    *capacity = larger;
    return 0;
}

size_t array_up_to(const void *list, size_t n, size_t bytes, size_t offset, uint64_t key)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t member;
        memcpy(&member, (const char *)list + middle * bytes + offset, sizeof member);
        if (member <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int array_compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}
