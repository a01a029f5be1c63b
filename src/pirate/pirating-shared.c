/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirating-shared.c - shared by whole runs and intervals: taking cache away, and checking afterwards whether
 * a measurement is valid.
 */
#include "pirate/pirating-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHARED_TRIES 3 /* the other thread may have been preempted */

void pirating_note(struct pirating *p, const char *format, ...)
{
    size_t used = strlen(p->result->notes);
    va_list args;
    if (used + 2 > sizeof p->result->notes)
        return;
    if (used > 0)
        p->result->notes[used++] = '\n';
    va_start(args, format);
    vsnprintf(p->result->notes + used, sizeof p->result->notes - used, format, args);
    va_end(args);
}

int pirating_take(struct pirating *p, unsigned threads, uint64_t stolen_bytes, struct error *err)
{
    if (p->resctrl)
        return resctrl_leave(p->resctrl, p->result->llc_bytes - stolen_bytes, err);
    pirate_steal(p->pirate, threads,
                 stolen_bytes ? stolen_bytes + threads * p->result->llc.private_bytes : 0);
    return 0;
}

void pirating_target_cpus(const struct pirating *p, cpu_set_t *cpus)
{
    if (p->resctrl)
        *cpus = p->result->llc.cpus;
    else
        llc_target_cpus(&p->result->llc, p->result->threads, cpus);
}

struct hold_count pirating_count(const struct pirating *p)
{
    return p->pirate ? pirate_count(p->pirate) : (struct hold_count){0};
}

int pirating_held(const struct pirating *p, struct cell *cell, const struct hold_count *before,
                  const struct hold_count *after)
{
    if (!p->pirate || cell->stolen_bytes == 0)
        return 1; /* guaranteed by the hardware; nothing to check */
    struct hold_count seen = hold_since(before, after);
    struct hold_verdict v = hold_judge(&seen, pirate_scale(p->pirate), p->options->limit);
    hold_add(&cell->seen, &seen);
    if (p->options->limit >= 1) /* no proof was requested */
        return 1;
    cell->dropped += !v.proven;
    cell->not_held += !v.proven && v.lost_share < p->options->limit;
    return v.proven;
}

int pirating_shared(struct pirating *p)
{
    if (!p->pirate || p->options->limit >= 1) /* no proof was requested */
        return 1;
    for (int i = 0; i < SHARED_TRIES; i++) {
        int shared = pirate_is_shared(p->pirate);
        if (shared >= 0)
            return shared;
    }
    return 0;
}

void pirating_count_unshared(struct pirating *p, struct cell *cell)
{
    cell->dropped++;
    p->result->unshared++;
}

void pirating_count_disturbed(struct pirating *p, struct cell *cell)
{
    cell->dropped++;
    p->result->disturbed++;
}

struct span pirating_span(const struct pirating *p)
{
    return (struct span){.from = p->options->from, .to = p->options->to};
}

int pirating_start_status(int code)
{
    return code == -ENOENT ? 127 : code == -EACCES || code == -ENOEXEC ? 126 : 125;
}
