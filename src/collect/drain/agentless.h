/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentless.h - finds programs without the agent among the command's descendants, or executed by the command
 * itself, and why. Agents announce what is about to be executed (wire_session.execution); other programs are
 * found by examining the descendants from time to time.
 */
#ifndef CACHEGRAM_COLLECT_AGENTLESS_H
#define CACHEGRAM_COLLECT_AGENTLESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "wire/wire.h"

#define AGENTLESS_KEPT 16u

struct agentless {
    uint32_t executions; /* of the session, when they were last looked at; */
    uint64_t handled;    /* of the last WIRE_MAX_EXECUTIONS: bits, by number modulo that */
    unsigned n, more;    /* stored processes; number of others */
    struct {
        pid_t pid;
        char name[128], why[96];
        uint64_t cpu_ns; /* of the process, when last seen */
        unsigned looks;  /* number of times it was seen without the agent */
        int certain;     /* the program cannot load the agent */
    } process[AGENTLESS_KEPT];
};

/* To be called from time to time while the command runs. has_agent: nonzero if the agent is in that process,
 * or if this is unknown. */
void agentless_look(struct agentless *a, const struct wire_session *session, pid_t command,
                    int (*has_agent)(void *ctx, pid_t pid), void *ctx);
/* Handles only what agents have announced since. One that is still being written is handled the next time. */
void agentless_executed(struct agentless *a, const struct wire_session *session);
/* Whether a process with this environment (followed by a zero byte) was given the session; -1: unknown, as
 * where the program has overwritten it. An empty one may also be one that the kernel has not set up yet, at
 * the end of an exec: /proc/PID/stat, read after it, tells them apart by where the environment ends (0 until
 * then). */
int agentless_has_session(const char *environment, size_t size, const char *stat);
/* "NAME (REASON), ...", or "" if there was none. */
void agentless_list(const struct agentless *a, char *text, size_t size);

#endif
