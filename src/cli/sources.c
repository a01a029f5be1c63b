/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sources.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

int cli_source_option(const char *command, int opt, const char *value, struct cli_sources *sources)
{
    int map = opt == CLI_OPT_PREFIX_MAP;
    const char **list = map ? sources->maps : sources->folders;
    size_t *n = map ? &sources->nmaps : &sources->nfolders;
    if (map && (*value == '=' || !strchr(value, '=')))
        return cli_misuse(command, "'%s' is not OLD=NEW", value);
    if (*n == CLI_SOURCES_MOST)
        return cli_misuse(command, "there are more than %u %s", CLI_SOURCES_MOST,
                          map ? "--prefix-map" : "--source-dir");
    list[(*n)++] = value;
    return 0;
}

struct source_search cli_source_search(const struct cli_sources *sources)
{
    return (struct source_search){.folders = sources->folders,
                                  .nfolders = sources->nfolders,
                                  .maps = sources->maps,
                                  .nmaps = sources->nmaps};
}

time_t cli_started(struct profile *p)
{
    char text[64];
    struct tm tm = {0};
    if (profile_get(p, "started", text, sizeof text, NULL) != 0 ||
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec) != 6)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    time_t started = timegm(&tm);
    return started > 0 ? started : 0;
}
