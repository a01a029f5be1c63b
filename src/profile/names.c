/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/names.h"

#include <assert.h>
#include <stdio.h>

/* In the order of enum wire_end. The profile does not include wire.h, so the codes are repeated here; they
 * are part of the file format and never change. */
static const char *const end_names[] = {"more",  "full",   "syscall", "instruction", "code",
                                        "fault", "signal", "exit",    "space",       "rseq"};

const char *profile_end_name(uint32_t end)
{
    return end < sizeof end_names / sizeof end_names[0] ? end_names[end] : "unknown";
}

const char *profile_hist_name(enum profile_hist kind)
{
    static const char *const names[PROFILE_HIST_KINDS] = {"stack", "reuse", "first", "age", "expected"};
    assert(kind < PROFILE_HIST_KINDS);
    return names[kind];
}

const char *profile_outcome_name(enum profile_outcome outcome)
{
    static const char *const names[PROFILE_OUTCOMES] = {"open",     "reused",   "dropped",
                                                        "dangling", "unmapped", "refused"};
    assert(outcome < PROFILE_OUTCOMES);
    return names[outcome];
}

const char *profile_group_name(unsigned group, char name[PROFILE_SETS_NAME])
{
    snprintf(name, PROFILE_SETS_NAME, "group%u", group);
    return name;
}

const char *profile_sets_name(unsigned sets, char name[PROFILE_SETS_NAME])
{
    snprintf(name, PROFILE_SETS_NAME, "sets%u", sets);
    return name;
}
