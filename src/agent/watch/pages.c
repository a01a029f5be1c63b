/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.c - the pages of watched lines: which there are, which are closed; and the lines' fate.
 */
#include <sys/mman.h>
#include <time.h>
#include "agent/burst/burst.h"
#include "agent/code/code.h"
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"

struct page pages[WIRE_MAX_WATCHES];
unsigned npages, nclosed;
uint64_t closings;

static uint64_t page_of(uint64_t address)
{
    return address & ~(uint64_t)(WIRE_PAGE - 1);
}

/* --- lines --- */

/* Since when each is waited for, for the count of how long that was; of lines that are not yet, nothing. */
static struct {
    uint64_t id, own_ns;
    uint32_t tid; /* of the thread that left it behind */
} since[WIRE_MAX_WATCHES];

static void settle_at(struct wire_watch *w, enum wire_watch_state state, uint64_t own_ns,
                      uint64_t inside_refs)
{
    uint32_t wanted = WIRE_WATCH_WANTED;
    unsigned i = (unsigned)(w - watching()->watch);
    if (state == WIRE_WATCH_LOST && since[i].id != w->id)
        state = WIRE_WATCH_REFUSED;
    w->own_ns = own_ns;
    w->inside_refs = inside_refs;
    /* The collector, answering another thread, may have settled it just now. */
    if (__atomic_compare_exchange_n(&w->state, &wanted, (uint32_t)state, 0, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED) &&
        since[i].id == w->id && own_ns > since[i].own_ns)
        count_add(&proc->count.watch_line_ns, own_ns - since[i].own_ns);
}

void settle(struct wire_watch *w, enum wire_watch_state state)
{
    settle_at(w, state, watch_own_ns(), watch_inside_refs());
}

static int lies_in(const struct wire_watch *w, uint64_t low, uint64_t high)
{
    return is_wanted(w) && w->line < high && w->line + session->line_bytes > low;
}

void settle_range(uint64_t low, uint64_t high, enum wire_watch_state state)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (lies_in(&watching()->watch[i], low, high))
            settle(&watching()->watch[i], state);
}

void hit_range(uint64_t low, uint64_t high, uint64_t ago_ns, uint64_t inside_refs)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (lies_in(&watching()->watch[i], low, high)) {
            settle_at(&watching()->watch[i], WIRE_WATCH_HIT, watch_own_ns() - ago_ns, inside_refs);
            count_add(&proc->count.watch_hits, 1);
        }
}

void lose_all(void)
{
    settle_range(0, UINT64_MAX, WIRE_WATCH_LOST);
}

/* --- pages --- */

struct page *find_page(uint64_t address)
{
    for (unsigned i = 0; i < npages; i++)
        if (pages[i].address == page_of(address))
            return &pages[i];
    return NULL;
}

int page_is_wanted(const struct page *p)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_wanted(&watching()->watch[i]) && page_of(watching()->watch[i].line) == p->address)
            return 1;
    return 0;
}

static void begins_to_be_open(struct page *p)
{
    p->opened_ns = 0;
    if (!watch_many())
        return;
    p->opened_ns = watch_own_ns();
    p->opened_process_ns = sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    p->opened_thread_ns = cpu_ns();
    p->opened_by = (uint32_t)sys0(SYS_gettid);
}

/* CPU time of others since then, in which they may have touched it. */
static uint64_t unseen_ns(const struct page *p)
{
    uint64_t own = watch_own_ns();
    if (p->opened_by != (uint32_t)sys0(SYS_gettid))
        return own > p->opened_ns ? own - p->opened_ns : 0;
    uint64_t all = sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - p->opened_process_ns,
             own_part = cpu_ns() - p->opened_thread_ns;
    return all > own_part ? all - own_part : 0;
}

int open_page(struct page *p)
{
    if (!p->closed)
        return 1;
    p->closed = 0;
    nclosed--;
    begins_to_be_open(p);
    return !sys_failed(sys3(SYS_mprotect, p->address, WIRE_PAGE, p->protection));
}

void open_pages(void)
{
    for (unsigned i = 0; i < npages; i++)
        open_page(&pages[i]);
}

int open_range(uint64_t address, uint64_t bytes)
{
    int opened = 0;
    for (unsigned i = 0; i < npages; i++)
        if (pages[i].closed && page_overlaps(&pages[i], address, bytes)) {
            open_page(&pages[i]);
            opened = 1;
        }
    return opened;
}

/* Other threads may have touched it while it was open. A short while makes little difference; after a longer
 * one it is as if its lines had been given up when it was opened. */
static void ends_being_open(struct page *p)
{
    uint64_t unseen = unseen_ns(p);
    for (unsigned i = 0; i < WIRE_MAX_WATCHES && unseen; i++) {
        struct wire_watch *w = &watching()->watch[i];
        if (!lies_in(w, p->address, p->address + WIRE_PAGE))
            continue;
        if (unseen > UNSEEN_MOST_NS)
            settle_at(w, WIRE_WATCH_LOST, p->opened_ns, watch_inside_refs());
        else
            count_add(&proc->count.watch_unseen_ns, unseen);
    }
    p->opened_ns = 0;
}

static void close_page(struct page *p)
{
    if (p->closed)
        return;
    if (own_overlaps(p->address, WIRE_PAGE)) {
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_REFUSED);
        return;
    }
    if (rseq_has_descriptor(p->address)) {
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_LOST);
        return;
    }
    if (p->opened_ns) {
        ends_being_open(p);
        if (!page_is_wanted(p))
            return;
    }
    __atomic_fetch_add(&closings, 1, __ATOMIC_RELEASE); /* before, for who finds it closed and looks */
    p->closed = !sys_failed(sys3(SYS_mprotect, p->address, WIRE_PAGE, PROT_NONE));
    nclosed += (unsigned)p->closed;
    if (!p->closed)
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_LOST);
}

void close_pages(void)
{
    if (npages == 0 || !threads_let_close())
        return;
    for (unsigned i = 0; i < npages; i++)
        if (page_is_wanted(&pages[i]) && !page_in_use(&pages[i]))
            close_page(&pages[i]);
}

void lose_range(uint64_t low, uint64_t high)
{
    open_range(low, high - low);
    settle_range(low, high, WIRE_WATCH_LOST);
}

/* --- what must not be closed --- */

/*
 * Where frames of signals lie that the target handles, on stacks that it made itself. The kernel reads a
 * frame when the handler returns, and kills where it cannot. The last few are remembered for good, as nobody
 * tells when a handler has been jumped out of.
 */
static struct {
    uint64_t low, high;
} frames[FRAMES_KNOWN];
static unsigned nframes;

void watch_avoid(uint64_t low, uint64_t high)
{
    if (!session || !session->watch)
        return;
    watch_lock();
    low = page_of(low); /* whole pages: a line above the frame closes its page, too */
    high = page_of(high + WIRE_PAGE - 1);
    lose_range(low, high);
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

/* The last mappings that changed, in a ring. */
static struct {
    uint64_t low, high;
} changes[CHANGES_KNOWN];
static uint64_t nchanges, changes_asked;

void mapping_changes(uint64_t low, uint64_t high)
{
    changes[nchanges % CHANGES_KNOWN].low = low;
    changes[nchanges++ % CHANGES_KNOWN].high = high;
}

void mappings_are_asked_for(void)
{
    changes_asked = nchanges;
}

void lose_changed(void)
{
    if (nchanges - changes_asked > CHANGES_KNOWN) {
        open_pages();
        lose_all();
    }
    for (uint64_t i = changes_asked; i < nchanges && nchanges - changes_asked <= CHANGES_KNOWN; i++)
        lose_range(changes[i % CHANGES_KNOWN].low, changes[i % CHANGES_KNOWN].high);
}

void watch_unmapped(uint64_t address, uint64_t bytes, int gone)
{
    if (!session || !session->watch)
        return;
    /* Mappings change by whole pages. */
    uint64_t end = end_of(address, bytes), last = end == UINT64_MAX ? end : page_of(end + WIRE_PAGE - 1);
    watch_lock();
    open_range(address, bytes);
    settle_range(page_of(address), last, gone ? WIRE_WATCH_UNMAPPED : WIRE_WATCH_LOST);
    mapping_changes(page_of(address), last);
    watch_unlock();
}

/* --- after an answer --- */

static void begin_lines(const struct thread *t, uint64_t own_ns)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        struct wire_watch *w = &watching()->watch[i];
        if (!is_wanted(w) || since[i].id == w->id)
            continue;
        since[i].id = w->id;
        since[i].own_ns = own_ns;
        since[i].tid = t->tid;
        if (watch_many()) {
            w->since_refs = watch_inside_refs();
            __atomic_store_n(&w->since_ns, own_ns, __ATOMIC_RELAXED);
        }
    }
}

void lines_wait(uint32_t tid, uint64_t page, uint64_t ns)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        struct wire_watch *w = &watching()->watch[i];
        if (is_wanted(w) && since[i].id == w->id && w->since_ns &&
            (since[i].tid == tid || page_of(w->line) == page))
            __atomic_store_n(&w->since_ns, w->since_ns + ns, __ATOMIC_RELAXED);
    }
}

void list_pages(const struct thread *t, uint64_t own_ns)
{
    for (unsigned i = 0; i < FRAMES_KNOWN; i++)
        lose_range(frames[i].low, frames[i].high);
    rseq_note_descriptor((uint64_t)__builtin_thread_pointer());
    lose_changed();
    begin_lines(t, own_ns);
    for (unsigned i = 0; i < npages;) {
        if (page_is_wanted(&pages[i])) {
            i++;
            continue;
        }
        open_page(&pages[i]);
        pages[i] = pages[--npages];
    }
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        const struct wire_watch *w = &watching()->watch[i];
        if (is_wanted(w) && !find_page(w->line))
            pages[npages++] = (struct page){.address = page_of(w->line), .protection = (int)w->protection};
    }
}
