/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/faultcost.h"
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define FAULTS 15
#define ALARMS 9
#define ALARM_AFTER_NS 30000
/* Should the alarm not come; and what is told then. */
#define ALARM_PATIENCE_NS UINT64_C(10000000)
#define ALARM_TYPICAL_NS 5000

static volatile sig_atomic_t seen;

static void on_trap(int sig)
{
    (void)sig;
    seen++;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

uint64_t fault_cost_ns(void)
{
    static uint64_t cost;
    struct sigaction act = {.sa_handler = on_trap}, before;
    uint64_t ns[FAULTS];
    if (cost != 0)
        return cost;
    if (sigaction(SIGTRAP, &act, &before) != 0)
        return cost = 2500;
    for (size_t i = 0; i < FAULTS; i++) {
        uint64_t start = cpu_ns();
        raise(SIGTRAP);
        uint64_t middle = cpu_ns();
        uint64_t clock = cpu_ns() - middle; /* what asking takes */
        ns[i] = middle - start > clock ? middle - start - clock : 1;
    }
    sigaction(SIGTRAP, &before, NULL);
    qsort(ns, FAULTS, sizeof(ns[0]), compare);
    return cost = ns[FAULTS / 2];
}

static volatile uint64_t handler_from, handler_to;

static uint64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void on_alarm(int sig)
{
    (void)sig;
    handler_from = real_ns();
    handler_to = real_ns();
}

/* From the last look at the clock to the handler, and from there to the next look. 0: no alarm came. */
static uint64_t one_alarm(timer_t timer)
{
    struct itimerspec when = {.it_value = {0, ALARM_AFTER_NS}};
    handler_to = 0;
    timer_settime(timer, 0, &when, NULL);
    uint64_t start = real_ns(), before = start, now = start;
    while (handler_to == 0 && now - start < ALARM_PATIENCE_NS) {
        before = now;
        now = real_ns();
    }
    if (handler_to == 0)
        return 0;
    /* The handler may have run before the last look or behind it. */
    if (now < handler_from)
        before = now, now = real_ns();
    return handler_from - before + now - handler_to;
}

uint64_t alarm_cost_ns(void)
{
    static uint64_t cost;
    struct sigaction act = {.sa_handler = on_alarm}, before;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGTRAP};
    uint64_t ns[ALARMS];
    timer_t timer;
    if (cost != 0)
        return cost;
    cost = ALARM_TYPICAL_NS;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (sigaction(SIGTRAP, &act, &before) != 0)
        return cost;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
        for (size_t i = 0; i < ALARMS; i++)
            ns[i] = one_alarm(timer);
        timer_delete(timer);
        qsort(ns, ALARMS, sizeof(ns[0]), compare);
        if (ns[ALARMS / 2] != 0)
            cost = ns[ALARMS / 2];
    }
    sigaction(SIGTRAP, &before, NULL);
    return cost;
}
