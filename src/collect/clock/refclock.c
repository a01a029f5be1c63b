/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refclock.c - positions of bursts, from counted stretches.
 *
 * With each burst the agent reports what it counted. Counters outside report stretches. A stretch begins some
 * time after a burst, when the collector has read the counters, and ends with the interrupt that begins the
 * next burst. So it contains no burst, in which translated code and the agent run. Between a burst's end and
 * the stretch's beginning, the stretch's rate is assumed:
 *
 *     references before = those before the last burst + its own + rate * CPU time since its end
 *
 * Example: a burst of 100 references that began after 5,000 references ended at 3,000 ns of the thread's CPU
 * time. The next one begins at 13,000 ns; from 3,500 ns on, 19,000 references were counted. The rate is 2 per
 * ns, and the burst begins after 5,000 + 100 + 2 * 10,000 = 25,100 references.
 */
#include "collect/clock/refclock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "collect/clock/counting.h"
#include "collect/clock/faultcost.h"
#include "collect/tunables.h"

/* Bursts of a thread that may wait in buffers while newer stretches are counted. */
#define STRETCHES WIRE_MAX_BUFFERS

struct thread {
    uint32_t tid;
    uint64_t references; /* in its bursts so far */
    /* Counted from outside, and not used yet. */
    struct refclock_stretch stretch[STRETCHES]; /* a ring */
    uint32_t first, n;
    double refs_per_ns;    /* of the last stretch; NaN: none yet */
    double trigger_per_ns; /* likewise; 0: none, or bursts are placed by time */
    double start_refs;     /* of the thread, at the end of its last burst */
    uint64_t cpu_end_ns;   /* likewise; 0: it had no burst yet */
    uint64_t end_ns;
};

struct refclock {
    struct thread **threads; /* in no order */
    size_t n;
};

struct refclock *refclock_new(void)
{
    return calloc(1, sizeof(struct refclock));
}

void refclock_free(struct refclock *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n; i++)
        free(c->threads[i]);
    free(c->threads);
    free(c);
}

static struct thread *thread_of(struct refclock *c, uint32_t tid)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->threads[i]->tid == tid)
            return c->threads[i];
    if ((c->n & (c->n - 1)) == 0) {
        void *more = realloc(c->threads, (c->n ? 2 * c->n : 1) * sizeof(*c->threads));
        if (more == NULL)
            return NULL;
        c->threads = more;
    }
    struct thread *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return NULL;
    t->tid = tid;
    t->refs_per_ns = NAN;
    c->threads[c->n++] = t;
    return t;
}

int refclock_counted(struct refclock *c, const struct refclock_stretch *stretch)
{
    struct thread *t = thread_of(c, stretch->tid);
    if (t == NULL)
        return -ENOMEM;
    if (t->n == STRETCHES) { /* not asked for long: the oldest is the least useful */
        t->first = (t->first + 1) % STRETCHES;
        t->n--;
    }
    t->stretch[(t->first + t->n++) % STRETCHES] = *stretch;
    return 0;
}

void refclock_more(struct refclock *c, uint32_t tid, uint64_t references)
{
    struct thread *t = thread_of(c, tid);
    if (t == NULL)
        return;
    t->references += references;
    t->start_refs += (double)references;
}

/* Uses the stretches that ended before the burst began. A stretch that began inside the previous burst is
 * invalid. */
static void take_stretches(struct thread *t, uint64_t start_ns)
{
    double references = 0, cpu_ns = 0;
    for (; t->n > 0 && t->stretch[t->first].end_ns <= start_ns;
         t->first = (t->first + 1) % STRETCHES, t->n--) {
        const struct refclock_stretch *s = &t->stretch[t->first];
        if (s->start_ns < t->end_ns || !(s->cpu_ns > 0))
            continue;
        references += s->references;
        cpu_ns += s->cpu_ns;
        t->trigger_per_ns = s->trigger_per_ns;
    }
    if (cpu_ns > 0)
        t->refs_per_ns = references / cpu_ns;
}

/*
 * Native execution is interrupted at a moment of its user-mode time; the counting stretch then goes on in the
 * time of counting code. Returns the ratio of the two, from the trigger to the burst.
 */
static double triggered_share(const struct wire_desc *desc)
{
    double ns = (double)(desc->warm_ns + desc->count_ns);
    double native_ns = counting_native_ns(ns, (double)(desc->warm_blocks + desc->count_blocks),
                                          (double)(desc->warm_turns + desc->count_turns));
    return fmax(native_ns - (double)desc->paging_ns, native_ns * COLLECT_USER_LEAST) / ns;
}

/* References per nanosecond of CPU time in native code, from those counted before the burst; and the same for
 * the last part of the stretch, in which the burst's start was drawn. */
static void native_rates(const struct wire_desc *desc, struct refclock_burst *out)
{
    if (desc->count_refs == 0 || desc->count_ns == 0)
        return;
    double refs = (double)desc->count_refs, ns = (double)desc->count_ns;
    if (desc->near_refs == 0)
        ns -= fmin((double)alarm_cost_ns(), ns / 2); /* for the alarm that ended the stretch */
    double native_ns = counting_native_ns(ns, (double)desc->count_blocks, (double)desc->count_turns);
    out->refs_per_ns = refs / (native_ns + (double)desc->count_call_ns);
    if (desc->near_refs > 0 && desc->near_ns > 0)
        out->near_per_ns = (double)desc->near_refs / ((double)desc->near_ns * triggered_share(desc));
}

int refclock_burst(struct refclock *c, const struct wire_desc *desc, uint64_t references,
                   struct refclock_burst *out)
{
    struct thread *t = thread_of(c, desc->tid);
    if (t == NULL)
        return -ENOMEM;
    *out = (struct refclock_burst){
        .start_refs = NAN, .refs_per_ns = NAN, .near_per_ns = NAN, .stratum_refs = NAN};
    native_rates(desc, out);
    if (desc->cpu_start_ns < t->cpu_end_ns) { /* a new thread that got the old one's id */
        t->references = 0;
        t->start_refs = 0;
        t->cpu_end_ns = 0;
    }
    if (desc->count_gap != 0) {
        out->start_refs = (double)desc->count_before + (double)t->references;
        out->stratum_refs = (double)desc->count_gap;
    }
    t->references += references;

    take_stretches(t, desc->start_ns);
    if (!isnan(t->refs_per_ns)) {
        double native_ns =
            desc->cpu_start_ns > t->cpu_end_ns ? (double)(desc->cpu_start_ns - t->cpu_end_ns) : 0;
        out->start_refs = t->start_refs + native_ns * t->refs_per_ns;
        out->refs_per_ns = t->refs_per_ns;
        if (t->trigger_per_ns > 0)
            out->stratum_refs = (double)desc->gap_ns * t->trigger_per_ns;
        t->start_refs = out->start_refs + (double)references;
    } else {
        t->start_refs += (double)references;
    }
    t->cpu_end_ns = desc->cpu_end_ns;
    t->end_ns = desc->end_ns;
    return 0;
}
