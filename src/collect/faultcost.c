/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/faultcost.h"
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#define FAULTS 15

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
