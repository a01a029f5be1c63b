/* SPDX-License-Identifier: Apache-2.0 */
/* drain-ends.c - finds processes that have ended. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/read-text.h"
#include "collect/drain/drain-internal.h"

int drain_has_ended(const struct slot *slot)
{
    char text[1024];
    if (slot->pidfd >= 0) { /* a microsecond; the rest takes fifty */
        struct pollfd poll_end = {.fd = slot->pidfd, .events = POLLIN};
        return poll(&poll_end, 1, 0) > 0;
    }
    if (kill((pid_t)slot->pid, 0) != 0 && errno == ESRCH)
        return 1;
    ssize_t n = read_text(text, sizeof(text), "/proc/%u/stat", slot->pid);
    if (n < 0)
        return n == -ENOENT;
    const char *after = strrchr(text, ')'); /* after the name, which may contain anything */
    char state = '?';
    long threads = 0;
    if (after == NULL ||
        sscanf(after + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state,
               &threads) != 2)
        return 0;
    return (state == 'Z' || state == 'X') && threads <= 1;
}

/* The process has executed another program since, which has its own slot. */
static int replaced(const struct drain *d, const struct slot *slot)
{
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        const struct slot *other = &d->slots[i];
        if (other != slot && other->proc != NULL && other->pid == slot->pid &&
            other->start_ns > slot->start_ns)
            return 1;
    }
    return 0;
}

int drain_crowded(const struct drain *d)
{
    uint32_t used = 0, n = d->session->layout.nslots;
    if (__atomic_exchange_n(&d->session->map->slot_wanted, 0, __ATOMIC_SEQ_CST) != 0)
        return 1;
    for (uint32_t i = 0; i < n && d->attached != d->looked; i++)
        used += d->slots[i].proc != NULL;
    return 4 * used > n;
}

int drain_fresh(const struct drain *d)
{
    return d->attached != d->looked;
}

static int has_agent(void *ctx, pid_t pid)
{
    const struct drain *d = ctx;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL && d->slots[i].pid == (uint32_t)pid && d->slots[i].agent.there != 0)
            return 1;
    return 0;
}

void drain_release_ended(struct drain *d, uint32_t i)
{
    struct slot *slot = &d->slots[i];
    /* Until the process has ended its threads can still write. */
    if (slot->proc == NULL || (!drain_has_ended(slot) && !replaced(d, slot)))
        return;
    while (drain_slot(d, slot) != 0)
        ;
    for (uint32_t b = 0; b < d->session->layout.nbuffers; b++)
        slot->lost += __atomic_load_n(&slot->proc->buf_state[b], __ATOMIC_ACQUIRE) == WIRE_BUF_OWNED;
    drain_drop(d, slot, 1);
    session_release_slot(d->session, i);
}

void drain_look(struct drain *d)
{
    d->looked = d->attached;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        struct slot *slot = &d->slots[i];
        if (slot->proc == NULL)
            continue;
        agent_time_look(&slot->agent, slot->proc, (pid_t)slot->pid);
        if (slot->agent.there != 0)
            blocked_look(&slot->blocked, slot->proc, (pid_t)slot->pid);
        drain_release_ended(d, i);
    }
    if (d->command != 0)
        agentless_look(&d->agentless, d->session->map, d->command, has_agent, d);
}

void drain_command(struct drain *d, pid_t command)
{
    d->command = command;
}

void drain_agentless(struct drain *d, char *text, size_t size)
{
    if (d->command != 0)
        agentless_executed(&d->agentless, d->session->map);
    agentless_list(&d->agentless, text, size);
}

uint32_t drain_live(const struct drain *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        n += d->slots[i].proc != NULL &&
             __atomic_load_n(&d->slots[i].proc->state, __ATOMIC_ACQUIRE) == WIRE_PROC_LIVE;
    return n;
}

const struct unprofiled *drain_unprofiled(const struct drain *d)
{
    return &d->unprofiled;
}

const struct refusals *drain_refusals(const struct drain *d)
{
    return &d->refusals;
}

const struct missed *drain_missed(const struct drain *d)
{
    return &d->missed;
}

uint64_t drain_lost(const struct drain *d)
{
    return d->lost;
}
