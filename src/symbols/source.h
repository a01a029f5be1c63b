/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - finds and reads source files by the names that debug information has. */
#ifndef CACHEGRAM_SYMBOLS_SOURCE_H
#define CACHEGRAM_SYMBOLS_SOURCE_H

#include <stddef.h>
#include <time.h>

struct source_search {
    const char *const *folders; /* where sources are now */
    size_t nfolders;
    const char *const *maps; /* OLD=NEW: names that begin with the folder OLD begin with NEW */
    size_t nmaps;
};

struct source {
    char *path; /* where it was found */
    char *text;
    char **lines; /* without line ends; [0] is line 1 */
    size_t nlines;
    struct timespec changed;
};

/*
 * Tries the name with each map, then itself, then in each folder: the whole name, and the name without its
 * first folder, first two, and so on. 0, -ENOENT, or another negative code of the file that was found.
 */
int source_load(const char *name, const struct source_search *search, struct source *source);
void source_clear(struct source *source);

#endif
