/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_REPORT_SHORTEN_H
#define CACHEGRAM_REPORT_SHORTEN_H

#include <stddef.h>

/*
 * For people: shortens a function's or type's name with arguments of templates, in place, to `most` bytes if
 * that is enough for it: the deepest arguments become "...", then those around them, and parameters likewise.
 * Where a name begins with "<", as <Map<K, V> as Iterator>::next in Rust, the outermost brackets stay.
 */
void report_shorten(char *name, size_t most);

/* Copies a name into `size` bytes. One that does not fit is shortened as above, so that its end is there:
 * names of templates have thousands of bytes, and the function's own name comes last. */
void report_fit_name(char *to, size_t size, const char *name);

/* Bytes of names in buffers for report_fit_name. */
#define REPORT_NAME_ROOM 4096

#endif
