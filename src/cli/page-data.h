/* SPDX-License-Identifier: Apache-2.0 */
/* page-data.h - all results of a profile as one JSON object: the data of the page, and of `export --to json`.
 */
#ifndef CACHEGRAM_CLI_PAGE_DATA_H
#define CACHEGRAM_CLI_PAGE_DATA_H

#include "base/error.h"
#include "cli/sources.h"

/* Most sizes of hotspots; those that there are besides the sizes of the machine's caches. */
#define PAGE_DATA_SIZES 16u
#define PAGE_DATA_USUAL_SIZES "32K,256K,1M,4M,16M"

struct page_data_options {
    const char *profile;
    const char *sizes; /* a list; NULL: the usual ones, and those of the machine's caches */
    int with_source;
    int brief; /* rows of hotspots as report_page_rows has them, instead of those of `hotspots` */
    struct cli_sources sources;
    double tables_bytes; /* all tables of `export`, too, their misses in a cache of that size; 0: none */
};

/* 0 with *json, which the caller frees; or negative with err filled and *json NULL. */
int page_data(const struct page_data_options *options, char **json, struct error *err);

/* Writes the page of such data to a file, or to standard output ("-"). */
int page_write(const char *file, const char *json, struct error *err);

#endif
