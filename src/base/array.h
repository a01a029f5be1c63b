/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - growing arrays, binary search, and an order for qsort. */
#ifndef CACHEGRAM_ARRAY_H
#define CACHEGRAM_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Makes room for `more` elements, or one, after the first n of `list`, a malloc'ed array (NULL at first) with
 * room for `capacity`, a size_t. Both are variables, and change: the room doubles, so that adding n elements
 * one by one takes time in proportion to n. 0, or -ENOMEM, with nothing changed.
 */
#define ARRAY_GROW_BY(list, n, more, capacity) array_grow(&(list), (n), (more), &(capacity), sizeof *(list))
#define ARRAY_GROW(list, n, capacity) ARRAY_GROW_BY(list, n, 1, capacity)

/*
 * For an array in rising order of `member`, a uint64_t: number of elements whose member is at most `key`. So
 * the last one that starts at or before an address is the element before this number.
 */
#define ARRAY_UP_TO(list, n, member, key)                                   \
    array_up_to((list), (n), sizeof *(list) + ARRAY_IS_U64((list)->member), \
                offsetof(__typeof__(*(list)), member), (key))

/* For qsort: doubles, the smallest first. */
int array_compare_doubles(const void *a, const void *b);

/* For the macros. */
#define ARRAY_IS_U64(member) /* 0, or an error of the compiler */ \
    sizeof(struct { int : -(sizeof(member) != sizeof(uint64_t)); })
int array_grow(void *list, size_t n, size_t more, size_t *capacity, size_t bytes);
size_t array_up_to(const void *list, size_t n, size_t bytes, size_t offset, uint64_t key);

#endif
