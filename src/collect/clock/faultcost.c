/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/clock/faultcost.h"
#include "collect/launch/process-time.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define FAULTS 15
#define FAULT_PAGE 4096u
#define FAULT_APART (256u << 10)
/* Used if there is no memory to measure with. */
#define FAULT_TYPICAL_NS 4000
#define PAGE_TYPICAL_NS 1000
#define ALARMS 9
#define ALARM_AFTER_NS 30000
/* Timeout if the alarm does not come, and the result then. */
#define ALARM_PATIENCE_NS UINT64_C(10000000)
#define ALARM_TYPICAL_NS 5000

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static char *closed_page;
static volatile uint64_t handler_from, handler_to;

static void on_fault(int sig)
{
    (void)sig;
    handler_from = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    mprotect(closed_page, FAULT_PAGE, PROT_READ | PROT_WRITE);
    handler_to = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Evicts the first-level cache: between real faults other code runs. */
static void leave_cache(volatile char *memory)
{
    for (size_t i = 0; i < FAULT_APART; i += 64)
        memory[i]++;
}

/* Measures faults on the protected page that follows FAULT_APART bytes of memory. */
static void measure_faults(char *memory, uint64_t *ns, uint64_t *entry_ns)
{
    closed_page = memory + FAULT_APART;
    *closed_page = 1;
    for (size_t i = 0; i < FAULTS; i++) {
        leave_cache(memory);
        mprotect(closed_page, FAULT_PAGE, PROT_NONE);
        uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        *(volatile char *)closed_page = 1;
        uint64_t after = clock_ns(CLOCK_THREAD_CPUTIME_ID),
                 clock = clock_ns(CLOCK_THREAD_CPUTIME_ID) - after; /* clock: what reading the clock takes */
        uint64_t took = after - before, own = handler_to - handler_from + clock;
        ns[i] = took > own ? took - own : 1;
        entry_ns[i] = handler_from > before + clock ? handler_from - before - clock : 1;
    }
    qsort(ns, FAULTS, sizeof(ns[0]), compare);
    qsort(entry_ns, FAULTS, sizeof(entry_ns[0]), compare);
}

/* A signal's handler and the signal mask. */
struct signal_state {
    struct sigaction action;
    sigset_t mask;
};

/* Installs a handler for a signal and unblocks it: our parent may have blocked every signal. */
static int take_signal(int sig, void (*handler)(int), struct signal_state *before)
{
    struct sigaction action = {.sa_handler = handler};
    sigset_t this;
    if (sigaction(sig, &action, &before->action) != 0)
        return -errno;
    sigemptyset(&this);
    sigaddset(&this, sig);
    return -pthread_sigmask(SIG_UNBLOCK, &this, &before->mask);
}

static void restore_signal(int sig, const struct signal_state *before)
{
    pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    sigaction(sig, &before->action, NULL);
}

struct fault_cost fault_cost(void)
{
    static struct fault_cost cost;
    struct signal_state before;
    uint64_t ns[FAULTS], entry_ns[FAULTS];
    if (cost.ns != 0)
        return cost;
    cost = (struct fault_cost){FAULT_TYPICAL_NS, FAULT_TYPICAL_NS / 4 * 3};
    char *memory =
        mmap(NULL, FAULT_APART + FAULT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return cost;
    if (take_signal(SIGSEGV, on_fault, &before) == 0) {
        measure_faults(memory, ns, entry_ns);
        restore_signal(SIGSEGV, &before);
        cost = (struct fault_cost){ns[FAULTS / 2], entry_ns[FAULTS / 2]};
    }
    munmap(memory, FAULT_APART + FAULT_PAGE);
    return cost;
}

static uint64_t touch_pages(size_t pages)
{
    char *memory = mmap(NULL, pages * FAULT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return PAGE_TYPICAL_NS;
    uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < pages; i++)
        *(volatile char *)(memory + i * FAULT_PAGE) = 1;
    uint64_t each = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / pages;
    munmap(memory, pages * FAULT_PAGE);
    return each;
}

uint64_t page_cost_ns(size_t pages)
{
    touch_pages(pages); /* the first ones take longer: the kernel's code is not in the caches */
    return touch_pages(pages);
}

static void on_alarm(int sig)
{
    (void)sig;
    handler_from = monotonic_ns();
    handler_to = monotonic_ns();
}

/* From the last reading of the clock to the handler, and from there to the next reading. 0: no alarm came. */
static uint64_t one_alarm(timer_t timer)
{
    struct itimerspec when = {.it_value = {0, ALARM_AFTER_NS}};
    handler_to = 0;
    timer_settime(timer, 0, &when, NULL);
    uint64_t start = monotonic_ns(), before = start, now = start;
    while (handler_to == 0 && now - start < ALARM_PATIENCE_NS) {
        before = now;
        now = monotonic_ns();
    }
    if (handler_to == 0)
        return 0;
    /* The handler may have run before the last reading or after it. */
    if (now < handler_from)
        before = now, now = monotonic_ns();
    return handler_from - before + now - handler_to;
}

uint64_t alarm_cost_ns(void)
{
    static uint64_t cost;
    struct signal_state before;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGTRAP};
    uint64_t ns[ALARMS];
    timer_t timer;
    if (cost != 0)
        return cost;
    cost = ALARM_TYPICAL_NS;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (take_signal(SIGTRAP, on_alarm, &before) != 0)
        return cost;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
        for (size_t i = 0; i < ALARMS; i++)
            ns[i] = one_alarm(timer);
        timer_delete(timer);
        qsort(ns, ALARMS, sizeof(ns[0]), compare);
        if (ns[ALARMS / 2] != 0)
            cost = ns[ALARMS / 2];
    }
    restore_signal(SIGTRAP, &before);
    return cost;
}
