/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.c - native execution that should have been translated (full mode, and while every reference is
 * counted). Its references are missing; the profile says how much that is, and why.
 *
 * What is measured is user-mode CPU time of the thread, from the moment at which one of the agent's handlers
 * returns to native code until the thread is in the code cache again. What makes no references that would
 * have been recorded is not measured: the kernel's time in system calls (getrusage separates user mode),
 * instructions that are single-stepped (the counter `stepped` has their number), and the end of a thread. The
 * kernel knows user mode by its ticks only, so some milliseconds may count as none. All of the time counts
 * where no code can be translated any more, and after a thread has waited in vain for another one's exec:
 * such a recording must not be called exact.
 *
 * Threads that the agent does not know have no such moments. That they exist is known from the calls that
 * create them. Their time is the process's CPU time minus that of all known threads, including their time in
 * the kernel.
 */
#include <sys/resource.h>
#include <time.h>
#include "agent/burst/burst.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"

#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD 1
#endif

static uint64_t user_ns(void)
{
    struct rusage usage;
    if (sys_failed(sys2(SYS_getrusage, RUSAGE_THREAD, &usage)))
        return 0;
    return (uint64_t)usage.ru_utime.tv_sec * 1000000000u + (uint64_t)usage.ru_utime.tv_usec * 1000u;
}

/* Accounts for the thread's CPU time up to now. */
static uint64_t account_cpu_time(struct thread *t)
{
    uint64_t now = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID), before = t->native.known_cpu_ns;
    count_add(&proc->count.known_cpu_ns, now > before ? now - before : 0);
    t->native.known_cpu_ns = now;
    return now;
}

void native_account(struct thread *t)
{
    if (!agent_always_translated())
        return;
    account_cpu_time(t);
    if (__atomic_load_n(&proc->count.unknown_threads, __ATOMIC_RELAXED))
        proc->count.cpu_ns = sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void native_begins(struct thread *t)
{
    if (t->native.is_on || t->state != THREAD_NATIVE || t->ending || t->burst.enter_after_step)
        return;
    t->native.cpu_ns = account_cpu_time(t);
    t->native.user_ns = user_ns();
    t->native.is_on = 1;
    t->native.why = t->burst.left_because == WIRE_END_EXIT ? WIRE_NATIVE_AGENT : t->native.refused;
}

/* The entry for the thread and reason. The last entry is shared by all that find none of their own. */
static struct wire_native *entry_of(uint32_t tid, uint32_t why)
{
    uint32_t key = tid << 4 | why, i = 0;
    for (; i < WIRE_MAX_NATIVE - 1; i++) {
        uint32_t expected = 0;
        if (__atomic_compare_exchange_n(&proc->native[i].key, &expected, key, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            expected == key)
            break;
    }
    return &proc->native[i];
}

void native_ends(struct thread *t)
{
    if (!t->native.is_on)
        return;
    t->native.is_on = 0;
    if (session->stop) /* recording is over: nothing is missing */
        return;
    uint64_t cpu = account_cpu_time(t) - t->native.cpu_ns, user = user_ns();
    user = user > t->native.user_ns ? user - t->native.user_ns : 0;
    int all =
        t->native.why == WIRE_NATIVE_EXEC || (t->native.why == WIRE_NATIVE_SPACE && arch_templates_full());
    count_add(&entry_of(t->tid, t->native.why)->user_ns, user < cpu && !all ? user : cpu);
}
