/* SPDX-License-Identifier: Apache-2.0 */
/* export-tables.h - `cachegram export --to csv`: all tables of a profile, a file each, or one of them. */
#ifndef CACHEGRAM_CLI_EXPORT_TABLES_H
#define CACHEGRAM_CLI_EXPORT_TABLES_H

#include <stdio.h>

/* The tables, for --help. */
void export_tables_list(FILE *out);
/* table: the one to write to the file `output` ("-": standard output); NULL: all that the profile holds, into
 * the new folder `output`. Returns the exit status. */
int export_tables(const char *profile, const char *table, double size_bytes, const char *output);

#endif
