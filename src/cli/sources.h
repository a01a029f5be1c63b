/* SPDX-License-Identifier: Apache-2.0 */
/* sources.h - where source files are: options of annotate and html. */
#ifndef CACHEGRAM_CLI_SOURCES_H
#define CACHEGRAM_CLI_SOURCES_H

#include <time.h>

#include "profile/profile.h"
#include "symbols/source.h"

#define CLI_SOURCES_MOST 64u

struct cli_sources {
    const char *folders[CLI_SOURCES_MOST], *maps[CLI_SOURCES_MOST];
    size_t nfolders, nmaps;
};

/* Values in the val field of their struct option. */
enum { CLI_OPT_SOURCE_DIR = 1100, CLI_OPT_PREFIX_MAP };
#define CLI_SOURCE_OPTIONS                                        \
    {"source-dir", required_argument, NULL, CLI_OPT_SOURCE_DIR},  \
    {                                                             \
        "prefix-map", required_argument, NULL, CLI_OPT_PREFIX_MAP \
    }
#define CLI_SOURCE_HELP                                                                                  \
    "  --source-dir DIR        where to look for sources that are not where they were compiled; may be " \
    "repeated\n"                                                                                         \
    "  --prefix-map OLD=NEW    sources whose names begin with the folder OLD are in NEW; may be repeated\n"

/* Takes the value of one of these. 0, or 2 after a message. */
int cli_source_option(const char *command, int opt, const char *value, struct cli_sources *sources);
/* Valid as long as `sources`. */
struct source_search cli_source_search(const struct cli_sources *sources);
/* When the recording began, to recognise sources that were changed later; 0: not known. */
time_t cli_started(struct profile *p);

#endif
