/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

#define FIELD_BYTES 32u

/*
 * Reads the next field, up to a colon or the end; *text moves past the colon, NULL at the end. -1: too long.
 */
static int next_field(const char **text, char field[FIELD_BYTES])
{
    size_t length = strcspn(*text, ":");
    if (length >= FIELD_BYTES)
        return -1;
    memcpy(field, *text, length);
    field[length] = 0;
    *text = (*text)[length] ? *text + length + 1 : NULL;
    return 0;
}

static int parse_ways(const char *field, uint32_t *ways)
{
    char *end;
    if (strcmp(field, "full") == 0) {
        *ways = 0;
        return 0;
    }
    unsigned long value = strtoul(field, &end, 10);
    if (field[0] < '0' || field[0] > '9' || *end || value == 0 || value > SIM_LINES)
        return -1;
    *ways = (uint32_t)value;
    return 0;
}

/* A word after the ways; seen: bits of the kinds of words so far. */
static int parse_word(const char *field, struct sim_level *cache, unsigned *seen)
{
    static const char *const inclusions[] = {"non-inclusive", "inclusive", "exclusive"};
    static const char *const sharing[] = {"private", "shared"};
    unsigned kind = 0;
    for (int i = 0; i < SIM_POLICIES; i++)
        if (strcmp(field, sim_policy_name((enum sim_policy)i)) == 0)
            cache->policy = (enum sim_policy)i, kind = 1;
    for (int i = 0; i < 3; i++)
        if (strcmp(field, inclusions[i]) == 0)
            cache->inclusion = (enum sim_inclusion)i, kind = 2;
    for (int i = 0; i < 2; i++)
        if (strcmp(field, sharing[i]) == 0)
            cache->shared = i, kind = 4;
    if (kind == 0 || *seen & kind)
        return -1;
    *seen |= kind;
    return 0;
}

int sim_spec_parse(const char *text, uint32_t *level, struct sim_level *cache, struct error *err)
{
    struct sim_level parsed = {.policy = SIM_LRU};
    char field[FIELD_BYTES];
    const char *rest = text;
    uint32_t number = 0;
    unsigned seen = 0;
    for (int i = 0; i < 3 || rest; i++) {
        if (!rest || next_field(&rest, field) != 0)
            return error_set(err, -EINVAL, "'%s' is not a cache: write LEVEL:SIZE:WAYS, as L1:32K:8", text);
        if (i == 0) {
            if (field[0] != 'L' || field[1] < '1' || field[1] > '0' + (int)SIM_LEVELS || field[2])
                return error_set(err, -EINVAL, "'%s': '%s' is not a level: L1 to L%u", text, field,
                                 SIM_LEVELS);
            number = (uint32_t)(field[1] - '1');
        } else if (i == 1) {
            struct error why;
            int code = size_parse(field, &parsed.size_bytes, &why);
            if (code != 0)
                return error_set(err, code, "'%.64s': %.512s", text, why.text);
        } else if (i == 2) {
            if (parse_ways(field, &parsed.ways) != 0)
                return error_set(err, -EINVAL, "'%s': '%s' is not a number of ways or 'full'", text, field);
        } else if (parse_word(field, &parsed, &seen) != 0) {
            return error_set(err, -EINVAL,
                             "'%s': '%s' is not a policy (lru, random, fifo, plru, nehalem, rrip, icelake) "
                             "or one of inclusive, exclusive, non-inclusive, shared, private, or a word of "
                             "the same kind came before it",
                             text, field);
        }
    }
    *level = number;
    *cache = parsed;
    return 0;
}
