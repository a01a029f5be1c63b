/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.c - the pages of watched lines, which of them are protected, and the final state of the lines.
 */
#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include "agent/burst/burst.h"
#include "agent/code/code.h"
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"

struct page pages[WIRE_MAX_WATCHES];
unsigned npages, nprotected;
uint64_t protection_count;

static uint64_t page_of(uint64_t address)
{
    return address & ~(uint64_t)(WIRE_PAGE - 1);
}

/* --- lines --- */

/* When each line became pending, to add up how long that was; nothing for lines that are not pending yet. */
static struct {
    uint64_t id, app_cpu_ns;
    uint32_t tid; /* of the thread whose survivor it is */
} pending_since[WIRE_MAX_WATCHES];

static void settle_at(struct wire_watch *w, enum wire_watch_state state, uint64_t app_cpu_ns,
                      uint64_t translated_refs)
{
    uint32_t wanted = WIRE_WATCH_PENDING;
    unsigned i = (unsigned)(w - watching()->watch);
    if (state == WIRE_WATCH_CENSORED && pending_since[i].id != w->id)
        state = WIRE_WATCH_REFUSED;
    w->app_cpu_ns = app_cpu_ns;
    w->translated_refs = translated_refs;
    /* The collector may have settled it just now, answering another thread. */
    if (__atomic_compare_exchange_n(&w->state, &wanted, (uint32_t)state, 0, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED) &&
        pending_since[i].id == w->id && app_cpu_ns > pending_since[i].app_cpu_ns)
        count_add(&proc->count.watch_line_ns, app_cpu_ns - pending_since[i].app_cpu_ns);
}

void settle(struct wire_watch *w, enum wire_watch_state state)
{
    settle_at(w, state, watch_app_cpu_ns(), watch_translated_refs());
}

static int lies_in(const struct wire_watch *w, uint64_t low, uint64_t high)
{
    return is_pending(w) && w->line < high && w->line + session->line_bytes > low;
}

void settle_range(uint64_t low, uint64_t high, enum wire_watch_state state)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (lies_in(&watching()->watch[i], low, high))
            settle(&watching()->watch[i], state);
}

void hit_range(uint64_t low, uint64_t high, uint64_t ago_ns, uint64_t translated_refs, uint64_t pc)
{
    const struct thread *t = thread_self();
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (lies_in(&watching()->watch[i], low, high)) {
            watching()->watch[i].pc = pc;
            watching()->watch[i].tid = t ? t->tid : (uint32_t)sys0(SYS_gettid);
            watching()->watch[i].thread_ns = t ? watch_thread_ns(t) - ago_ns : 0;
            settle_at(&watching()->watch[i], WIRE_WATCH_HIT, watch_app_cpu_ns() - ago_ns, translated_refs);
            count_add(&proc->count.watch_hits, 1);
        }
}

void censor_all(void)
{
    settle_range(0, UINT64_MAX, WIRE_WATCH_CENSORED);
}

/* --- pages --- */

struct page *find_page(uint64_t address)
{
    for (unsigned i = 0; i < npages; i++)
        if (pages[i].address == page_of(address))
            return &pages[i];
    return NULL;
}

int page_is_pending(const struct page *p)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_pending(&watching()->watch[i]) && page_of(watching()->watch[i].line) == p->address)
            return 1;
    return 0;
}

static void note_unprotected(struct page *p)
{
    p->accessible_ns = 0;
    if (!watch_several_threads())
        return;
    p->accessible_ns = watch_app_cpu_ns();
    p->accessible_process_ns = sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    p->accessible_thread_ns = cpu_ns();
    p->accessible_tid = (uint32_t)sys0(SYS_gettid);
}

/* CPU time of other threads since then, in which they may have touched it. */
static uint64_t unseen_ns(const struct page *p)
{
    uint64_t own = watch_app_cpu_ns();
    if (p->accessible_tid != (uint32_t)sys0(SYS_gettid))
        return own > p->accessible_ns ? own - p->accessible_ns : 0;
    uint64_t all = sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - p->accessible_process_ns,
             own_part = cpu_ns() - p->accessible_thread_ns;
    return all > own_part ? all - own_part : 0;
}

int unprotect_page(struct page *p)
{
    if (!p->is_protected)
        return 1;
    p->is_protected = 0;
    nprotected--;
    note_unprotected(p);
    long result = sys3(SYS_mprotect, p->address, WIRE_PAGE, p->protection);
    if (result == -ENOMEM && spare_give_up((const void *)p->address))
        result = sys3(SYS_mprotect, p->address, WIRE_PAGE, p->protection);
    return !sys_failed(result);
}

void unprotect_pages(void)
{
    for (unsigned i = 0; i < npages; i++)
        unprotect_page(&pages[i]);
}

int unprotect_range(uint64_t address, uint64_t bytes)
{
    int unprotected = 0;
    for (unsigned i = 0; i < npages; i++)
        if (pages[i].is_protected && page_overlaps(&pages[i], address, bytes)) {
            unprotect_page(&pages[i]);
            unprotected = 1;
        }
    return unprotected;
}

/* Other threads may have touched the page unnoticed. After a short time that makes little difference; after
 * a longer one its lines are censored at the moment when it was unprotected. */
static void account_unseen(struct page *p)
{
    uint64_t unseen = unseen_ns(p);
    for (unsigned i = 0; i < WIRE_MAX_WATCHES && unseen; i++) {
        struct wire_watch *w = &watching()->watch[i];
        if (!lies_in(w, p->address, p->address + WIRE_PAGE))
            continue;
        if (unseen > UNSEEN_MOST_NS)
            settle_at(w, WIRE_WATCH_CENSORED, p->accessible_ns, watch_translated_refs());
        else
            count_add(&proc->count.watch_unseen_ns, unseen);
    }
    p->accessible_ns = 0;
}

static void protect_page(struct page *p)
{
    if (p->is_protected)
        return;
    if (own_overlaps(p->address, WIRE_PAGE)) {
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_REFUSED);
        return;
    }
    if (rseq_has_descriptor(p->address) || !spare_keep(nprotected + 1)) {
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_CENSORED);
        return;
    }
    if (p->accessible_ns) {
        account_unseen(p);
        if (!page_is_pending(p))
            return;
    }
    /* Before protecting, for a thread that faults and then compares. */
    __atomic_fetch_add(&protection_count, 1, __ATOMIC_RELEASE);
    p->is_protected = !sys_failed(sys3(SYS_mprotect, p->address, WIRE_PAGE, PROT_NONE));
    nprotected += (unsigned)p->is_protected;
    if (!p->is_protected)
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_CENSORED);
}

void protect_pages(void)
{
    if (npages == 0 || !threads_allow_protection())
        return;
    for (unsigned i = 0; i < npages; i++)
        if (page_is_pending(&pages[i]) && !page_in_use(&pages[i]))
            protect_page(&pages[i]);
}

void censor_range(uint64_t low, uint64_t high)
{
    unprotect_range(low, high - low);
    settle_range(low, high, WIRE_WATCH_CENSORED);
}

/* --- pages that must never be protected --- */

/* Places of signal frames of the target, on stacks that it allocated itself. The kernel reads a frame when
 * the handler returns, and kills if it cannot. The last few places are remembered permanently, since a jump
 * out of a handler is not noticed. */
static struct {
    uint64_t low, high;
} frames[FRAMES_KNOWN];
static unsigned nframes;

void watch_never_protect(uint64_t low, uint64_t high)
{
    if (!session || !session->watch)
        return;
    watch_lock();
    low = page_of(low); /* whole pages: a line next to the frame would protect its page, too */
    high = page_of(high + WIRE_PAGE - 1);
    censor_range(low, high);
    int known = 0;
    for (unsigned i = 0; i < FRAMES_KNOWN; i++)
        known |= low >= frames[i].low && high <= frames[i].high;
    if (!known) {
        frames[nframes].low = low;
        frames[nframes].high = high;
        nframes = (nframes + 1) % FRAMES_KNOWN;
    }
    watch_unlock();
}

/* The last changes of mappings, a ring. */
static struct {
    uint64_t low, high;
} changes[CHANGES_KNOWN];
static uint64_t nchanges, changes_asked;

/*
 * Pages there are forgotten, since the rights noted for them are no longer theirs. The collector may be about
 * to choose lines of them again, which another thread would then protect, and unprotect with the former
 * rights.
 */
void mapping_changed(uint64_t low, uint64_t high)
{
    for (unsigned i = 0; i < npages;) {
        if (!page_overlaps(&pages[i], low, high - low)) {
            i++;
            continue;
        }
        unprotect_page(&pages[i]);
        pages[i] = pages[--npages];
    }
    changes[nchanges % CHANGES_KNOWN].low = low;
    changes[nchanges++ % CHANGES_KNOWN].high = high;
}

void note_unnoticed_changes(void)
{
    mapping_changed(0, UINT64_MAX);
}

void mappings_note_question(void)
{
    changes_asked = nchanges;
}

/* Censors lines in what has changed since the question. */
static void censor_changed(void)
{
    if (nchanges - changes_asked > CHANGES_KNOWN) {
        unprotect_pages();
        censor_all();
    }
    for (uint64_t i = changes_asked; i < nchanges && nchanges - changes_asked <= CHANGES_KNOWN; i++)
        censor_range(changes[i % CHANGES_KNOWN].low, changes[i % CHANGES_KNOWN].high);
}

void watch_unmapped(uint64_t address, uint64_t bytes, int gone)
{
    if (!session || !session->watch)
        return;
    /* Mappings change by whole pages. */
    uint64_t end = end_of(address, bytes), last = end == UINT64_MAX ? end : page_of(end + WIRE_PAGE - 1);
    watch_lock();
    unprotect_range(address, bytes);
    settle_range(page_of(address), last, gone ? WIRE_WATCH_UNMAPPED : WIRE_WATCH_CENSORED);
    mapping_changed(page_of(address), last);
    watch_unlock();
}

/* --- after an answer --- */

static void start_lines(const struct thread *t, uint64_t app_cpu_ns)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        struct wire_watch *w = &watching()->watch[i];
        if (!is_pending(w) || pending_since[i].id == w->id)
            continue;
        pending_since[i].id = w->id;
        pending_since[i].app_cpu_ns = app_cpu_ns;
        pending_since[i].tid = t->tid;
        if (watch_several_threads()) {
            w->from_refs = watch_translated_refs();
            __atomic_store_n(&w->from_cpu_ns, app_cpu_ns, __ATOMIC_RELAXED);
        }
    }
}

void postpone_lines(uint32_t tid, uint64_t page, uint64_t ns)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        struct wire_watch *w = &watching()->watch[i];
        if (is_pending(w) && pending_since[i].id == w->id && w->from_cpu_ns &&
            (pending_since[i].tid == tid || page_of(w->line) == page))
            __atomic_store_n(&w->from_cpu_ns, w->from_cpu_ns + ns, __ATOMIC_RELAXED);
    }
}

void rebuild_pages(const struct thread *t, uint64_t app_cpu_ns)
{
    for (unsigned i = 0; i < FRAMES_KNOWN; i++)
        censor_range(frames[i].low, frames[i].high);
    rseq_note_descriptor(t->watch.fs_base);
    censor_changed();
    start_lines(t, app_cpu_ns);
    for (unsigned i = 0; i < npages;) {
        if (page_is_pending(&pages[i])) {
            i++;
            continue;
        }
        unprotect_page(&pages[i]);
        pages[i] = pages[--npages];
    }
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        const struct wire_watch *w = &watching()->watch[i];
        if (is_pending(w) && !find_page(w->line))
            pages[npages++] = (struct page){.address = page_of(w->line), .protection = (int)w->protection};
    }
}
