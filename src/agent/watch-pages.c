/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch-pages.c - the pages of watched lines: which there are, which are closed; and the lines' fate.
 */
#include <sys/mman.h>
#include "agent/sys.h"
#include "agent/watch.h"

struct page pages[WIRE_MAX_WATCHES];
unsigned npages, nclosed;

/* --- lines --- */

void settle(struct wire_watch *w, enum wire_watch_state state)
{
    w->own_ns = watch_own_ns();
    __atomic_store_n(&w->state, (uint32_t)state, __ATOMIC_RELEASE);
}

static uint64_t page_of(uint64_t address)
{
    return address & ~(uint64_t)(WIRE_PAGE - 1);
}

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

void hit(struct wire_watch *w)
{
    settle(w, WIRE_WATCH_HIT);
    count_add(&proc->count.watch_hits, 1);
}

void settle_range(uint64_t low, uint64_t high, enum wire_watch_state state)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        struct wire_watch *w = &watching()->watch[i];
        if (is_wanted(w) && w->line < high && w->line + session->line_bytes > low) {
            if (state == WIRE_WATCH_HIT)
                hit(w);
            else
                settle(w, state);
        }
    }
}

void lose_all(void)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_wanted(&watching()->watch[i]))
            settle(&watching()->watch[i], WIRE_WATCH_LOST);
}

/* --- pages --- */

int open_page(struct page *p)
{
    if (!p->closed)
        return 1;
    p->closed = 0;
    nclosed--;
    return !sys_failed(sys3(SYS_mprotect, p->address, WIRE_PAGE, p->protection));
}

void close_page(struct page *p)
{
    if (p->closed)
        return;
    p->closed = !sys_failed(sys3(SYS_mprotect, p->address, WIRE_PAGE, PROT_NONE));
    nclosed += (unsigned)p->closed;
    if (!p->closed)
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_LOST);
}

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
    low = page_of(low); /* whole pages: a line above the frame closes its page, too */
    high = page_of(high + WIRE_PAGE - 1);
    watch_unmapped(low, high - low, 0);
    for (unsigned i = 0; i < FRAMES_KNOWN; i++)
        if (low >= frames[i].low && high <= frames[i].high)
            return;
    frames[nframes].low = low;
    frames[nframes].high = high;
    nframes = (nframes + 1) % FRAMES_KNOWN;
}

void list_pages(void)
{
    npages = 0;
    for (unsigned i = 0; i < FRAMES_KNOWN; i++)
        settle_range(frames[i].low, frames[i].high, WIRE_WATCH_LOST);
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        const struct wire_watch *w = &watching()->watch[i];
        if (is_wanted(w) && !find_page(w->line))
            pages[npages++] = (struct page){page_of(w->line), (int)w->protection, 0};
    }
}

/* Lengths are the target's: a call's argument of 32 bits may have anything in its upper half. */
static uint64_t end_of(uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    return end < address ? UINT64_MAX : end;
}

static int overlaps(const struct page *p, uint64_t address, uint64_t end)
{
    return address < p->address + WIRE_PAGE && end > p->address;
}

int watch_overlaps(uint64_t address, uint64_t bytes)
{
    for (unsigned i = 0; i < npages; i++)
        if (pages[i].closed && overlaps(&pages[i], address, end_of(address, bytes)))
            return 1;
    return 0;
}

void watch_open_range(uint64_t address, uint64_t bytes)
{
    for (unsigned i = 0; i < npages; i++)
        if (overlaps(&pages[i], address, end_of(address, bytes)))
            open_page(&pages[i]);
}

void open_pages(void)
{
    for (unsigned i = 0; i < npages; i++)
        open_page(&pages[i]);
}

void watch_unmapped(uint64_t address, uint64_t bytes, int gone)
{
    if (!session || !session->watch)
        return;
    watch_open_range(address, bytes);
    /* Mappings change by whole pages. */
    uint64_t end = end_of(address, bytes), last = end == UINT64_MAX ? end : page_of(end + WIRE_PAGE - 1);
    settle_range(page_of(address), last, gone ? WIRE_WATCH_UNMAPPED : WIRE_WATCH_LOST);
}
