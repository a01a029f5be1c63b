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

#endif
