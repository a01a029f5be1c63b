/* SPDX-License-Identifier: Apache-2.0 */
/* difference-internal.h - what the files of report/difference.h share. */
#ifndef CACHEGRAM_REPORT_DIFFERENCE_INTERNAL_H
#define CACHEGRAM_REPORT_DIFFERENCE_INTERNAL_H

#include "report/difference.h"

/* Of functions, data objects and phases where the curves come first. */
#define MOST_CHANGED 5u

/* The last columns of a line; the last members of an object, and its end. */
void report_change_csv(FILE *out, const struct analysis_change *c);
void report_change_json(FILE *out, const struct analysis_change *c);
/* "  more misses", "  fewer misses", or "" if that is not certain. */
const char *report_verdict(const struct analysis_change *c);
/* The profiles' names: two lines; the first members of an object. */
void report_files_text(FILE *out, const char *before, const char *after);
void report_files_json(FILE *out, const char *before, const char *after);

/* After "cache", where each thread has one; as a member of an object; and as an option of a command. */
const char *report_for_each(int separate);
const char *report_threads_json(int separate);
const char *report_threads_option(int separate);

/* Text: what changed significantly. Each returns whether it printed a list, after which an empty line
 * follows. why: there are no changes to print. */
int report_changed_functions(FILE *out, const struct report_difference *d,
                             const struct analysis_function_changes *changes, int objects, const char *why);
int report_changed_phases(FILE *out, const struct report_difference *d);

#endif
