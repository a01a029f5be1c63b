/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - the time of the references right before a burst, from the marks of counting code. */
#include <sys/resource.h>
#include "agent/clock/clock.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"

#define NEAR_PARTS (COUNT_NEAR_REFS / COUNT_MARK_REFS)
/* Limit of what a page fault is taken to cost, in multiples of its cost in the collector: anything longer was
 * something else, such as a host that ran other guests. */
#define PAGE_MOST_TIMES 3u
_Static_assert(COUNT_MARKS >= NEAR_PARTS + 2, "their beginnings and ends, and the place of the burst");

uint64_t count_ns_of(const struct counting *c, uint64_t ticks)
{
    return ticks * 1000 / c->ticks_per_us;
}

uint64_t count_page_faults(void)
{
    struct rusage use;
    return sys_failed(sys2(SYS_getrusage, RUSAGE_THREAD, &use)) ? 0 : (uint64_t)use.ru_minflt;
}

/* The stretch between two of the last marks. */
struct segment {
    uint64_t refs, ns, faults;
};

/* Segment number `i`, the last one first; refs 0: there are no more. */
static struct segment segment(const struct counting *c, unsigned i)
{
    if (i + 2 > c->marks || i + 2 > COUNT_MARKS)
        return (struct segment){0, 0, 0};
    const struct count_mark *m = &c->mark[(c->marks - 2 - i) % COUNT_MARKS],
                            *later = &c->mark[(c->marks - 1 - i) % COUNT_MARKS];
    uint64_t took = count_ns_of(c, later->ticks - m->ticks), out = later->excluded_ns - m->excluded_ns;
    return (struct segment){later->total - m->total, took > out ? took - out : 0,
                            later->faults > m->faults ? later->faults - m->faults : 0};
}

/* The measured cost of page faults: segments with faults compared with segments without, in the same stretch;
 * all threads together. The collector's own measurement (wire_session.page_ns) is used until there are such
 * segments; it counts like as many faults as it was measured with. */
static struct {
    uint64_t ns, faults;
} paging;

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
    uint64_t own = without.ns * with.refs / without.refs,
             most = with.faults * session->page_ns * PAGE_MOST_TIMES,
             cost = with.ns > own ? with.ns - own : 0;
    count_add(&paging.ns, cost < most ? cost : most);
    count_add(&paging.faults, with.faults);
}

/*
 * Sets the time of the code right before the burst. The stretch's time elapses at a mark with a probability
 * proportional to the time since the previous mark, and the burst begins up to COUNT_NEAR_REFS later,
 * anywhere with the same probability. So the probability that it begins at this place is proportional to the
 * time of those parts between marks that end so shortly before it: the last few, without what follows the
 * last mark. (The number of parts counts, not their references: one string instruction may make more than all
 * others.) Page faults are included, since the stretch goes on through them.
 */
void count_near_times(struct thread *t)
{
    struct counting *c = &t->clock;
    uint64_t ns = 0, parts = 0;
    struct segment s;
    learn_paging(c);
    while (parts < NEAR_PARTS && (s = segment(c, (unsigned)parts + 1)).refs > 0) {
        ns += s.ns;
        parts++;
    }
    c->near_refs = parts * COUNT_MARK_REFS;
    c->near_ns = ns;
}

/* Time of the stretch in which no trigger could fire: the collector's event only fires in user code, not
 * while the kernel provides pages. */
uint64_t count_paging_ns(const struct thread *t)
{
    const struct counting *c = &t->clock;
    uint64_t last = c->mark[(c->marks - 1) % COUNT_MARKS].faults,
             faults = last > c->faults ? last - c->faults : 0;
    uint64_t ns = paging.ns + session->page_ns * WIRE_PAGES_TRIED, of = paging.faults + WIRE_PAGES_TRIED;
    int by_event =
        t->timing.trigger && __atomic_load_n(&t->timing.trigger->armed, __ATOMIC_RELAXED) == t->tid;
    return by_event ? faults * ns / of : 0;
}
