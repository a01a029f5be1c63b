/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - attaches and detaches threads: calls each part of the agent in the required order.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "agent/burst/burst.h"
#include "agent/clock/clock.h"
#include "agent/life/life.h"
#include "agent/sys/process.h"
#include "agent/signals/bits.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch.h"
#include "base/random.h"

static pthread_key_t exit_key;
static int has_key;
static uint64_t thread_number;
static uint32_t attaching; /* threads between reading agent_off and being attached */

struct thread *thread_self_by_key(void)
{
    return has_key ? pthread_getspecific(exit_key) : NULL;
}

struct thread *thread_make(void)
{
    struct thread *t = thread_new();
    if (!t)
        return NULL;
    t->translation.buffer = -1;
    t->signals.app_altstack = (stack_t){.ss_flags = SS_DISABLE};
    t->signals.kernel_altstack[1] = (stack_t){.ss_sp = t->signal_stack, .ss_size = SIGNAL_STACK_BYTES};
    t->signals.kernel_altstack[0] = (stack_t){.ss_sp = t->signal_stack, .ss_size = SIGNAL_STACK_BYTES - 64};
    return t;
}

int thread_attach(struct thread *t)
{
    t->tid = (uint32_t)sys0(SYS_gettid);
    t->state = THREAD_NATIVE;
    t->translation.buffer = -1;
    t->ending = 0;
    t->divert.is_on = t->divert.was_on = t->burst.is_probe = t->burst.trigger_pending = t->watch.hold_depth =
        0;
    t->translation.inside = t->burst.must_return = t->burst.enter_after_step = t->burst.step_trap_blocked =
        t->native.creating_followed = t->burst.step_executes = 0;
    t->burst.consecutive_steps = 0;
    t->native.is_on = 0;
    t->native.known_cpu_ns = 0;
    t->native.refused = WIRE_NATIVE_OFF;
    t->divert.selector = 0;
    t->timing.is_first = 1;
    t->timing.entered_ns = t->timing.translated_ns = 0;
    t->clock = (struct counting){0};
    memset(&t->phases, 0, sizeof t->phases);
    t->signals.held_signals = 0;
    /* Left over from another thread, or from the parent. */
    memset(t->generated.strings, 0, sizeof t->generated.strings);
    t->timing.random = session->seed ^ (uint64_t)__atomic_add_fetch(&thread_number, 1, __ATOMIC_RELAXED)
                                           << 32;
    random_splitmix64(&t->timing.random);
    stack_t before;
    sys2(SYS_sigaltstack, 0, &before);
    t->signals.app_altstack = before.ss_sp == t->signal_stack ? (stack_t){.ss_flags = SS_DISABLE} : before;
    if (sys_failed(sys2(SYS_sigaltstack, &t->signals.kernel_altstack[1], 0)) || thread_register(t))
        return -1;
    watch_thread_attached(t);
    trigger_create_timer(t);
    trigger_claim(t);
    count_add(&proc->count.threads, 1);
    pthread_setspecific(exit_key, t);
    t->burst.always_translated = agent_always_translated();
    if (t->burst.always_translated)
        thread_trigger(t);
    else
        thread_arm(t);
    return 0;
}

/* The thread will begin no burst any more: its timer, its counting and its perf event end. */
static void release_timing(struct thread *t)
{
    if (t->timing.has_timer)
        sys1(SYS_timer_delete, t->timing.timer);
    t->timing.has_timer = 0;
    count_thread_gone(t);
    trigger_release(t);
}

static void thread_detach(struct thread *t)
{
    if (process_is_untracked()) /* in a copy of the process */
        return;
    t->ending = 1;
    if (t->burst.enter_after_step)
        burst_step_end();
    t->burst.enter_after_step = 0;
    thread_leave_burst(t);
    if (t->state != THREAD_NATIVE) { /* cancelled in a system call that it made in a burst */
        watch_block_signals(t);
        burst_left(t);
        watch_unblock_signals(t);
    }
    native_ends(t);
    native_account(t);
    int still_diverted = watch_thread_detached(t);
    thread_leave_burst(t);
    release_timing(t);
    t->timing.trigger = NULL;
    if (still_diverted) /* its calls stay diverted until it has ended */
        return;
    stack_t none = {.ss_flags = SS_DISABLE};
    sys2(SYS_sigaltstack, t->signals.app_altstack.ss_flags & SS_DISABLE ? &none : &t->signals.app_altstack,
         0);
    thread_forget(t);
}

void threads_forked(void)
{
    struct thread *t = pthread_getspecific(exit_key);
    attaching = 0;
    threads_forget_all();
    if (!t)
        return;
    t->timing.has_timer = t->clock.has_timer = 0; /* fork does not inherit timers */
    stack_t altstack = t->signals.app_altstack;
    thread_attach(t);
    t->signals.app_altstack = altstack;
}

/* Whether another thread computes, or would if it had a processor. */
static int others_run(const struct thread *self)
{
    struct thread *t;
    for (uint32_t at = threads_next(0, &t); at; at = threads_next(at, &t))
        if (t != self && task_state(t->tid) == 'R')
            return 1;
    return 0;
}

int threads_await_native(void)
{
    struct timespec moment = {0, 1000000};
    struct thread *self = thread_self();
    for (int waited = 0, idle = 0; waited < RETIRE_MS && idle < RETIRE_IDLE_MS; waited++) {
        if (burst_none_active() && !watch_calls_in_progress(self))
            return 1;
        /* A thread that computes may still sleep for a moment, as for a page or a lock. */
        if (waited >= RETIRE_BURSTS_MS)
            idle = others_run(self) ? 0 : idle + 1;
        sys2(SYS_nanosleep, &moment, 0);
    }
    return 0;
}

/* Waits until no thread is being attached; since the agent is off, no other will be. 0: it took too long. */
static int await_attaching(void)
{
    struct timespec moment = {0, 1000000};
    for (int waited = 0; waited < RETIRE_MS; waited++) {
        if (__atomic_load_n(&attaching, __ATOMIC_SEQ_CST) == 0)
            return 1;
        sys2(SYS_nanosleep, &moment, 0);
    }
    return 0;
}

/* Or it sleeps. *state: if it had to be asked for, else 0. */
static int has_run_since(const struct thread *t, char *state)
{
    *state = 0;
    if (thread_cpu_ns(t->tid) - t->timing.retired_cpu_ns >= RAN_SINCE_NS)
        return 1;
    *state = task_state(t->tid);
    return *state != 'R' && *state != 0;
}

int threads_await_delivery(void)
{
    struct timespec moment = {0, 1000000};
    uint32_t self = (uint32_t)sys0(SYS_gettid), waited = 0;
    struct thread *t;
    for (uint32_t at = threads_next(0, &t); at; at = threads_next(at, &t))
        t->timing.retired_cpu_ns = thread_cpu_ns(t->tid);
    for (uint32_t at = threads_next(0, &t); at;) {
        uint32_t tid = t->tid;
        char state = 0;
        if (tid == self || (has_run_since(t, &state) && !(task_pending_signals(tid) & FAULT_SIGNALS)))
            at = threads_next(at, &t);
        else if (waited++ >= (state ? RETIRE_MS : RETIRE_BURSTS_MS))
            return 0;
        else
            sys2(SYS_nanosleep, &moment, 0);
    }
    return 1;
}

int threads_retire(int *quiesced)
{
    *quiesced = await_attaching();
    threads_await_native(); /* before the alarms by which threads stop counting are gone */
    threads_each(release_timing);
    *quiesced = *quiesced && triggers_await_closed() && threads_await_delivery();
    return threads_await_native();
}

static void at_thread_exit(void *thread)
{
    if (!agent_gone) /* its structure is kept: the kernel may still use its signal stack */
        thread_detach(thread);
}

int threads_init(void)
{
    has_key = pthread_key_create(&exit_key, at_thread_exit) == 0;
    return has_key ? threads_registry_init() : -1;
}

struct thread *thread_begins(void *thread)
{
    __atomic_fetch_add(&attaching, 1, __ATOMIC_SEQ_CST); /* await_attaching waits for this counter */
    if (!__atomic_load_n(&agent_off, __ATOMIC_SEQ_CST))
        thread_attach(thread);
    else
        watch_thread_not_attached(thread);
    __atomic_fetch_sub(&attaching, 1, __ATOMIC_SEQ_CST);
    return thread;
}
