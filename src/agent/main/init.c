/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - starts the agent in a process, and again in its forked children. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include "agent/burst/burst.h"
#include "agent/clock/clock.h"
#include "agent/code/code.h"
#include "agent/intercept/intercept.h"
#include "agent/interpose/interpose.h"
#include "agent/life/life.h"
#include "agent/main/main.h"
#include "agent/signals/signals.h"
#include "agent/sys/files.h"
#include "agent/sys/own.h"
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"
#include "agent/watch/watch.h"
#include "base/random.h"

/* Through the descriptor if there is one; a forked child has none. */
static uint8_t *map_slot(int fd, uint32_t i)
{
    uint64_t at = session->slot_offset + i * session->slot_bytes;
    return fd >= 0 ? own_map_session(fd, at, session->slot_bytes)
                   : own_map_session_again(at, session->slot_bytes);
}

/* parent: if it is a forked child, else NULL. */
static void describe_process(const struct wire_proc *parent)
{
    proc->copied_pid = parent ? parent->pid : 0;
    proc->start_ns = sys_clock_ns(CLOCK_MONOTONIC);
    proc->ppid = (uint32_t)sys0(SYS_getppid);
    long n = sys3(SYS_readlink, "/proc/self/exe", proc->exe, sizeof proc->exe - 1);
    proc->exe[n > 0 ? n : 0] = 0;
    uint64_t state = proc->start_ns ^ (uint64_t)process_id << 40 ^ session->seed;
    proc->cookie = random_splitmix64(&state);
    proc->mapped_at = (uint64_t)proc;
    proc->stack_top = getauxval(AT_EXECFN); /* the last string that the kernel puts there */
    __atomic_store_n(&proc->pid, process_id, __ATOMIC_RELEASE);
}

/* The number of the process' slot. */
static uint32_t slot_number;

/* It found no free slot; its children are not recorded either. */
static int refused;

/* In a child of such a process. */
static void count_refused(void)
{
    if (refused && !session->stop)
        __atomic_fetch_add(&session->refused_slots, 1, __ATOMIC_SEQ_CST);
}

/* Claims a free slot and maps it. fd: of the session, or -1 in a forked child. */
static int claim_free_slot(int fd)
{
    const struct wire_proc *parent = proc;
    for (uint32_t i = 0; i < session->nslots; i++) {
        uint64_t *taken = &session->slots_taken[i / 64];
        if (__atomic_load_n(taken, __ATOMIC_RELAXED) >> i % 64 & 1)
            continue;
        uint8_t *p = map_slot(fd, i);
        if (!p)
            return -WIRE_OFF_MEMORY;
        struct wire_proc *candidate = (struct wire_proc *)(void *)p;
        uint32_t expected = WIRE_PROC_FREE;
        if (__atomic_compare_exchange_n(&candidate->state, &expected, WIRE_PROC_LIVE, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            __atomic_store_n(&session->copied_slot[i], fd < 0 ? slot_number + 1 : 0, __ATOMIC_RELAXED);
            slot_number = i;
            __atomic_fetch_or(taken, UINT64_C(1) << i % 64, __ATOMIC_SEQ_CST);
            slot = p;
            proc = candidate;
            own_begin(parent);
            burst_attached();
            if (!proc->template_used)
                proc->template_used = 8;
            describe_process(fd < 0 ? parent : NULL);
            __atomic_fetch_add(&session->attached, 1, __ATOMIC_SEQ_CST);
            if (i >= session->nslots / SLOTS_RING_FROM)
                doorbell();
            return 0;
        }
        sys2(SYS_munmap, p, session->slot_bytes);
    }
    return -WIRE_OFF_SLOTS;
}

/* Whether a process may wait for a slot: not if the processes in them all run, as somebody has found out not
 * long ago. */
static int may_wait_for_slot(uint64_t now_ns)
{
    uint64_t vain_ns = __atomic_load_n(&session->waited_vain_ns, __ATOMIC_RELAXED);
    return !session->stop && (!vain_ns || now_ns - vain_ns > SLOT_WAIT_PAUSE_NS) && !collector_gone();
}

/* Claims a slot. If all are taken, most may be of processes that have ended: the collector frees these. */
static int claim_slot(int fd)
{
    static const struct timespec nap = {.tv_nsec = SLOT_NAP_NS};
    int why = claim_free_slot(fd);
    uint64_t began_ns = sys_clock_ns(CLOCK_MONOTONIC), waited_ns = 0;
    uint64_t most_ns = agent_records_all() && !session->begins_full ? SLOT_WAIT_FULL_NS : SLOT_WAIT_NS;
    int waits = why == -WIRE_OFF_SLOTS && may_wait_for_slot(began_ns);
    while (why == -WIRE_OFF_SLOTS && waits && waited_ns < most_ns) {
        __atomic_store_n(&session->slot_wanted, 1, __ATOMIC_SEQ_CST);
        doorbell();
        sys2(SYS_nanosleep, &nap, NULL);
        why = claim_free_slot(fd);
        waited_ns = sys_clock_ns(CLOCK_MONOTONIC) - began_ns;
    }
    if (why != -WIRE_OFF_SLOTS)
        return why;
    if (waits) /* and others need not */
        __atomic_store_n(&session->waited_vain_ns, began_ns + waited_ns, __ATOMIC_RELAXED);
    refused = 1;
    count_refused();
    return why;
}

/* In another PID namespace, the process numbers that the agent passes on would make the collector query and
 * signal the wrong processes. */
static int in_other_pid_namespace(void)
{
    int foreign = surroundings_other_pid_namespace();
    if (foreign)
        __atomic_fetch_add(&session->refused_pids, 1, __ATOMIC_SEQ_CST);
    return foreign;
}

/* CPU time that the start takes in every program, however short it runs. The caller is the only thread. */
static void record_start_cost(uint64_t began_ns)
{
    proc->count.start_cpu_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

/* It is a child by vfork that forks, with signal dispositions of its own. Under the lock that
 * surroundings_fork_begins takes. */
static int untracked_forks;

static void fork_begins(void)
{
    files_fork_begins();
    surroundings_fork_begins();
    process_fork_begins();
    untracked_forks = process_is_untracked();
}

static void fork_ends(void)
{
    process_fork_ends();
    surroundings_fork_ends();
    files_fork_ends();
}

/* In a forked child, which cannot use its parent's slot. */
static void forked(void)
{
    process_fork_ends();
    surroundings_forked(threads_made() > 1);
    if (!session)
        return;
    count_refused();
    uint64_t began_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (!agent_gone)
        process_id = (uint32_t)sys0(SYS_getpid);
    const struct wire_proc *parent = proc;
    fork_in_child();
    watch_forked();
    if (agent_off || untracked_forks || !session->follow || session->stop || in_other_pid_namespace() ||
        claim_slot(-1)) {
        heap_forked(0);
        child_not_followed();
        return;
    }
    heap_forked(1);
    child_is_followed();
    burst_forked();
    rseq_forked();
    arch_forked();
    regions_forked(parent);
    threads_forked();
    record_start_cost(began_ns);
}

static struct wire_session *map_session(int fd)
{
    struct wire_session *s = own_map_session(fd, 0, WIRE_SESSION_BYTES);
    if (!s || (s->magic == WIRE_MAGIC && s->version == WIRE_VERSION))
        return s;
    sys2(SYS_munmap, s, WIRE_SESSION_BYTES);
    return NULL;
}

static const struct translator_ops translator_callbacks = {
    .system_call = syscall_in_burst,
    .counted = count_take,
    .marked = count_marked,
    .call_may_wait = count_pause,
    .call_begins = count_call_begins,
    .call_ends = count_call_ends,
    .work_begins = count_work_begins,
    .work_ends = count_work_ends,
};

static void describe_burst(const struct thread *t, struct wire_desc *d)
{
    d->app_cpu_ns = watch_burst_app_cpu_ns(t);
    d->thread_ns = watch_burst_thread_ns(t);
    d->translated_refs = watch_translated_refs();
}

static const struct burst_ops burst_callbacks = {
    .begins = watch_burst_begins,
    .entered = watch_burst_entered,
    .left = watch_burst_left,
    .describe = describe_burst,
    .prepare_question = watch_prepare_question,
    .await_answer = watch_await_answer,
    .probe_ended = watch_probe_ended,
};

/* What glibc's pthread_atfork calls. Other C libraries lack it (musl): the agent, which knows glibc's
 * functions, must do nothing there. Weak, since a loader refuses to start a program with a symbol that it
 * does not find. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static int start(int fd)
{
    int why = claim_slot(fd);
    if (refused)
        __register_atfork(NULL, NULL, count_refused, __dso_handle);
    if (why == 0)
        why = -(int)surroundings_unsupported();
    if (why != 0 || (why = arch_init(&translator_callbacks)) != 0)
        return why;
    burst_init(&burst_callbacks);
    rseq_init();
    count_init();
    children_init();
    signals_dispatch_init();
    if (threads_init() || signals_init() || __register_atfork(fork_begins, fork_ends, forked, __dso_handle))
        return -WIRE_OFF_TROUBLE;
    struct thread *t = thread_make();
    if (!t)
        return -WIRE_OFF_MEMORY;
    signals_adopt_mask(t, exec_hidden_signals());
    regions_read();
    agent_off = 0;
    agent_active = 1;
    heap_init();
    return thread_attach(t) ? -WIRE_OFF_MEMORY : 0;
}

__attribute__((constructor)) static void init(void)
{
    const char *name = getenv(WIRE_ENV);
    uint64_t began_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    exec_init();
    calls_find_next();
    threads_find_next();
    heap_find_next();
    if (!name || !*name || !__register_atfork)
        return;
    int fd = (int)sys3(SYS_open, name, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    session = map_session(fd);
    process_id = (uint32_t)sys0(SYS_getpid);
    if (session && !session->stop) {
        if (!session->follow)
            unsetenv(WIRE_ENV);
        int why = in_other_pid_namespace() ? -WIRE_OFF_SLOTS : start(fd);
        if (why) {
            agent_off = -why;
            if (proc) {
                proc->count.disabled = (uint64_t)-why;
                sys2(SYS_munmap, slot + session->template_offset,
                     session->slot_bytes - session->template_offset);
            }
        }
        if (proc)
            record_start_cost(began_ns);
    }
    sys1(SYS_close, fd);
}

/* At exit: the calling thread may have been native for a while. */
__attribute__((destructor)) static void account_last(void)
{
    struct thread *t = session && !agent_off ? thread_self() : NULL;
    if (t)
        native_ends(t);
}
