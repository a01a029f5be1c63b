/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's call tracker (agent/watch/call-tracker.c): which thread may be inside which system call, and
 * which pages may therefore be protected. The pages are real, and the kernel is the judge: a call that finds
 * its memory protected fails with EFAULT. The threads are structures that this one thread plays.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* The agent is no library that could be linked. */
#include "agent/watch/call-notes.c"
#include "agent/watch/pages.c"
#include "agent/watch/call-tracker.c"
#include "base/random.h"

#define THREADS 3u
#define PAGES 8u
#define ALL_PAGES ((1u << PAGES) - 1)

/* --- what the tracker uses of the rest of the agent --- */

static struct wire_session test_session;
static struct wire_proc test_proc;
struct wire_session *session = &test_session;
struct wire_proc *proc = &test_proc;
int agent_off;
uint32_t process_id;

uint64_t arch_thread_pointer(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

static struct thread thread[THREADS];
static uint8_t *memory;
static int goes_through[THREADS]; /* the thread is in a call that returns without a fault */
static int no_diversion;          /* by the kernel */
static unsigned nforgotten;
static uint64_t process_cpu_ns;

uint64_t sys_clock_ns(int clock_id)
{
    (void)clock_id;
    return process_cpu_ns;
}
uint64_t cpu_ns(void)
{
    return 0;
}
uint64_t watch_thread_ns(const struct thread *t)
{
    (void)t;
    return process_cpu_ns;
}

struct thread *thread_self(void)
{
    return NULL;
}

uint64_t watch_app_cpu_ns(void)
{
    return 1;
}
uint64_t watch_translated_refs(void)
{
    return 0;
}
int agent_always_translated(void)
{
    return 0;
}
void sys_wait_moment(unsigned n)
{
    (void)n;
}
int spare_keep(unsigned n)
{
    (void)n;
    return 1;
}
int spare_give_up(const void *page)
{
    (void)page;
    return 0;
}
int own_overlaps(uint64_t address, uint64_t bytes)
{
    (void)address, (void)bytes;
    return 0;
}
void rseq_note_descriptor(uint64_t fs_base)
{
    (void)fs_base;
}
int rseq_has_descriptor(uint64_t address)
{
    (void)address;
    return 0;
}
void signals_intercept_direct(void)
{
}
int divert_enable(struct thread *t)
{
    t->divert.is_on = !no_diversion;
    return no_diversion ? -1 : 0;
}
void divert_disable(struct thread *t)
{
    t->divert.is_on = 0;
}
int arch_call_in_progress(const struct thread *t)
{
    return goes_through[t - thread];
}
void thread_forget(struct thread *t)
{
    (void)t;
    nforgotten++;
}

/* --- the set-up --- */

static uint64_t address_of(unsigned page)
{
    return (uint64_t)(memory + page * WIRE_PAGE);
}

/* The kernel reads a path there: it is empty. */
static int is_accessible(unsigned page)
{
    errno = 0;
    assert_int_equal(access((const char *)memory + page * WIRE_PAGE, F_OK), -1);
    assert_true(errno == ENOENT || errno == EFAULT);
    return errno == ENOENT;
}

static unsigned accessible_pages(void)
{
    unsigned found = 0;
    for (unsigned i = 0; i < PAGES; i++)
        found |= (unsigned)is_accessible(i) << i;
    return found;
}

/* A line of each page is watched, by an answer to the first thread. */
static void watch_all(void)
{
    static uint64_t last_id;
    for (unsigned i = 0; i < PAGES; i++) {
        struct wire_watch *w = &test_proc.watching.watch[i];
        if (is_pending(w))
            continue;
        *w = (struct wire_watch){
            .line = address_of(i) + 64, .protection = PROT_READ | PROT_WRITE, .id = ++last_id};
        __atomic_store_n(&w->state, WIRE_WATCH_PENDING, __ATOMIC_RELEASE);
    }
    watch_lock();
    mappings_note_question();
    rebuild_pages(&thread[0], 0);
    protect_pages();
    watch_unlock();
}

static void begin_tracking(unsigned by)
{
    watch_lock();
    tracker_start(&thread[by]);
    watch_unlock();
}

/* All threads have their calls diverted, and are outside of any. */
static int setup(void **state)
{
    (void)state;
    if (!memory) {
        memory = mmap(NULL, PAGES * WIRE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(memory != MAP_FAILED);
        process_id = (uint32_t)getpid();
    }
    unprotect_pages();
    tracker_forked();
    npages = nprotected = 0;
    no_diversion = 0;
    nforgotten = 0;
    process_cpu_ns = 0;
    memset(goes_through, 0, sizeof goes_through);
    memset(&test_proc, 0, sizeof test_proc);
    test_session.watch = WIRE_WATCH_BY_PAGES;
    test_session.line_bytes = 64;
    for (unsigned i = 0; i < THREADS; i++) {
        memset(&thread[i], 0, offsetof(struct thread, tables));
        thread[i].tid = 1000 + i;
        thread[i].signals.app_altstack.ss_flags = SS_DISABLE;
        thread[i].watch.next = threads;
        threads = &thread[i];
        nthreads++;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        begin_tracking(i);
        watch_mark_quiescent(&thread[i], 0);
    }
    return 0;
}

static struct memory part_of(unsigned page, uint64_t offset, uint64_t bytes)
{
    return (struct memory){.n = 1, .part = {{address_of(page) + offset, bytes}}};
}

/* Another thread would protect all pages. */
static void protect(void)
{
    watch_lock();
    protect_pages();
    watch_unlock();
}

/* --- calls --- */

static void outside_of_calls_all_is_protected(void **state)
{
    (void)state;
    assert_int_equal(accessible_pages(), ALL_PAGES);
    watch_all();
    assert_int_equal(accessible_pages(), 0);
}

static void memory_of_a_call_is_accessible(void **state)
{
    (void)state;
    static const enum watch_call kinds[] = {CALL_IN_HANDLER, CALL_OPEN_ENDED};
    for (unsigned i = 0; i < 2; i++) {
        const struct memory two = part_of(2, WIRE_PAGE - 1, 2);
        watch_all();
        assert_true(watch_call_begins(&thread[1], kinds[i], &two));
        assert_int_equal(accessible_pages(), 1u << 2 | 1u << 3);
        assert_false(watch_call_begins(&thread[1], kinds[i], &two)); /* nothing was left to unprotect */
        protect();
        assert_int_equal(accessible_pages(), 1u << 2 | 1u << 3);
        watch_call_ends(&thread[1]);
        protect();
        assert_int_equal(accessible_pages(), 0);
    }
}

static void call_through_ends_by_itself(void **state)
{
    (void)state;
    const struct memory m = part_of(5, 0, 10);
    watch_all();
    goes_through[1] = 1;
    watch_call_begins(&thread[1], CALL_THROUGH, &m);
    protect();
    assert_int_equal(accessible_pages(), 1u << 5);
    goes_through[1] = 0;
    protect();
    assert_int_equal(accessible_pages(), 0);
}

static void open_ended_call_lasts_until_the_thread_is_seen(void **state)
{
    (void)state;
    const struct memory m = part_of(5, 0, 10);
    watch_all();
    watch_call_begins(&thread[1], CALL_OPEN_ENDED, &m);
    assert_true(watch_calls_in_progress(&thread[0]));
    assert_false(watch_calls_in_progress(&thread[1])); /* it is its own */
    watch_mark_quiescent(&thread[0], 0);               /* another one */
    protect();
    assert_int_equal(accessible_pages(), 1u << 5);
    watch_mark_quiescent(&thread[1], 0);
    assert_false(watch_calls_in_progress(&thread[0]));
    protect();
    assert_int_equal(accessible_pages(), 0);
}

static void unknown_memory_is_all_memory(void **state)
{
    (void)state;
    watch_all();
    assert_true(watch_call_begins(&thread[2], CALL_OPEN_ENDED, NULL));
    protect();
    assert_int_equal(accessible_pages(), ALL_PAGES);
    watch_call_ends(&thread[2]);
    protect();
    assert_int_equal(accessible_pages(), 0);
}

/* Lengths are what the program passed. */
static void length_may_wrap_around(void **state)
{
    (void)state;
    const struct memory m = part_of(6, 0, UINT64_MAX);
    watch_all();
    watch_call_begins(&thread[2], CALL_OPEN_ENDED, &m);
    protect();
    assert_int_equal(accessible_pages(), 1u << 6 | 1u << 7);
}

static void change_of_mappings_forgets_pages(void **state)
{
    (void)state;
    const struct memory m = part_of(1, 0, 2 * WIRE_PAGE);
    watch_call_begins(&thread[1], CALL_OPEN_ENDED, NULL); /* it has ended, since another one begins */
    watch_all();
    assert_int_equal(accessible_pages(), ALL_PAGES);
    watch_change_begins(&thread[1], &m);
    protect();
    assert_int_equal(accessible_pages(), 1u << 1 | 1u << 2);
    assert_int_equal(test_proc.watching.watch[1].state, WIRE_WATCH_CENSORED);
    assert_int_equal(test_proc.watching.watch[2].state, WIRE_WATCH_CENSORED);
    assert_int_equal(test_proc.watching.watch[3].state, WIRE_WATCH_PENDING);
    watch_all(); /* the collector chose lines there again, by an answer that is not out of date */
    assert_int_equal(accessible_pages(), 1u << 1 | 1u << 2);
    /* Its rights may be other ones after the call. */
    watch_call_ends(&thread[1]);
    assert_null(find_page(address_of(1)));
    assert_int_equal(test_proc.watching.watch[1].state, WIRE_WATCH_CENSORED);
    protect();
    assert_int_equal(accessible_pages(), 1u << 1 | 1u << 2);
    watch_all();
    assert_int_equal(accessible_pages(), 0);
}

/* A thread or a process is created, by a call that is not diverted. */
static void undiverted_call_unprotects_all(void **state)
{
    (void)state;
    watch_all();
    assert_int_equal(thread[1].divert.selector, CALLS_DIVERTED);
    watch_undiverted_begins(&thread[1]);
    assert_int_equal(thread[1].divert.selector, CALLS_ALLOWED);
    watch_mark_quiescent(&thread[1], SIGNAL_BIT(SIGSEGV)); /* in that call, for which libc blocks signals */
    protect();
    assert_int_equal(accessible_pages(), ALL_PAGES);
    watch_undiverted_ends(&thread[1]);
    assert_int_equal(thread[1].divert.selector, CALLS_DIVERTED);
    assert_int_equal(accessible_pages(), 0);
}

static void blocked_faults_end_watching(void **state)
{
    (void)state;
    watch_all();
    watch_mark_quiescent(&thread[1], SIGNAL_BIT(SIGUSR1));
    assert_int_equal(accessible_pages(), 0);
    watch_mark_quiescent(&thread[1], SIGNAL_BIT(SIGSEGV));
    assert_int_equal(thread[1].divert.selector, CALLS_ALLOWED); /* SIGSYS may be blocked, too */
    assert_int_equal(test_proc.watching.watch[0].state, WIRE_WATCH_CENSORED);
    watch_all();
    assert_int_equal(accessible_pages(), ALL_PAGES);
    watch_mark_quiescent(&thread[1], 0);
    watch_all();
    assert_int_equal(accessible_pages(), 0);
}

/* --- tracking --- */

static void pause_tracking(void)
{
    watch_lock();
    censor_all();
    tracker_pause();
    watch_unlock();
}

static void nothing_is_protected_before_each_thread_was_seen(void **state)
{
    (void)state;
    pause_tracking();
    watch_all();
    assert_int_equal(accessible_pages(), ALL_PAGES);
    begin_tracking(0);
    watch_all();
    assert_int_equal(accessible_pages(), ALL_PAGES);
    watch_mark_quiescent(&thread[1], 0);
    protect();
    assert_int_equal(accessible_pages(), ALL_PAGES); /* thread 2 may be in a call made before */
    thread[2].watch.in_burst = 1;                    /* its calls are noted in translated code */
    protect();
    assert_int_equal(accessible_pages(), 0);
}

static void call_that_was_noted_before_a_pause(void **state)
{
    (void)state;
    const struct memory m = part_of(4, 0, 1);
    watch_call_begins(&thread[1], CALL_OPEN_ENDED, &m);
    watch_call_begins(&thread[2], CALL_OPEN_ENDED, &m);
    pause_tracking();
    thread[2].watch.not_diverted = 1; /* it has left the call, and made others */
    watch_lock();
    set_selector(&thread[2]);
    watch_unlock();
    assert_int_equal(thread[2].divert.is_on, 0);
    thread[2].divert.selector = CALLS_ALLOWED;
    begin_tracking(0);
    watch_all();
    assert_int_equal(accessible_pages(), ALL_PAGES); /* of thread 2 nothing is known */
    watch_mark_quiescent(&thread[2], 0);
    protect();
    assert_int_equal(accessible_pages(), 1u << 4); /* thread 1 may still be in it */
}

static void pauses_become_longer(void **state)
{
    (void)state;
    watch_all();
    watch_lock();
    tracker_pause(); /* lines are pending */
    watch_unlock();
    assert_true(tracking);
    for (unsigned bursts = 1; bursts <= 2 * PAUSE_MOST_BURSTS; bursts *= 2) {
        unsigned left = 0;
        pause_tracking();
        assert_false(tracking);
        for (; tracker_is_paused(); left++)
            tracker_burst_begins(&thread[0]);
        assert_false(tracking);
        tracker_burst_begins(&thread[0]);
        assert_true(tracking);
        assert_int_equal(left, bursts < PAUSE_MOST_BURSTS ? bursts : PAUSE_MOST_BURSTS);
    }
    assert_int_equal(test_proc.count.watch_pauses, 8);
}

/* Diverted calls of the thread until it stops having them diverted. */
static unsigned calls_until_not_diverted(unsigned i)
{
    unsigned n = 0;
    for (; thread[i].divert.is_on; n++)
        watch_diverted(&thread[i]);
    return n;
}

static void thread_with_many_calls_stops_having_them_diverted(void **state)
{
    (void)state;
    test_proc.watching.fault_ns = 1000;
    assert_true(PAUSE_CALLS > 1);
    for (unsigned round = 0; round < 2; round++) { /* the second pause is like the first one */
        uint64_t began = process_cpu_ns;
        pause_tracking();
        watch_mark_quiescent(&thread[1], 0);
        process_cpu_ns = began + 2 * PAUSE_CALLS * UINT64_C(1000) * PAUSE_SHARE - 1;
        assert_int_equal(calls_until_not_diverted(1), 2 * PAUSE_CALLS);
        assert_true(thread[2].divert.is_on);
        process_cpu_ns = began + 1;
        assert_int_equal(calls_until_not_diverted(2), PAUSE_CALLS);
        begin_tracking(0);
        for (unsigned i = 1; i < THREADS; i++) { /* only a thread itself starts it */
            assert_false(thread[i].divert.is_on);
            watch_mark_quiescent(&thread[i], 0);
            assert_true(thread[i].divert.is_on);
            assert_int_equal(thread[i].divert.selector, CALLS_DIVERTED);
        }
    }
}

static void without_diversion_nothing_is_watched(void **state)
{
    (void)state;
    watch_all();
    no_diversion = 1;
    thread[0].divert.is_on = 0;
    begin_tracking(0);
    assert_int_equal(test_proc.watching.off, WIRE_UNWATCHED_KERNEL);
    assert_int_equal(accessible_pages(), ALL_PAGES);
    watch_all();
    assert_int_equal(accessible_pages(), ALL_PAGES);
}

/* --- threads --- */

static void nothing_is_protected_while_a_thread_is_created(void **state)
{
    (void)state;
    starting = 1;
    watch_all();
    assert_int_equal(accessible_pages(), ALL_PAGES);
    starting = 0;
    protect();
    assert_int_equal(accessible_pages(), 0);
}

static void thread_stays_until_the_kernel_has_ended_it(void **state)
{
    (void)state;
    const struct memory m = part_of(3, 0, 1);
    watch_all();
    watch_call_begins(&thread[1], CALL_OPEN_ENDED, &m);
    thread[1].tid = process_id; /* a thread that exists */
    thread[1].ending = 1;
    watch_reap();
    assert_int_equal(nforgotten, 0);
    protect();
    assert_int_equal(accessible_pages(), 1u << 3);
    thread[1].tid = INT32_MAX; /* none has that id */
    watch_reap();
    assert_int_equal(nforgotten, 1);
    protect();
    assert_int_equal(accessible_pages(), 0);
    thread[2].tid = INT32_MAX;
    thread[2].ending = 1;
    watch_reap();
    assert_int_equal(nforgotten, 2);
    assert_ptr_equal(threads, &thread[0]);
    assert_false(tracking); /* a single thread needs none */
    assert_int_equal(accessible_pages(), ALL_PAGES);
    assert_int_equal(test_proc.watching.watch[0].state, WIRE_WATCH_CENSORED);
}

static void fault_in_the_lock_releases_it(void **state)
{
    (void)state;
    watch_all();
    assert_false(watch_fault_in_lock());
    watch_lock();
    assert_true(watch_fault_in_lock());
    assert_false(watch_holds_lock());
    assert_int_equal(accessible_pages(), ALL_PAGES);
}

/* --- any order of all this, against a simple version --- */

/* What the kernel may access for each thread, as pages; and whether that is known. */
struct twin {
    unsigned inside[THREADS];
    int is_unknown[THREADS]; /* it may be in a call that was not noted */
    int is_old[THREADS];     /* its call began before the last pause */
};

static unsigned below(unsigned n)
{
    static struct random_state random = {{1, 2, 3, 4}};
    return (unsigned)random_below(&random, n);
}

static int is_any_unknown(const struct twin *twin)
{
    return twin->is_unknown[0] || twin->is_unknown[1] || twin->is_unknown[2];
}

static void seen_outside(struct twin *twin, unsigned i)
{
    twin->inside[i] = 0;
    twin->is_unknown[i] = twin->is_old[i] = 0;
    goes_through[i] = 0;
}

static void call(struct twin *twin, unsigned i)
{
    enum watch_call how = (enum watch_call)(CALL_IN_HANDLER + below(3));
    unsigned first = below(PAGES), last = first;
    last += below(PAGES - first);
    const struct memory m = part_of(first, below(WIRE_PAGE), 0);
    struct memory whole = m;
    whole.part[0].bytes = address_of(last) + WIRE_PAGE - m.part[0].address;
    int is_known = below(5) != 0;
    watch_mark_quiescent(&thread[i], 0); /* before that its calls are not diverted */
    goes_through[i] = how == CALL_THROUGH;
    watch_call_begins(&thread[i], how, is_known ? &whole : NULL);
    twin->is_unknown[i] = twin->is_old[i] = 0;
    twin->inside[i] = is_known ? (2u << last) - (1u << first) : ALL_PAGES;
}

static void pause_and_start(struct twin *twin, unsigned i)
{
    pause_tracking();
    for (unsigned k = 0; k < THREADS; k++) /* not diverted, some make calls that are not noted */
        if (k != i && thread[k].watch.call != CALL_IN_HANDLER && thread[k].watch.call != CALL_THROUGH &&
            below(2) == 0) {
            thread[k].divert.selector = CALLS_ALLOWED;
            twin->inside[k] = 0;
        }
    watch_mark_quiescent(&thread[i], 0);
    begin_tracking(i);
    for (unsigned k = 0; k < THREADS; k++) {
        twin->is_unknown[k] = twin->inside[k] == 0;
        twin->is_old[k] = 1;
    }
    seen_outside(twin, i);
    assert_int_equal(accessible_pages(), ALL_PAGES);
}

static void any_order(void **state)
{
    (void)state;
    struct twin twin = {{0}, {0}, {0}};
    unsigned known = 0, partly = 0;
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = below(THREADS);
        switch (below(8)) {
        case 0:
        case 1:
        case 2:
            call(&twin, i);
            break;
        case 3:
        case 4:
            watch_call_ends(&thread[i]);
            seen_outside(&twin, i);
            break;
        case 5: /* a call without a fault returns */
            if (goes_through[i]) {
                int is_old = twin.is_old[i]; /* the thread was not seen since then */
                seen_outside(&twin, i);
                twin.is_unknown[i] = is_old;
            }
            break;
        case 6: /* a handler interrupts the program's own code */
            watch_mark_quiescent(&thread[i], 0);
            seen_outside(&twin, i);
            break;
        default:
            if (below(10) == 0)
                pause_and_start(&twin, i);
        }
        unsigned in_use = twin.inside[0] | twin.inside[1] | twin.inside[2], before = accessible_pages();
        assert_int_equal(before & in_use, in_use);
        watch_all();
        /* Else no further page is protected. */
        assert_int_equal(accessible_pages(), is_any_unknown(&twin) ? before : in_use);
        known += !is_any_unknown(&twin);
        partly += !is_any_unknown(&twin) && in_use != 0 && in_use != ALL_PAGES;
    }
    assert_true(known > 5000);
    assert_true(partly > 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(outside_of_calls_all_is_protected, setup),
        cmocka_unit_test_setup(memory_of_a_call_is_accessible, setup),
        cmocka_unit_test_setup(call_through_ends_by_itself, setup),
        cmocka_unit_test_setup(open_ended_call_lasts_until_the_thread_is_seen, setup),
        cmocka_unit_test_setup(unknown_memory_is_all_memory, setup),
        cmocka_unit_test_setup(length_may_wrap_around, setup),
        cmocka_unit_test_setup(change_of_mappings_forgets_pages, setup),
        cmocka_unit_test_setup(undiverted_call_unprotects_all, setup),
        cmocka_unit_test_setup(blocked_faults_end_watching, setup),
        cmocka_unit_test_setup(nothing_is_protected_before_each_thread_was_seen, setup),
        cmocka_unit_test_setup(call_that_was_noted_before_a_pause, setup),
        cmocka_unit_test_setup(pauses_become_longer, setup),
        cmocka_unit_test_setup(thread_with_many_calls_stops_having_them_diverted, setup),
        cmocka_unit_test_setup(without_diversion_nothing_is_watched, setup),
        cmocka_unit_test_setup(nothing_is_protected_while_a_thread_is_created, setup),
        cmocka_unit_test_setup(thread_stays_until_the_kernel_has_ended_it, setup),
        cmocka_unit_test_setup(fault_in_the_lock_releases_it, setup),
        cmocka_unit_test_setup(any_order, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
