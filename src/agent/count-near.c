/* SPDX-License-Identifier: Apache-2.0 */
/* count-near.c - what the references right before a burst took, from the marks that counting code came by. */
#include <sys/resource.h>
#include "agent/agent.h"
#include "agent/sys.h"

uint64_t count_ns_of(const struct counting *c, uint64_t ticks)
{
    return ticks * 1000 / c->ticks_per_us;
}

uint64_t count_page_faults(void)
{
    struct rusage use;
    return sys_failed(sys2(SYS_getrusage, RUSAGE_THREAD, &use)) ? 0 : (uint64_t)use.ru_minflt;
}

/* From one of the last marks to the next one. */
struct segment {
    uint64_t refs, ns, faults;
};

/* Number `i` of them, the last one first; refs 0: there are no more. */
static struct segment segment(const struct counting *c, unsigned i)
{
    if (i + 2 > c->marks || i + 2 > COUNT_MARKS)
        return (struct segment){0, 0, 0};
    const struct count_mark *m = &c->mark[(c->marks - 2 - i) % COUNT_MARKS],
                            *later = &c->mark[(c->marks - 1 - i) % COUNT_MARKS];
    uint64_t took = count_ns_of(c, later->in - m->in), out = later->out_ns - m->out_ns;
    return (struct segment){later->total - m->total, took > out ? took - out : 0,
                            later->faults > m->faults ? later->faults - m->faults : 0};
}

/*
 * What pages have cost: segments with faults against those without in the same stretch. Of all threads; begun
 * with a usual cost, which a hundred faults outweigh.
 */
static struct {
    uint64_t ns, faults;
} paging = {FAULT_USUAL_NS * FAULT_USUAL_WEIGHT, FAULT_USUAL_WEIGHT};

static void learn_paging(const struct counting *c)
{
    struct segment s, without = {0, 0, 0}, with = {0, 0, 0};
    for (unsigned i = 0; (s = segment(c, i)).refs > 0; i++) {
        struct segment *sum = s.faults ? &with : &without;
        sum->refs += s.refs;
        sum->ns += s.ns;
        sum->faults += s.faults;
    }
    if (!without.refs || !with.faults)
        return;
    uint64_t own = without.ns * with.refs / without.refs;
    count_add(&paging.ns, with.ns > own ? with.ns - own : 0);
    count_add(&paging.faults, with.faults);
}

/*
 * What the references right before the last mark took; between marks as if they were all alike. The
 * collector's event only falls due in user code: what the kernel took for pages is left out then.
 */
void count_tell_near(struct thread *t)
{
    struct counting *c = &t->count;
    uint64_t left = COUNT_NEAR_REFS, ns = 0, each = 0;
    struct segment s;
    learn_paging(c);
    if (t->trigger && __atomic_load_n(&t->trigger->armed, __ATOMIC_RELAXED) == t->tid)
        each = paging.ns / paging.faults;
    for (unsigned i = 0; left > 0 && (s = segment(c, i)).refs > 0; i++) {
        uint64_t part = s.refs < left ? s.refs : left, least = s.ns / FAULT_LEAST_SHARE;
        uint64_t own = s.ns > s.faults * each + least ? s.ns - s.faults * each : least;
        ns += own * part / s.refs;
        left -= part;
    }
    c->near_refs = COUNT_NEAR_REFS - left;
    c->near_ns = ns;
}
