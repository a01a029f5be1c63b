/* SPDX-License-Identifier: Apache-2.0 */
/* drain-ends.c - looks after processes: which have ended, which run without the agent, what all have missed.
 */
#include "collect/drain/drain-internal.h"

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

void drain_look(struct drain *d)
{
    d->looked = d->attached;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        struct slot *slot = &d->slots[i];
        if (slot->proc == NULL)
            continue;
        agent_time_look(&slot->agent, slot->proc, (pid_t)slot->pid);
        if (slot->agent.there != 0) {
            blocked_look(&slot->blocked, slot->proc, (pid_t)slot->pid);
            unknown_threads_look(&slot->unknown, slot->proc, (pid_t)slot->pid);
        }
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

uint64_t drain_unknown_threads_ns(const struct drain *d)
{
    return d->unknown_threads_ns;
}

uint64_t drain_unknown_children(const struct drain *d)
{
    return d->unknown_children;
}

const struct missed *drain_missed(const struct drain *d)
{
    return &d->missed;
}

uint64_t drain_lost(const struct drain *d)
{
    return d->lost;
}
