/* SPDX-License-Identifier: Apache-2.0 */
/* drain-use.c - cost of profiling for the target so far. */
#include "collect/drain/drain-internal.h"
#include "collect/clock/counting.h"
#include "collect/clock/faultcost.h"
#include "collect/launch/process-time.h"
#include "collect/tunables.h"

uint64_t drain_profiling_ns(const struct drain *d, const struct wire_counters *count)
{
    uint64_t ticks = count->ticks != 0 ? count->ticks * alarm_cost_ns() : 0; /* measured at the first call */
    uint64_t bursts = count->burst_cpu_ns + count->bursts * BUDGET_AFTER_BURST_NS + ticks;
    if (d->mode == WIRE_MODE_COUNT) /* see drain_counting */
        return bursts;
    uint64_t counting = count->count_cpu_ns,
             away = count->count_agent_ns < counting ? count->count_agent_ns : counting;
    return bursts + away + (counting - away) * BUDGET_COUNTING_PERCENT / 100;
}

void drain_add_counting(const struct drain *d, const struct wire_counters *count, struct drain_counting *sum)
{
    if (d->mode != WIRE_MODE_COUNT || count->count_cpu_ns < count->count_agent_ns)
        return;
    double ns = (double)(count->count_cpu_ns - count->count_agent_ns),
           native_ns = counting_native_ns(ns, (double)count->count_blocks, (double)count->count_turns);
    sum->native_ns += native_ns;
    sum->added_ns += (double)count->count_cpu_ns - native_ns;
}

struct drain_counting drain_counting(const struct drain *d)
{
    struct drain_counting sum = d->ended_counting;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            drain_add_counting(d, &d->slots[i].proc->count, &sum);
    return sum;
}

struct budget_use drain_use(struct drain *d)
{
    struct budget_use use = {.burst_ns = drain_burst_cpu_ns(d), .target_ns = d->ended_cpu_ns};
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        struct slot *slot = &d->slots[i];
        if (slot->proc == NULL)
            continue;
        uint64_t ns;
        if (!slot->replaced) {
            process_cpu_ns((pid_t)slot->pid, &ns); /* 0 if it has ended */
            slot->cpu_ns = ns > slot->cpu_ns ? ns : slot->cpu_ns;
        }
        use.target_ns += slot_cpu_ns(slot);
        use.bursts += slot->proc->count.bursts;
        use.watch_ns += slot->proc->count.watch_cpu_ns;
        use.start_ns += slot->proc->count.start_cpu_ns;
    }
    use.bursts += d->ended_bursts;
    use.watch_ns += d->ended_watch_ns;
    use.start_ns += d->ended_start_ns;
    use.start_ns += use.start_ns * BUDGET_START_AROUND_PERCENT / 100;
    return use;
}

uint64_t drain_burst_cpu_ns(const struct drain *d)
{
    uint64_t sum = d->burst_cpu_ns;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            sum += drain_profiling_ns(d, &d->slots[i].proc->count);
    return sum;
}

uint64_t drain_memory_bytes(const struct drain *d)
{
    return d->memory_bytes;
}

uint64_t drain_counted(const struct drain *d)
{
    uint64_t sum = d->counted;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            sum += d->slots[i].proc->count.count_refs + d->slots[i].proc->count.count_string_refs;
    return sum;
}

uint64_t drain_all_counted(const struct drain *d)
{
    uint64_t sum = d->all_counted;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            sum += d->slots[i].proc->count.all_refs;
    return sum;
}

/* How many were counted in other stretches is known of both kinds of references together. */
uint64_t drain_all_counted_strings(const struct drain *d)
{
    uint64_t strings = d->counted_strings, counted = drain_counted(d), all = drain_all_counted(d),
             others = counted > all ? counted - all : 0;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            strings += d->slots[i].proc->count.count_string_refs;
    return strings > others && strings - others <= all ? strings - others : 0;
}

uint64_t drain_agent_ns(const struct drain *d)
{
    return d->agent_ns;
}

uint64_t drain_assumed_ns(const struct drain *d)
{
    return d->assumed_ns;
}
