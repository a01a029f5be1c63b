/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - the threads that are followed, found by their kernel id (thread-local storage would be
 * wrong in a vfork child, which shares it), with a timer and a signal stack each.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <threads.h>
#include <time.h>
#include "agent/agent.h"
#include "agent/sys/own.h"
#include "agent/sys/sys.h"

#define TABLE (2u * MAX_THREADS)
#define GONE UINT32_MAX

/* TABLE of them; NULL: not made yet. */
static struct entry {
    uint32_t tid; /* 0: never used, GONE: used once */
    struct thread *thread;
} * table;
/* Of which parts had an entry ever: who goes through the table keeps away from the others, whose pages a
 * forked child would have to make one by one. */
#define PART 256u
static uint8_t used[TABLE / PART];
static struct thread *free_threads;
static int lock;
static pthread_key_t exit_key;
static int has_key;
static uint64_t thread_number;
static uint32_t attaching;  /* threads that are about to see whether the agent is off, or did */
static unsigned structures; /* made so far */

static void take_lock(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        sys0(SYS_sched_yield);
}
static void drop_lock(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* The next entry from there on that may be used; TABLE: none. */
static uint32_t next_entry(uint32_t i)
{
    while (i < TABLE && !__atomic_load_n(&used[i / PART], __ATOMIC_ACQUIRE))
        i = (i / PART + 1) * PART;
    return i;
}

struct thread *thread_self(void)
{
    if (!table)
        return NULL;
    uint32_t tid = (uint32_t)sys0(SYS_gettid);
    for (uint32_t i = tid % TABLE, n = 0; n < TABLE; i = (i + 1) % TABLE, n++) {
        uint32_t at = __atomic_load_n(&table[i].tid, __ATOMIC_ACQUIRE);
        if (at == tid)
            return table[i].thread;
        if (at == 0)
            return NULL;
    }
    return NULL;
}

struct thread *thread_own(void)
{
    return has_key ? pthread_getspecific(exit_key) : NULL;
}

struct thread *thread_of_stack(const void *signal_stack)
{
    /* Also of those that are gone: in a child, all but one are. */
    for (uint32_t i = next_entry(0); i < TABLE; i = next_entry(i + 1)) {
        struct thread *t = table[i].thread;
        if (t && t->signal_stack == signal_stack)
            return t;
    }
    return NULL;
}

void threads_each(void (*visit)(struct thread *))
{
    for (uint32_t i = next_entry(0); i < TABLE; i = next_entry(i + 1)) {
        uint32_t tid = __atomic_load_n(&table[i].tid, __ATOMIC_ACQUIRE);
        if (tid != 0 && tid != GONE)
            visit(table[i].thread);
    }
}

uint32_t threads_made(void)
{
    return __atomic_load_n(&structures, __ATOMIC_RELAXED);
}

struct thread *thread_new(void)
{
    take_lock();
    struct thread *t = free_threads;
    if (t)
        free_threads = t->next_free;
    drop_lock();
    if (t)
        return t;
    /* All in one piece, which is one entry in the list of what is ours. */
    struct pieces {
        struct thread thread;
        uint8_t guard[WIRE_PAGE], signal_stack[SIGNAL_STACK_BYTES];
        uint8_t guard_above[WIRE_PAGE], dispatch_stack[DISPATCH_STACK_BYTES];
        uint64_t mini_buffer[MINI_WORDS];
        uint8_t guard_behind[WIRE_PAGE];
    } *memory = own_map(NULL, sizeof *memory, OWN_DATA);
    if (!memory)
        return NULL;
    own_guard(memory->guard);
    own_guard(memory->guard_above);
    own_guard(memory->guard_behind);
    t = &memory->thread;
    t->signal_stack = memory->signal_stack;
    t->watch.mini_buffer = memory->mini_buffer;
    t->self = t;
    t->index = __atomic_fetch_add(&structures, 1, __ATOMIC_RELAXED);
    t->dispatch_stack = (uint64_t)(memory->dispatch_stack + DISPATCH_STACK_BYTES);
    t->buffer = -1;
    t->app_altstack = (stack_t){.ss_flags = SS_DISABLE};
    t->kernel_altstack[1] = (stack_t){.ss_sp = t->signal_stack, .ss_size = SIGNAL_STACK_BYTES};
    t->kernel_altstack[0] = (stack_t){.ss_sp = t->signal_stack, .ss_size = SIGNAL_STACK_BYTES - 64};
    arch_thread_init(t);
    return t;
}

static int register_thread(struct thread *t)
{
    int done = 0;
    take_lock();
    for (uint32_t i = t->tid % TABLE, n = 0; n < TABLE; i = (i + 1) % TABLE, n++)
        if (table[i].tid == 0 || table[i].tid == GONE || table[i].tid == t->tid) {
            table[i].thread = t;
            __atomic_store_n(&used[i / PART], 1, __ATOMIC_RELEASE);
            __atomic_store_n(&table[i].tid, t->tid, __ATOMIC_RELEASE);
            done = 1;
            break;
        }
    drop_lock();
    return done ? 0 : -1;
}

static void create_timer(struct thread *t)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGTRAP};
    event.sigev_value.sival_ptr = session;
    event._sigev_un._tid = (int)t->tid;
    long made = sys3(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &t->timer);
    t->has_timer = !sys_failed(made);
    if (t->has_timer)
        return;
    proc->timer_errno = (uint32_t)-made;
    proc->count.disabled = WIRE_OFF_TIMER; /* not added: other threads may have none either */
}

static void claim_trigger(struct thread *t)
{
    t->trigger = NULL;
    for (uint32_t i = 0; session->perf && i < WIRE_MAX_TRIGGERS; i++) {
        uint32_t expected = 0;
        if (__atomic_load_n(&proc->trigger[i].tid, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&proc->trigger[i].tid, &expected, t->tid, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            t->trigger = &proc->trigger[i];
            t->cookie = proc->cookie;
            t->trigger->cookie_at = (uint64_t)&t->cookie;
            __atomic_store_n(&t->trigger->armed, 0, __ATOMIC_RELEASE); /* ids come again */
            break;
        }
    }
}

/* Asks the collector for an interrupt after gap_ns of CPU time. */
static void want_trigger(struct wire_trigger *trigger, uint64_t gap_ns, int exactly)
{
    __atomic_store_n(&trigger->gap_ns, gap_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&trigger->exact, (uint32_t)exactly, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trigger->wanted, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&proc->triggers_changed, 1, __ATOMIC_RELEASE);
    doorbell();
}

void thread_leaves(struct thread *t)
{
    struct timespec moment = {0, HOLD_LOOK_NS};
    if (!t || !t->trigger)
        return;
    for (uint64_t waited = 0; waited < HOLD_MOST_NS; waited += HOLD_LOOK_NS) {
        uint32_t expected = WIRE_TRIGGER_FREE;
        if (__atomic_compare_exchange_n(&t->trigger->hold, &expected, WIRE_TRIGGER_LEAVES, 0,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) ||
            expected != WIRE_TRIGGER_HELD)
            return;
        sys2(SYS_nanosleep, &moment, 0);
    }
    /* The collector was stopped, or is gone. */
    __atomic_store_n(&t->trigger->hold, WIRE_TRIGGER_LEAVES, __ATOMIC_RELEASE);
}

void thread_stays(struct thread *t)
{
    if (!t || !t->trigger)
        return;
    __atomic_store_n(&t->trigger->hold, WIRE_TRIGGER_FREE, __ATOMIC_RELEASE);
    if (__atomic_load_n(&t->trigger->armed, __ATOMIC_ACQUIRE) != t->tid) /* it was refused an event */
        want_trigger(t->trigger, __atomic_load_n(&t->trigger->gap_ns, __ATOMIC_RELAXED), 1);
}

static void set_timer(struct thread *t, uint64_t at)
{
    struct itimerspec when = {.it_value = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)}};
    if (t->has_timer)
        sys4(SYS_timer_settime, t->timer, 1 /* TIMER_ABSTIME */, &when, 0);
}

/* The time for the next burst: one at a random place of each stratum of CPU time. */
static uint64_t place_after(struct thread *t, uint64_t from, uint64_t gap)
{
    return (from / gap + 1) * gap + random_next(&t->random) % gap;
}

/*
 * A tick stands for the half of the time to its neighbours that is next to it: whoever is planned there is
 * met by it. If that one came in the kernel, and with it the moment, there is no burst, and the next is
 * drawn.
 */
static int tick_is_due(struct thread *t, uint64_t tick_ns, uint64_t now)
{
    uint64_t half = tick_ns / 2;
    if (t->met) /* no burst came of it, nor another plan: once more, a gap later */
        return now >= t->planned_ns + t->gap_ns;
    while (!t->late && t->planned_ns + half < now) {
        t->planned_ns = place_after(t, t->planned_ns, t->gap_ns);
        t->stratum_ns = t->planned_ns / t->gap_ns * t->gap_ns;
    }
    return now + half >= t->planned_ns;
}

static void release_trigger(struct thread *t)
{
    if (!t->trigger)
        return;
    __atomic_store_n(&t->trigger->tid, 0, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&proc->triggers_changed, 1, __ATOMIC_RELEASE);
    doorbell();
}

/*
 * The kernel sets an event of a thread's up, and takes it down, whenever the thread gets a processor and
 * loses it. For who does little but wake others and wait for them that is a third of its time; the thread's
 * own timer costs nothing then, though it only comes with the kernel's tick. Events of counters are kept:
 * they are the clock.
 */
static int event_is_too_dear(const struct thread *t, uint64_t now)
{
    struct rusage use;
    /* One that is being opened is kept: this thread must not execute a program meanwhile, unseen. */
    if (session->perf != WIRE_EVENTS_OF_TIME || !t->has_timer || now < EVENT_TRIED_NS ||
        __atomic_load_n(&t->trigger->armed, __ATOMIC_ACQUIRE) != t->tid ||
        sys_failed(sys2(SYS_getrusage, RUSAGE_THREAD, &use)))
        return 0;
    uint64_t switches = (uint64_t)use.ru_nvcsw + (uint64_t)use.ru_nivcsw;
    return switches * EVENT_SWITCH_NS > now / EVENT_MOST_SHARE;
}

/* Has the thread interrupted at the planned moment. anew: what the collector's event does now will not do. */
static void wait_until_planned(struct thread *t, uint64_t now, int anew)
{
    if (t->trigger && event_is_too_dear(t, now)) {
        release_trigger(t);
        t->trigger = NULL;
    }
    if (!t->trigger) {
        set_timer(t, t->planned_ns);
        return;
    }
    int armed = __atomic_load_n(&t->trigger->armed, __ATOMIC_ACQUIRE) == t->tid;
    if (!armed || anew || __atomic_load_n(&t->trigger->tick_ns, __ATOMIC_ACQUIRE) == 0)
        want_trigger(t->trigger, t->planned_ns - now, t->exactly);
    /* Until the collector has its event; and should that fail. */
    set_timer(t, armed ? 0 : t->planned_ns + BACKSTOP_NS);
}

/* factor / divisor times ns, all in nanoseconds and up to minutes. */
static uint64_t scaled(uint64_t ns, uint64_t factor, uint64_t divisor)
{
    return ns / 1000 * (factor / 1000) / (divisor / 1000 + 1) * 1000;
}

/*
 * The next burst is planned when one ends, and only then does the collector learn what that one cost: the
 * first ones, for which all code is still to be translated, ten times as much as later ones. If the gap has
 * grown since, the stratum grows, and the planned moment with it. Returns nonzero if that is still to come.
 */
static int is_put_off(struct thread *t, uint64_t now)
{
    uint64_t gap = __atomic_load_n(&session->gap_ns, __ATOMIC_RELAXED);
    if (t->count.done || gap / GAP_GROWN_TIMES <= t->gap_ns || t->planned_ns < t->stratum_ns)
        return 0;
    t->planned_ns = t->stratum_ns + scaled(t->planned_ns - t->stratum_ns, gap, t->gap_ns);
    t->gap_ns = gap;
    t->late = 0;
    if (t->planned_ns < now + AGAIN_NS)
        return 0;
    t->met = 0;
    int exactly = t->exactly;
    t->exactly = 0;
    wait_until_planned(t, now, exactly);
    return 1;
}

int thread_is_due(struct thread *t, int event)
{
    if (agent_stays()) /* who is to stay in a burst is taken back by whatever comes */
        return 1;
    uint64_t now = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (is_put_off(t, now))
        return 0;
    if (!event)
        return 1;
    if (!t->trigger) /* it was given up meanwhile */
        return 0;
    if (event_is_too_dear(t, now)) {
        wait_until_planned(t, now, 0);
        return 0;
    }
    uint64_t tick_ns = __atomic_load_n(&t->trigger->tick_ns, __ATOMIC_ACQUIRE);
    if (tick_ns == 0 || t->exactly)
        return __atomic_load_n(&t->trigger->served, __ATOMIC_ACQUIRE) ==
               __atomic_load_n(&t->trigger->wanted, __ATOMIC_RELAXED);
    if (!tick_is_due(t, tick_ns, now))
        return 0;
    t->met = 1;
    return 1;
}

/* again: what was planned is to count as met. */
static void arm(struct thread *t, int again)
{
    if (agent_off || session->mode == WIRE_MODE_IDLE)
        return;
    /* Who stays needs no interrupt while its burst runs; its end comes by here again. */
    uint64_t gap = agent_stays()
                       ? t->state == THREAD_BURST ? NEVER_NS : REENTER_NS
                       : __atomic_load_n(&session->gap_ns, __ATOMIC_RELAXED); /* the budget changes it */
    if (!t->count.done)
        t->gap_ns = gap;
    uint64_t now = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t from = again && t->planned_ns < now ? t->planned_ns : t->entered_ns ? t->entered_ns : now;
    uint64_t at = place_after(t, from, gap);
    while (again && at < now) /* it was met in the same call, for which there is no burst either */
        at = place_after(t, at, gap);
    t->entered_ns = 0;
    t->stratum_ns = at / gap * gap;
    /* The burst took so long that its next is over already: else slow code would be met too seldom. */
    t->late = !again && at < now + AGAIN_NS;
    if (t->late)
        at = now + AGAIN_NS;
    t->exactly = t->count.done || t->fresh;
    if (t->count.done) /* a stretch was cut short, which must not cost the burst: it comes a little later */
        at = now + AGAIN_NS + random_next(&t->random) % AGAIN_NS;
    if (t->fresh) { /* also the one that the thread starts in */
        at = now + random_next(&t->random) % gap;
        t->stratum_ns = now;
        t->fresh = 0;
    }
    t->planned_ns = at;
    t->met = 0;
    wait_until_planned(t, now, t->exactly);
}

void thread_arm(struct thread *t)
{
    arm(t, 0);
}

void thread_arm_again(struct thread *t)
{
    arm(t, 1);
}

void thread_trigger(struct thread *t)
{
    /* Not a negative code: beyond RLIMIT_SIGPENDING, all else that such a signal says is lost. */
    siginfo_t info = {.si_signo = SIGTRAP, .si_code = SI_USER, .si_errno = THREAD_TRIGGERED};
    info.si_value.sival_ptr = session;
    sys4(SYS_rt_tgsigqueueinfo, process_id, t->tid, SIGTRAP, &info);
}

int thread_attach(struct thread *t)
{
    t->tid = (uint32_t)sys0(SYS_gettid);
    t->state = THREAD_NATIVE;
    t->buffer = -1;
    t->ending = 0;
    t->dispatching = t->has_dispatched = t->mini = t->trigger_waits = t->watch_hold = 0;
    t->inside = t->must_return = t->enter_after_step = t->step_trap_blocked = t->makes_known =
        t->step_executes = 0;
    t->steps_alone = 0;
    t->is_native = 0;
    t->known_cpu_ns = 0;
    t->refused = WIRE_NATIVE_OFF;
    t->selector = 0;
    t->fresh = 1;
    t->entered_ns = 0;
    t->count = (struct counting){0};
    memset(t->strings, 0, sizeof t->strings); /* another thread's, or the parent's */
    t->random = session->seed ^ (uint64_t)__atomic_add_fetch(&thread_number, 1, __ATOMIC_RELAXED) << 32;
    random_next(&t->random);
    stack_t before;
    sys2(SYS_sigaltstack, 0, &before);
    t->app_altstack = before.ss_sp == t->signal_stack ? (stack_t){.ss_flags = SS_DISABLE} : before;
    if (sys_failed(sys2(SYS_sigaltstack, &t->kernel_altstack[1], 0)) || register_thread(t))
        return -1;
    watch_attached(t);
    create_timer(t);
    claim_trigger(t);
    count_add(&proc->count.threads, 1);
    pthread_setspecific(exit_key, t);
    if (agent_stays())
        thread_trigger(t);
    else
        thread_arm(t);
    return 0;
}

static void put_back(struct thread *t)
{
    take_lock();
    t->next_free = free_threads;
    free_threads = t;
    drop_lock();
}

void thread_leaves_burst(const struct thread *t)
{
    if (__atomic_load_n(&t->state, __ATOMIC_RELAXED) != THREAD_NATIVE)
        sys1(SYSCALL_LEAVE, LEAVE_MARK);
}

void thread_detach(struct thread *t)
{
    if (child_is_strange()) /* a copy of that thread */
        return;
    t->ending = 1;
    if (t->enter_after_step)
        burst_native_stepped();
    t->enter_after_step = 0;
    thread_leaves_burst(t);
    if (t->state != THREAD_NATIVE) { /* cancelled in a call */
        watch_quiet(t);
        burst_left(t);
        watch_quiet_end(t);
    }
    native_over(t);
    native_published(t);
    int stays = watch_detached(t);
    thread_leaves_burst(t);
    if (t->has_timer)
        sys1(SYS_timer_delete, t->timer);
    t->has_timer = 0;
    count_thread_gone(t);
    release_trigger(t);
    t->trigger = NULL;
    if (stays) /* its calls are still diverted, to the very last */
        return;
    stack_t none = {.ss_flags = SS_DISABLE};
    sys2(SYS_sigaltstack, t->app_altstack.ss_flags & SS_DISABLE ? &none : &t->app_altstack, 0);
    thread_forget(t);
}

void thread_forget(struct thread *t)
{
    take_lock();
    for (uint32_t i = t->tid % TABLE, n = 0; n < TABLE && table[i].tid; i = (i + 1) % TABLE, n++)
        if (table[i].tid == t->tid) {
            if (table[i].thread == t) /* else its id is another's by now */
                __atomic_store_n(&table[i].tid, GONE, __ATOMIC_RELEASE);
            break;
        }
    drop_lock();
    put_back(t);
}

void threads_forked(void)
{
    struct thread *t = pthread_getspecific(exit_key);
    lock = 0;
    attaching = 0;
    for (uint32_t i = next_entry(0); i < TABLE; i = next_entry(i + 1))
        table[i].tid = 0;
    free_threads = NULL;
    if (!t)
        return;
    t->has_timer = t->has_count_timer = 0; /* timers are not inherited */
    stack_t altstack = t->app_altstack;
    thread_attach(t);
    t->app_altstack = altstack;
}

int threads_are_native(void)
{
    struct timespec moment = {0, 1000000};
    struct thread *self = thread_self();
    for (int waited = 0; waited < RETIRE_BURSTS_MS; waited++) {
        if (burst_none() && !watch_calls_last(self))
            return 1;
        sys2(SYS_nanosleep, &moment, 0);
    }
    return 0;
}

/* Nonzero: no thread is about to be attached; none will be, as the agent is off. */
static int none_attaches(void)
{
    struct timespec moment = {0, 1000000};
    for (int waited = 0; waited < RETIRE_MS; waited++) {
        if (__atomic_load_n(&attaching, __ATOMIC_SEQ_CST) == 0)
            return 1;
        sys2(SYS_nanosleep, &moment, 0);
    }
    return 0;
}

/* It may have seen who wanted a trigger before that changed its mind (open_held in the collector). */
static int is_closed(const struct wire_trigger *trigger)
{
    return __atomic_load_n(&trigger->hold, __ATOMIC_SEQ_CST) != WIRE_TRIGGER_HELD &&
           __atomic_load_n(&trigger->armed, __ATOMIC_SEQ_CST) == 0;
}

/* Nonzero: so the collector says, or it is gone, and its events with it. */
static int events_are_closed(void)
{
    struct timespec moment = {0, 1000000};
    uint32_t waited = 0;
    for (uint32_t i = 0; i < WIRE_MAX_TRIGGERS;)
        if (is_closed(&proc->trigger[i]))
            i++;
        else if (collector_gone())
            break;
        else if (waited++ == RETIRE_MS)
            return 0;
        else
            sys2(SYS_nanosleep, &moment, 0);
    return 1;
}

uint64_t thread_cpu_ns(uint32_t tid)
{
    struct timespec ts;
    long clock = (long)(~tid << 3 | 6); /* as pthread_getcpuclockid has it */
    if (sys_failed(sys2(SYS_clock_gettime, (int)clock, &ts)))
        return UINT64_MAX;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * A perf event's signal is sent on the way back to user mode. From a thread that lost its processor on that
 * way it comes when the thread runs again, though the event be closed by then. Nonzero: all others have run
 * since, or sleep.
 */
static int events_are_over(void)
{
    struct timespec moment = {0, 1000000};
    uint32_t self = (uint32_t)sys0(SYS_gettid), waited = 0;
    for (uint32_t i = next_entry(0); i < TABLE; i = next_entry(i + 1))
        if (table[i].tid != 0 && table[i].tid != GONE)
            table[i].thread->retired_cpu_ns = thread_cpu_ns(table[i].tid);
    for (uint32_t i = next_entry(0); i < TABLE;) {
        uint32_t tid = __atomic_load_n(&table[i].tid, __ATOMIC_ACQUIRE);
        char state = 0;
        if (tid == 0 || tid == GONE || tid == self ||
            thread_cpu_ns(tid) - table[i].thread->retired_cpu_ns >= RAN_SINCE_NS ||
            ((state = task_state(tid)) != 'R' && state != 0))
            i = next_entry(i + 1);
        else if (waited++ == (state ? RETIRE_MS : RETIRE_BURSTS_MS))
            return 0;
        else
            sys2(SYS_nanosleep, &moment, 0);
    }
    return 1;
}

int threads_retire(int *silent)
{
    *silent = none_attaches();
    take_lock();
    for (uint32_t i = next_entry(0); i < TABLE; i = next_entry(i + 1))
        if (table[i].tid != 0 && table[i].tid != GONE) {
            if (table[i].thread->has_timer)
                sys1(SYS_timer_delete, table[i].thread->timer);
            table[i].thread->has_timer = 0;
            count_thread_gone(table[i].thread);
            release_trigger(table[i].thread);
        }
    drop_lock();
    *silent = *silent && events_are_closed() && events_are_over();
    return threads_are_native();
}

static void at_thread_exit(void *thread)
{
    if (!agent_gone) /* its structure stays: the kernel may have its signal stack */
        thread_detach(thread);
}

int threads_init(void)
{
    has_key = pthread_key_create(&exit_key, at_thread_exit) == 0;
    table = own_map(NULL, TABLE * sizeof *table, OWN_DATA);
    return has_key && table ? 0 : -1;
}

static struct thread *begin(void *thread)
{
    __atomic_fetch_add(&attaching, 1, __ATOMIC_SEQ_CST); /* whoever turns the agent off waits for it */
    if (!__atomic_load_n(&agent_off, __ATOMIC_SEQ_CST))
        thread_attach(thread);
    else
        watch_not_attached(thread);
    __atomic_fetch_sub(&attaching, 1, __ATOMIC_SEQ_CST);
    return thread;
}

static void *start(void *thread)
{
    struct thread *t = begin(thread);
    return t->start_routine(t->start_argument);
}

static int start_c11(void *thread)
{
    struct thread *t = begin(thread);
    return t->start_c11(t->start_argument);
}

/* How large the stack of a thread made with these attributes is. Nonzero: they cannot be read. */
static int stack_bytes(const pthread_attr_t *attributes, size_t *bytes)
{
    pthread_attr_t its, usual;
    *bytes = 0;
    if (attributes) {
        if (safe_copy(&its, attributes, sizeof its))
            return -1;
        pthread_attr_getstacksize(&its, bytes);
    } else if (pthread_attr_init(&usual) == 0) {
        pthread_attr_getstacksize(&usual, bytes);
        pthread_attr_destroy(&usual);
    }
    return 0;
}

/* The read opens a closed page. */
static int is_writable(const void *p, size_t bytes)
{
    char byte;
    const char *first = p, *last = first + bytes - 1;
    return !safe_copy(&byte, first, 1) && !safe_copy(&byte, last, 1) && !safe_probe(first, 1) &&
           !safe_probe(last, 1);
}

/* For a thread that is about to be made; NULL: it goes unprofiled, or libc's function faults where it reads
 * the attributes or writes the id, before there is a thread: that fault is the target's, and finds nothing
 * begun. */
static struct thread *prepare(const pthread_attr_t *attributes, const void *id, size_t id_bytes,
                              struct thread *self, void *argument)
{
    size_t bytes;
    /* A library that was loaded may have brought it: its start makes a thread, too. */
    int strange = child_is_strange();
    if (!agent_off && session && !strange && surroundings_go())
        go_for_good(WIRE_OFF_GO);
    if (agent_off || !session || strange || stack_bytes(attributes, &bytes) || !is_writable(id, id_bytes))
        return NULL;
    struct thread *t = thread_new();
    if (t) {
        watch_starts(self, t, bytes);
        t->hidden = self ? self->hidden : 0;
        t->hidden_beside = self ? self->hidden_beside : 0;
        t->start_argument = argument;
    }
    return t;
}

/* The thread that it makes meanwhile will be attached. */
static void know_made(struct thread *self, int more)
{
    if (self)
        self->makes_known += more;
}

EXPORT int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*routine)(void *),
                          void *argument)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!next)
        next = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
            RTLD_NEXT, "pthread_create");
    if (!next)
        return EAGAIN;
    struct thread *self = agent_off || !session ? NULL : thread_self(),
                  *t = prepare(attributes, id, sizeof *id, self, argument);
    if (!t)
        return next(id, attributes, routine, argument);
    t->start_routine = routine;
    know_made(self, 1);
    int result = next(id, attributes, start, t);
    know_made(self, -1);
    watch_started(self, t, result != 0);
    if (result)
        put_back(t);
    return result;
}

EXPORT int thrd_create(thrd_t *id, thrd_start_t routine, void *argument)
{
    static int (*next)(thrd_t *, thrd_start_t, void *);
    if (!next)
        next = (int (*)(thrd_t *, thrd_start_t, void *))dlsym(RTLD_NEXT, "thrd_create");
    if (!next)
        return thrd_error;
    struct thread *self = agent_off || !session ? NULL : thread_self(),
                  *t = prepare(NULL, id, sizeof *id, self, argument);
    if (!t)
        return next(id, routine, argument);
    t->start_c11 = routine;
    know_made(self, 1);
    int result = next(id, start_c11, t);
    know_made(self, -1);
    watch_started(self, t, result != thrd_success);
    if (result != thrd_success)
        put_back(t);
    return result;
}
