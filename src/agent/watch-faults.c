/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch-faults.c - touches of closed pages. One of the watched line is what was waited for; one of a
 * neighbour opens the page for a short burst, whose records are looked through for the line.
 */
#include <sys/mman.h>
#include "agent/sys.h"
#include "agent/watch.h"

static uint64_t *mini_buffer; /* MINI_WORDS and a page that cannot be written */
static uint64_t mini_ended_ns, mini_page;
static unsigned mini_words = MINI_LEAST_WORDS;

static int make_mini_buffer(void)
{
    if (!mini_buffer) {
        uint8_t *p = sys_map(NULL, MINI_WORDS * 8 + WIRE_PAGE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
        if (!p)
            return -1;
        sys3(SYS_mprotect, p + MINI_WORDS * 8, WIRE_PAGE, PROT_NONE);
        mini_buffer = (uint64_t *)(void *)p;
    }
    return 0;
}

/* A page touched again right after its last short burst gets a longer one: that costs less than another. */
static void choose_length(uint64_t page, uint64_t now)
{
    if (page == mini_page && now - mini_ended_ns < MINI_SOON_NS) {
        if (mini_words < MINI_WORDS)
            mini_words *= 2;
    } else {
        mini_words = MINI_LEAST_WORDS;
    }
    mini_page = page;
}

int watch_fault(struct thread *t, uint64_t address, ucontext_t *uc)
{
    struct page *p = npages && session ? find_page(address) : NULL;
    if (!p || !p->closed)
        return 0;
    uint64_t now = cpu_ns();
    count_add(&proc->count.watch_faults, 1);
    if (!open_page(p)) {
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_UNMAPPED);
        return 0;
    }
    settle_range(address, address + 1, WIRE_WATCH_HIT);
    if (!uc || !t || t->state != THREAD_NATIVE)
        return 1; /* it is closed again when this ends */
    if (nclosed == 0 && !page_is_wanted(p)) {
        calls_divert(t, 0);
    } else if (page_is_wanted(p)) {
        choose_length(p->address, now);
        t->mini_cpu_ns = now;
        if (!make_mini_buffer() &&
            burst_enter_mini(t, uc, mini_buffer + (MINI_WORDS - mini_words), mini_buffer + MINI_WORDS))
            return 1;
        settle_range(p->address, p->address + WIRE_PAGE, WIRE_WATCH_LOST);
    }
    watch_spend(cpu_ns() - now + watching()->fault_ns);
    return 1;
}

/* The watched lines of open pages are those that a short burst can have touched. */
static void settle_touched(const uint64_t *words, const uint64_t *end, uint32_t last_insns)
{
    struct wire_watch *in_reach[WIRE_MAX_WATCHES];
    uint64_t lines[WIRE_MAX_WATCHES];
    unsigned n = 0;
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        struct wire_watch *w = &watching()->watch[i];
        const struct page *p = is_wanted(w) ? find_page(w->line) : NULL;
        if (p && !p->closed) {
            in_reach[n] = w;
            lines[n++] = w->line;
        }
    }
    uint64_t found = n ? records_touched(words, end, last_insns, lines, n) : 0;
    for (unsigned i = 0; i < n; i++)
        if (found >> i & 1)
            hit(in_reach[i]);
}

void watch_mini_end(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns)
{
    count_add(&proc->count.watch_minis, 1);
    settle_touched(t->buffer_start, end_of_words, last_insns);
    watch_close(t, t->app_mask);
    mini_ended_ns = cpu_ns();
    /* Entering and leaving took a fault each. */
    watch_spend(mini_ended_ns - t->mini_cpu_ns + 2 * watching()->fault_ns);
}
