/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentless.h - programs among the command's children, or in its place, that the agent is not in: which, and
 * why. Agents say what is about to be executed (wire_session.execution); what nobody says is found among the
 * descendants now and then.
 */
#ifndef CACHEGRAM_COLLECT_AGENTLESS_H
#define CACHEGRAM_COLLECT_AGENTLESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "wire/wire.h"

#define AGENTLESS_KEPT 16u

struct agentless {
    uint32_t executions; /* of the session, that were looked at */
    unsigned n, more;    /* processes kept; and such that there was no room for */
    struct {
        pid_t pid;
        char name[128], why[96];
        uint64_t cpu_ns; /* of the process, when last seen */
        unsigned looks;  /* at which it was seen without the agent */
        int certain;     /* the program is one that the agent cannot be loaded into */
    } process[AGENTLESS_KEPT];
};

/* To be called now and then while the command runs. has_agent: nonzero if the agent is in that process, or
 * nobody knows. */
void agentless_look(struct agentless *a, const struct wire_session *session, pid_t command,
                    int (*has_agent)(void *ctx, pid_t pid), void *ctx);
/* Only what agents have said since. */
void agentless_executed(struct agentless *a, const struct wire_session *session);
/* "NAME (REASON), ...", or "" if there was none. */
void agentless_list(const struct agentless *a, char *text, size_t size);

#endif
