/* SPDX-License-Identifier: Apache-2.0 */
/* record-debug.c - CACHEGRAM_DEBUG=NAME=N,NAME=N: what tests ask of `record` (tests/README.md). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/record-debug.h"
#include "machine/vectors.h"
#include "symbols/image.h"

#define VARIABLE "CACHEGRAM_DEBUG"
#define WATCH_LINES_MAX 64u
#define SWITCH_MS_MAX 10000u

static int set(struct collect_options *o, const char *name, const char *value)
{
    unsigned debug_info = 1, line_filter = 1;
    const struct {
        const char *name;
        unsigned least, most;
        unsigned *to;
    } known[] = {
        {"watch-lines", 1, WATCH_LINES_MAX, &o->watch_lines},
        {"switch-ms", 1, SWITCH_MS_MAX, &o->switch_ms},
        {"full-refs", 1, UINT_MAX, &o->full_refs},
        {"count-refs", 1, UINT_MAX, &o->count_refs},
        {"count-vector", 15, 31, &o->count_vector},
        {"debug-info", 0, 1, &debug_info},
        {"line-filter", 0, 1, &line_filter},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char option[64];
        uint64_t number;
        if (strcmp(name, known[i].name) != 0)
            continue;
        snprintf(option, sizeof(option), VARIABLE ": %s", name);
        int status = cli_whole_option("record", option, value, known[i].least, known[i].most, &number);
        if (status == 0)
            *known[i].to = (unsigned)number;
        o->unfiltered |= !line_filter;
        if (!debug_info)
            symbols_image_no_debug_info();
        return status;
    }
    return cli_misuse("record", VARIABLE ": there is no '%s'", name);
}

int record_debug(struct collect_options *o)
{
    const char *given = getenv(VARIABLE);
    char *copy = given != NULL ? strdup(given) : NULL, *next, *item;
    int status = 0;
    unsetenv(VARIABLE);
    for (item = copy != NULL ? strtok_r(copy, ",", &next) : NULL; item != NULL && status == 0;
         item = strtok_r(NULL, ",", &next)) {
        char *value = strchr(item, '=');
        if (value != NULL)
            *value++ = '\0';
        status = set(o, item, value != NULL ? value : "");
    }
    free(copy);
    if (status == 0 && o->count_vector != 0 && o->count_vector != 15 &&
        o->count_vector != vectors_for_counting())
        status = cli_misuse("record", VARIABLE ": count-vector %u: must be 15 or what this processor has",
                            o->count_vector);
    return status;
}
