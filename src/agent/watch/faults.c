/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c - touches of closed pages. One of the watched line is what was waited for; one of a
 * neighbour opens the page for a short burst, whose records are looked through for the line.
 */
#include "agent/burst/burst.h"
#include "agent/clock/clock.h"
#include "agent/code/code.h"
#include "agent/divert/divert.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"

/* Of the process' own time, that of the other threads. */
static uint64_t others_ns(const struct thread *t)
{
    return watch_own_ns() - (cpu_ns() - t->watch.overhead_ns);
}

/* A fault holds the thread up, and its page is open: what others run meanwhile is nothing to their lines. */
static void fault_begins(struct thread *t)
{
    t->watch.others_ns = watch_many() ? others_ns(t) : 0;
}

/*
 * On a busy page a thread is held up a hundred times in the time that it would have taken; another one runs
 * on meanwhile. Were that time, eight threads with a table of 256 KB each would seem to need megabytes. Nor
 * is it time for the page's lines, whoever left them behind: others touch them unseen.
 */
static void fault_goes_on(struct thread *t)
{
    if (!t->watch.others_ns)
        return;
    uint64_t now = others_ns(t);
    if (now > t->watch.others_ns) {
        watch_lock();
        lines_wait(t->tid, t->watch.probe_page, now - t->watch.others_ns);
        watch_unlock();
    }
    t->watch.others_ns = now;
}

/* A page touched again right after its last short burst gets a longer one: that costs less than another. */
static void choose_length(struct thread *t, uint64_t page, uint64_t now)
{
    struct watch_thread *w = &t->watch;
    if (page != w->probe_page || now - w->probe_ended_ns >= MINI_SOON_NS)
        w->probe_words = MINI_LEAST_WORDS;
    else if (w->probe_words < MINI_WORDS)
        w->probe_words *= 2;
    w->probe_page = page;
}

/* CPU time from the fault that the handler looked at the clock for, at `then`. */
static uint64_t since_fault(uint64_t then)
{
    return cpu_ns() - then + watching()->fault_entry_ns;
}

/* Opens the page if it is closed. 1: it was; 0: it was not; negative: it is not there any more. */
static int touch(uint64_t address, uint64_t now, int *wanted)
{
    watch_lock();
    struct page *p = find_page(address);
    int closed = p && p->closed;
    if (closed && !open_page(p)) {
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_UNMAPPED);
        closed = -1;
    } else if (closed) {
        hit_range(address, address + 1, since_fault(now), watch_inside_refs());
        *wanted = page_is_wanted(p);
    }
    watch_unlock();
    return closed;
}

/* The page is open: another thread opened it between the fault and here, or the fault has nothing to do with
 * us. Nonzero if the access works by now, or is worth another try as pages were closed meanwhile. */
static int is_past(uint64_t address, int write, uint64_t before)
{
    return safe_probe((void *)address, write) == 0 || before != __atomic_load_n(&closings, __ATOMIC_ACQUIRE);
}

/* A neighbour of the line was touched: what comes now is looked at. 0: that cannot be. */
static int begin_mini(struct thread *t, uint64_t page, uint64_t now, ucontext_t *uc)
{
    choose_length(t, page, now);
    t->watch.probe_cpu_ns = now;
    fault_begins(t);
    uint64_t *end = t->probe_buffer + MINI_WORDS;
    return burst_enter_probe(t, uc, end - t->watch.probe_words, end);
}

int watch_fault(struct thread *t, uint64_t address, int write, ucontext_t *uc)
{
    static int were_many;
    int wanted = 0, closed;
    if (!session || !session->watch)
        return 0;
    were_many |= watch_many();
    uint64_t now = cpu_ns(), page = address & ~(uint64_t)(WIRE_PAGE - 1), away = t ? count_work_begins(t) : 0;
    uint64_t before = __atomic_load_n(&closings, __ATOMIC_ACQUIRE);
    closed = touch(address, now, &wanted);
    if (closed == 0)
        return were_many && is_past(address, write, before);
    if (closed < 0)
        return 0;
    count_add(&proc->count.watch_faults, 1);
    if (!uc || !t || t->ending || t->state != THREAD_NATIVE) { /* it is closed again when this ends */
        if (away) {
            count_work_ends(t, away);
            t->clock.away_ns += watching()->fault_ns;
        }
        return 1;
    }
    if (wanted) {
        /* Not in the agent's code, of functions that the target called on a stack of its own: what it does
         * there must not be translated, and will touch the page again. */
        if (!region_is_agent(arch_pc(uc)) && begin_mini(t, page, now, uc))
            return 1;
        watch_lock();
        settle_range(page, page + WIRE_PAGE, WIRE_WATCH_LOST);
        watch_unlock();
    }
    if (!watch_many() && nclosed == 0)
        divert_disable(t);
    t->watch.fault_end_ns = cpu_ns();
    watch_spend(t, t->watch.fault_end_ns - now + watching()->fault_ns);
    return 1;
}

/* Counts a short burst's references. The watched lines of open pages are those that it can have touched, so
 * long ago. */
static void settle_touched(const uint64_t *words, const uint64_t *end, uint32_t last_insns, uint64_t ago_ns)
{
    uint64_t lines[WIRE_MAX_WATCHES];
    unsigned n = 0;
    watch_lock();
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        const struct wire_watch *w = &watching()->watch[i];
        const struct page *p = is_wanted(w) ? find_page(w->line) : NULL;
        if (p && !p->closed)
            lines[n++] = w->line;
    }
    watch_unlock();
    struct touched touched = records_touched(words, end, last_insns, lines, n);
    if (touched.found) {
        watch_lock();
        for (unsigned i = 0; i < n; i++)
            if (touched.found >> i & 1)
                hit_range(lines[i], lines[i] + 1, ago_ns, watch_inside_refs() + touched.before);
        watch_unlock();
    }
    count_add(&proc->count.watch_refs, touched.refs);
}

void watch_mini_end(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns)
{
    count_add(&proc->count.watch_minis, 1);
    fault_goes_on(t);
    settle_touched(t->burst.buffer_start, end_of_words, last_insns, since_fault(t->watch.probe_cpu_ns));
    watch_close(t, t->generated.app_mask);
    fault_goes_on(t);
    t->watch.probe_ended_ns = t->watch.fault_end_ns = cpu_ns();
    /* Of the two faults, by which it was entered and left, the former's way in and the latter's way out. */
    watch_spend(t, t->watch.probe_ended_ns - t->watch.probe_cpu_ns +
                       watching()->fault_ns * MINI_BACK_PERCENT / 100);
}
