/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c - faults of protected pages. A touch of the watched line itself is what was awaited. A touch
 * elsewhere in the page unprotects it for a probe burst, whose records are searched for the line.
 */
#include "agent/burst/burst.h"
#include "agent/clock/clock.h"
#include "agent/code/code.h"
#include "agent/divert/divert.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/watch/watch-internal.h"

/* Program CPU time of the other threads. */
static uint64_t others_ns(const struct thread *t)
{
    return watch_app_cpu_ns() - watch_thread_ns(t);
}

/* While a fault delays the thread and its page is accessible, time that the other threads run must not
 * count for their lines. */
static void others_time_begin(struct thread *t)
{
    t->watch.others_ns = watch_several_threads() ? others_ns(t) : 0;
}

/*
 * Faults on a busy page can delay a thread to a hundred times the time that it would have needed, and other
 * threads run on meanwhile. If their time counted, eight threads with a table of 256 KB each would seem to
 * need megabytes. It does not count for the page's lines either, whichever thread they are from: the other
 * threads touch them unnoticed.
 */
static void exclude_others_time(struct thread *t)
{
    if (!t->watch.others_ns)
        return;
    uint64_t now = others_ns(t);
    if (now > t->watch.others_ns) {
        watch_lock();
        postpone_lines(t->tid, t->watch.probe_page, now - t->watch.others_ns);
        watch_unlock();
    }
    t->watch.others_ns = now;
}

/* A page that faults again right after its last probe burst gets a longer one: that costs less than another
 * fault. */
static void choose_length(struct thread *t, uint64_t page, uint64_t now)
{
    struct watch_thread *w = &t->watch;
    if (page != w->probe_page || now - w->probe_ended_ns >= PROBE_SOON_NS)
        w->probe_words = PROBE_LEAST_WORDS;
    else if (w->probe_words < PROBE_WORDS)
        w->probe_words *= 2;
    w->probe_page = page;
}

/* CPU time of the return from a probe burst: the estimate, and what the program's own faults add to it. */
static uint64_t probe_return_ns(uint64_t extra)
{
    return watching()->fault_ns * PROBE_RETURN_PERCENT / 100 + extra;
}

static struct {
    unsigned n;
    uint64_t least_ns; /* from the return to the next fault, of n */
    uint64_t extra_ns; /* atomic */
} returns = {.least_ns = UINT64_MAX};

/* A fault, at `now`. Locked. */
static void note_return(const struct thread *t, uint64_t now)
{
    uint64_t returned = t->watch.probe_ended_ns + probe_return_ns(0),
             ns = now > returned ? now - returned : 0,
             most = watching()->fault_ns * PROBE_RETURN_MOST_PERCENT / 100, before = returns.extra_ns;
    if (!t->watch.probe_ended_ns || t->watch.probe_ended_ns != t->watch.fault_end_ns)
        return;
    if (ns < returns.least_ns)
        returns.least_ns = ns;
    if (++returns.n < PROBE_RETURNS)
        return;
    uint64_t least = returns.least_ns < most ? returns.least_ns : most;
    __atomic_store_n(&returns.extra_ns, before ? (3 * before + least) / 4 : least, __ATOMIC_RELAXED);
    returns.n = 0;
    returns.least_ns = UINT64_MAX;
}

/* CPU time since the fault whose handler read the clock at `then`. */
static uint64_t since_fault(uint64_t then)
{
    return cpu_ns() - then + watching()->fault_entry_ns;
}

/* Unprotects the page if it is protected. t: NULL: not followed. 1: it was; 0: it was not; negative: it is
 * not mapped any more. pc: of the instruction; 0: not known. */
static int touch(const struct thread *t, uint64_t address, uint64_t pc, uint64_t now, int *wanted)
{
    watch_lock();
    struct page *p = find_page(address);
    int was_protected = p && p->is_protected;
    if (was_protected && t)
        note_return(t, now);
    if (was_protected && !unprotect_page(p)) {
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_UNMAPPED);
        was_protected = -1;
    } else if (was_protected) {
        hit_range(address, address + 1, since_fault(now), watch_translated_refs(), pc);
        *wanted = page_is_pending(p);
    }
    watch_unlock();
    return was_protected;
}

/* Whether the access at that address is worth another try: once. */
static int may_try_again(struct thread *t, uint64_t address)
{
    uint64_t now = cpu_ns();
    int again = t->watch.retried_at == address && now - t->watch.retried_ns < RETRY_NS;
    t->watch.retried_at = again ? 0 : address;
    t->watch.retried_ns = now;
    return !again;
}

/* The page is not protected: another thread has unprotected it since the fault, or the fault is the
 * target's. Nonzero: the access works by now, or is worth another try, since pages were protected
 * meanwhile. */
static int access_now_works(struct thread *t, const ucontext_t *uc, uint64_t address, int write,
                            uint64_t before)
{
    if (t && uc && arch_fault_fetches(uc)) /* that it can be read says nothing */
        return may_try_again(t, address);
    if (safe_probe((void *)address, write) == 0 ||
        before != __atomic_load_n(&protection_count, __ATOMIC_ACQUIRE))
        return 1;
    /* A handler has not the program's rights to memory with a protection key. */
    return t && uc && arch_has_protection_keys() && may_try_again(t, address);
}

/* Another line of the page was touched: begins a probe burst. 0: not possible. */
static int begin_probe(struct thread *t, uint64_t page, uint64_t now, ucontext_t *uc)
{
    choose_length(t, page, now);
    t->watch.probe_cpu_ns = now;
    others_time_begin(t);
    uint64_t *end = t->probe_buffer + PROBE_WORDS;
    return burst_enter_probe(t, uc, end - t->watch.probe_words, end);
}

int watch_fault(struct thread *t, uint64_t address, int write, ucontext_t *uc)
{
    static int were_many;
    int wanted = 0, was_protected;
    if (!session || !session->watch)
        return 0;
    were_many |= watch_several_threads();
    uint64_t now = cpu_ns(), page = address & ~(uint64_t)(WIRE_PAGE - 1),
             work_began = t ? count_work_begins(t) : 0;
    uint64_t before = __atomic_load_n(&protection_count, __ATOMIC_ACQUIRE);
    uint64_t pc = uc ? arch_source_pc(arch_pc(uc)) : 0;
    was_protected = touch(t, address, region_is_agent(pc) ? 0 : pc, now, &wanted);
    if (was_protected == 0)
        return were_many && access_now_works(t, uc, address, write, before);
    if (was_protected < 0)
        return 0;
    count_add(&proc->count.watch_faults, 1);
    /* The page is protected again when this ends. */
    if (!uc || !t || t->ending || t->state != THREAD_NATIVE) {
        if (work_began) {
            count_work_ends(t, work_began);
            t->clock.agent_ns += watching()->fault_ns;
        }
        return 1;
    }
    if (wanted) {
        /* Not in interposed functions: their code must not be translated, and will access the page again. */
        if (!region_is_agent(arch_pc(uc)) && begin_probe(t, page, now, uc))
            return 1;
        watch_lock();
        settle_range(page, page + WIRE_PAGE, WIRE_WATCH_CENSORED);
        watch_unlock();
    }
    if (!watch_several_threads() && nprotected == 0)
        divert_disable(t);
    t->watch.fault_end_ns = cpu_ns();
    watch_charge(t, t->watch.fault_end_ns - now + watching()->fault_ns);
    return 1;
}

/* Counts a probe burst's references, and settles the watched lines that it touched: only those of
 * unprotected pages can be among them. */
static void settle_touched(const uint64_t *words, const uint64_t *end, uint32_t last_insns, uint64_t ago_ns)
{
    uint64_t lines[WIRE_MAX_WATCHES];
    unsigned n = 0;
    watch_lock();
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        const struct wire_watch *w = &watching()->watch[i];
        const struct page *p = is_pending(w) ? find_page(w->line) : NULL;
        if (p && !p->is_protected)
            lines[n++] = w->line;
    }
    watch_unlock();
    struct touched touched = records_touched(words, end, last_insns, lines, n);
    if (touched.found) {
        watch_lock();
        for (unsigned i = 0; i < n; i++)
            if (touched.found >> i & 1)
                hit_range(lines[i], lines[i] + 1, ago_ns, watch_translated_refs() + touched.before,
                          touched.pc);
        watch_unlock();
    }
    count_add(&proc->count.watch_refs, touched.refs);
}

void watch_probe_ended(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns)
{
    count_add(&proc->count.watch_probes, 1);
    exclude_others_time(t);
    settle_touched(t->burst.buffer_start, end_of_words, last_insns, since_fault(t->watch.probe_cpu_ns));
    watch_reprotect(t, t->generated.app_mask);
    exclude_others_time(t);
    t->watch.probe_ended_ns = t->watch.fault_end_ns = cpu_ns();
    /* Of the two faults by which it was entered and left: the entry of the first and the return of the
     * second. */
    watch_charge(t, t->watch.probe_ended_ns - t->watch.probe_cpu_ns +
                        probe_return_ns(__atomic_load_n(&returns.extra_ns, __ATOMIC_RELAXED)));
}
