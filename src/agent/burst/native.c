/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.c - what threads execute natively though they are to stay in the code cache (full mode, counting
 * always): its references are missing, and the profile says how much that is, and why.
 *
 * Measured is user-mode CPU time of the thread, from the moment at which a handler of ours returns to native
 * code till the thread is in the code cache again. Not counted is what makes no references that would have
 * been recorded: the kernel's time in system calls (getrusage tells user mode apart), single instructions
 * that are stepped over (`stepped` has their number), and a thread's end.
 *
 * Threads that the agent does not know have no such moments. They are known to be there from the calls that
 * make them, and the process' CPU time less that of all known threads is theirs, in the kernel, too.
 */
#include <sys/resource.h>
#include <time.h>
#include "agent/burst/burst.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"

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

/* The thread's CPU time up to now is accounted for. */
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

/* The entry for the thread and the reason; the last one is for all that have none of their own. */
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
    uint64_t cpu = account_cpu_time(t) - t->native.cpu_ns, user = user_ns();
    user = user > t->native.user_ns ? user - t->native.user_ns : 0;
    count_add(&entry_of(t->tid, t->native.why)->user_ns, user < cpu ? user : cpu);
    t->native.is_on = 0;
}
