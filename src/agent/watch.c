/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - lines whose next touch is waited for, by taking all access to their pages away.
 *
 * A burst leaves lines behind; the collector chooses a few of them (wire.h, struct wire_watching). Their
 * pages are closed while the program runs natively. A fault on a closed page is the touch that was waited
 * for, or one of a neighbour: then the page is opened, a short burst into a buffer of our own is recorded,
 * looked through for the watched lines right here, and the page closed again. During the bursts for the
 * collector all pages are open, since it sees every touch in them anyway.
 *
 * System calls would fail with EFAULT on a closed page: calls.c has them diverted while any page is closed.
 *
 * Only in processes with one thread: another could be asleep in a system call into memory that we close.
 *
 * All of it runs in signal handlers, or, between watch_quiet and watch_quiet_end, in functions that the
 * target called: a trigger in the midst of it would find tables and pages at odds.
 */
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include "agent/agent.h"
#include "agent/sys.h"

/* A page with watched lines, or that had some. */
struct page {
    uint64_t address;
    int protection;
    int closed;
};

static struct page pages[WIRE_MAX_WATCHES];
static unsigned npages, nclosed;
static uint64_t spent_ns;    /* since the last question */
static uint64_t overhead_ns; /* CPU time that was not the program's own, in all */
static struct {              /* when the burst in progress was begun: */
    uint64_t cpu_ns, overhead_ns, counted_ns;
} burst;
static uint64_t *mini_buffer; /* MINI_WORDS and a page that cannot be written */
static uint64_t mini_ended_ns, mini_page;
static unsigned mini_words = MINI_LEAST_WORDS;
static uint64_t random_state;

static struct wire_watching *watching(void)
{
    return &proc->watching;
}

static uint64_t cpu_ns(void)
{
    return sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t watch_own_ns(void)
{
    return cpu_ns() - overhead_ns;
}

void watch_burst_begins(void)
{
    burst.cpu_ns = cpu_ns();
    burst.overhead_ns = overhead_ns;
    burst.counted_ns = proc->count.count_cpu_ns;
}

/* Own CPU time since watch_burst_begins: of references counted before the burst. Those of the burst are few.
 */
static uint64_t counted_ns(void)
{
    return (proc->count.count_cpu_ns - burst.counted_ns) * COUNT_NATIVE_PERCENT / 100;
}

uint64_t watch_burst_own_ns(void)
{
    return burst.cpu_ns - burst.overhead_ns + counted_ns();
}

static void burst_is_over(void)
{
    overhead_ns = burst.overhead_ns + (cpu_ns() - burst.cpu_ns) - counted_ns() + 2 * watching()->fault_ns;
}

int watch_used(void)
{
    return session && session->watch && !agent_off && !watching()->off;
}

/* --- the table --- */

static int is_wanted(const struct wire_watch *w)
{
    return __atomic_load_n(&w->state, __ATOMIC_RELAXED) == WIRE_WATCH_WANTED;
}

static void settle(struct wire_watch *w, enum wire_watch_state state)
{
    w->own_ns = watch_own_ns();
    __atomic_store_n(&w->state, (uint32_t)state, __ATOMIC_RELEASE);
}

static uint64_t page_of(uint64_t address)
{
    return address & ~(uint64_t)(WIRE_PAGE - 1);
}

static struct page *find_page(uint64_t address)
{
    for (unsigned i = 0; i < npages; i++)
        if (pages[i].address == page_of(address))
            return &pages[i];
    return NULL;
}

static int page_is_wanted(const struct page *p)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_wanted(&watching()->watch[i]) && page_of(watching()->watch[i].line) == p->address)
            return 1;
    return 0;
}

static void hit(struct wire_watch *w)
{
    settle(w, WIRE_WATCH_HIT);
    count_add(&proc->count.watch_hits, 1);
}

/* Every watched line in [low, high) has met its fate. */
static void settle_range(uint64_t low, uint64_t high, enum wire_watch_state state)
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

/* --- pages --- */

/* 0: it is not there any more, or not as it was. */
static int open_page(struct page *p)
{
    if (!p->closed)
        return 1;
    p->closed = 0;
    nclosed--;
    return !sys_failed(sys3(SYS_mprotect, p->address, WIRE_PAGE, p->protection));
}

static void close_page(struct page *p)
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

/* Pages of the wanted lines, after the table has changed. None is closed. */
static void list_pages(void)
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

int watch_closed(void)
{
    return nclosed != 0;
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

void watch_open(struct thread *t)
{
    for (unsigned i = 0; i < npages; i++)
        open_page(&pages[i]);
    if (t)
        calls_divert(t, 0);
}

void watch_pause(struct thread *t)
{
    if (!session || !session->watch)
        return;
    watch_open(t);
    npages = 0;
}

static void lose_all(void)
{
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_wanted(&watching()->watch[i]))
            settle(&watching()->watch[i], WIRE_WATCH_LOST);
}

void watch_drop(struct thread *t)
{
    if (!session || !session->watch)
        return;
    watch_open(t);
    lose_all();
    npages = 0;
}

void watch_off(struct thread *t, enum wire_unwatched why)
{
    if (!session || !session->watch)
        return;
    watch_drop(t);
    watching()->off = (uint32_t)why;
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

/*
 * A closed page does not count as data (RLIMIT_DATA): what the target could take in its place, the page would
 * lack when it is opened again.
 */
static int data_is_limited(void)
{
    struct rlimit limit;
    return sys_failed(sys4(SYS_prlimit64, 0, RLIMIT_DATA, 0, &limit)) || limit.rlim_cur != RLIM_INFINITY;
}

/* Whether a fault on a closed page would come to us, and no other thread could stumble on one. */
static int may_close(const struct thread *t, uint64_t mask)
{
    return t && !t->ending && watch_used() && !session->stop && threads_followed() == 1 &&
           !(mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS)));
}

int watch_close(struct thread *t, uint64_t mask)
{
    if (npages == 0)
        return 1;
    if (t->watch_hold) { /* watch_release does it */
        watch_open(t);
        return 1;
    }
    if (!may_close(t, mask) || calls_divert(t, 1)) {
        watch_drop(t);
        return 0;
    }
    for (unsigned i = 0; i < npages; i++)
        if (page_is_wanted(&pages[i]))
            close_page(&pages[i]);
    if (nclosed == 0)
        calls_divert(t, 0);
    return 1;
}

/* The kernel gets no pointers to the stack, whose pages may be closed if the target made it. */
void watch_quiet(struct thread *t)
{
    static const uint64_t all = ~FAULT_SIGNALS | SIGNAL_BIT(SIGTRAP);
    if (t)
        sys4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &t->quiet_mask, 8);
}

void watch_quiet_end(struct thread *t)
{
    if (t)
        sys4(SYS_rt_sigprocmask, SIG_SETMASK, &t->quiet_mask, 0, 8);
}

void watch_hold(struct thread *t)
{
    watch_quiet(t);
    t->watch_hold++;
    if (nclosed)
        watch_open(t);
    watch_quiet_end(t);
}

void watch_release(struct thread *t)
{
    watch_quiet(t);
    t->watch_hold--;
    if (!t->watch_hold && npages != 0 && t->state == THREAD_NATIVE) /* in a burst its end does it */
        watch_close(t, t->quiet_mask);
    watch_quiet_end(t);
}

/* --- questions --- */

uint32_t watch_asks(struct thread *t, uint64_t number)
{
    uint32_t asks = (uint32_t)(number << WIRE_TURN_BITS) | WIRE_TURN_ASKED;
    if (!session->watch)
        return 0;
    if (t->watch_hold || !may_close(t, t->app_mask) || !signals_ours() || data_is_limited()) {
        count_add(&proc->count.watch_unasked, 1);
        watch_drop(t);
        return 0;
    }
    __atomic_store_n(&watching()->turn, asks, __ATOMIC_RELEASE);
    return asks;
}

/* Nonzero if there was an answer. */
static int wait_for_answer(uint32_t asks)
{
    struct wire_watching *w = watching();
    uint64_t until = sys_clock_ns(CLOCK_MONOTONIC) + ANSWER_WAIT_NS;
    for (;;) {
        uint32_t turn = __atomic_load_n(&w->turn, __ATOMIC_ACQUIRE), asked = asks;
        if (turn == WIRE_TURN_AGENT)
            return 1;
        uint64_t now = sys_clock_ns(CLOCK_MONOTONIC);
        if (now >= until) {
            if (__atomic_compare_exchange_n(&w->turn, &asked, WIRE_TURN_AGENT, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
                return 0;
            if (collector_gone())
                return 0;
            if (now >= until + ANSWER_GIVE_UP_NS) { /* stopped in the midst of it: the table stays its own */
                w->off = WIRE_UNWATCHED_COLLECTOR;
                return 0;
            }
        }
        struct timespec wait = {0, 1000000};
        sys4(SYS_futex, &w->turn, FUTEX_WAIT, turn, &wait);
    }
}

void watch_ask(struct thread *t, uint32_t asks)
{
    if (!asks)
        return;
    uint64_t began = cpu_ns();
    spent_ns = 0;
    if (!wait_for_answer(asks)) {
        count_add(&proc->count.watch_unasked, 1);
        watch_drop(t); /* mappings may have changed in the burst: it takes the collector to tell */
    } else {
        list_pages();
        watch_close(t, t->app_mask);
        watch_spend(cpu_ns() - began);
    }
    burst_is_over();
}

/* --- what it costs --- */

/* Too much was spent since the last question: about half of the lines are given up, whichever they are. */
static void thin_out(void)
{
    if (!random_state)
        random_state = session->seed ^ process_id;
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_wanted(&watching()->watch[i]) && random_next(&random_state) & 1)
            settle(&watching()->watch[i], WIRE_WATCH_LOST);
    for (unsigned i = 0; i < npages; i++)
        if (!page_is_wanted(&pages[i]))
            open_page(&pages[i]);
    spent_ns = __atomic_load_n(&watching()->allowance_ns, __ATOMIC_RELAXED) / 2;
}

void watch_spend(uint64_t ns)
{
    count_add(&proc->count.watch_cpu_ns, ns);
    spent_ns += ns;
    overhead_ns += ns;
    if (spent_ns > __atomic_load_n(&watching()->allowance_ns, __ATOMIC_RELAXED))
        thin_out();
}

/* --- faults and short bursts --- */

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

void watch_forked(void)
{
    npages = nclosed = 0; /* the parent opened them before it forked */
    overhead_ns = 0;      /* of CPU time that starts anew */
}
