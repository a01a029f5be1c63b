/* SPDX-License-Identifier: Apache-2.0 */
/* export-tables.h - all tables of a profile, for `cachegram export`. */
#ifndef CACHEGRAM_CLI_EXPORT_TABLES_H
#define CACHEGRAM_CLI_EXPORT_TABLES_H

#include <stdio.h>

#include "profile/profile.h"
#include "report/report.h"

/* The tables, for --help. */
void export_tables_list(FILE *out);
int export_is_table(const char *table);
/* table: the one to write to the file `output` ("-": standard output); NULL: all that the profile holds, into
 * the new folder `output`. Misses are those in a cache of that size. Returns the exit status. */
int export_tables(const char *profile, const char *table, enum report_format format, double size_bytes,
                  const char *output);
/* An object with all that the profile, called `name`, holds. 0, or negative with err filled. */
int export_tables_json(FILE *out, struct profile *p, const char *name, double size_bytes, struct error *err);

#endif
