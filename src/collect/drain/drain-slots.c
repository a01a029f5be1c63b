/* SPDX-License-Identifier: Apache-2.0 */
/* drain-slots.c - processes that begin and end, and the profile's data on each. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/read-text.h"
#include "collect/drain/drain-internal.h"
#include "collect/launch/process-time.h"
#include "profile/names.h"

void drain_store_modules(struct drain *d, struct slot *slot)
{
    uint32_t n = __atomic_load_n(&slot->proc->nmodules, __ATOMIC_ACQUIRE);
    for (; slot->modules < n && slot->modules < WIRE_MAX_MODULES && storing(d); slot->modules++) {
        struct wire_module m = slot->proc->module[slot->modules];
        struct error err;
        m.path[sizeof(m.path) - 1] = '\0';
        if (profile_add_module(d->profile, slot->process.id, m.start, m.end, m.file_offset, m.path, &err) < 0)
            drain_set_trouble(d, &err);
    }
}

static void store_counter(struct drain *d, const struct slot *slot, const char *name, uint64_t value)
{
    struct error err;
    if (storing(d) && profile_set_counter(d->profile, slot->process.id, name, value, &err) < 0)
        drain_set_trouble(d, &err);
}

/* Members of wire_counters that are stored, each as a counter of its name. */
static const struct {
    const char *name;
    size_t offset;
} counters[] = {
#define COUNTER(name)                               \
    {                                               \
#name, offsetof(struct wire_counters, name) \
    }
    COUNTER(triggers),
    COUNTER(ticks),
    COUNTER(bursts),
    COUNTER(skipped_buffer),
    COUNTER(skipped_code),
    COUNTER(skipped_busy),
    COUNTER(skipped_gs),
    COUNTER(stepped),
    COUNTER(syscalls),
    COUNTER(blocks),
    COUNTER(insns),
    COUNTER(flushes),
    COUNTER(threads),
    COUNTER(translate_ns),
    COUNTER(stalled_ns),
    COUNTER(cpu_ns),
    COUNTER(burst_cpu_ns),
    COUNTER(watch_faults),
    COUNTER(watch_hits),
    COUNTER(watch_probes),
    COUNTER(watch_calls),
    COUNTER(watch_unasked),
    COUNTER(watch_pauses),
    COUNTER(watch_line_ns),
    COUNTER(watch_refs),
    COUNTER(watch_unseen_ns),
    COUNTER(watch_cpu_ns),
    COUNTER(counts),
    COUNTER(count_refs),
    COUNTER(count_string_refs),
    COUNTER(all_refs),
    COUNTER(count_cpu_ns),
    COUNTER(count_agent_ns),
    COUNTER(count_blocks),
    COUNTER(count_turns),
    COUNTER(memory_bytes),
    COUNTER(disabled),
    COUNTER(start_cpu_ns),
    COUNTER(unknown_threads),
    COUNTER(skipped_handlers),
    COUNTER(unknown_children),
#undef COUNTER
};

void drain_store_counters(struct drain *d, const struct slot *slot)
{
    const struct wire_proc *proc = slot->proc;
    if (!storing(d))
        return;
    /* Why lines of the process are not watched any more: enum wire_unwatched. */
    store_counter(d, slot, "unwatched", proc->watching.off);
    if (slot->process.objects != NULL) {
        store_counter(d, slot, "heap_replaced", proc->heap.replaced != 0);
        store_counter(d, slot, "heap_lost", proc->heap.lost);
    }
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        uint64_t value;
        memcpy(&value, (const char *)&proc->count + counters[i].offset, sizeof(value));
        store_counter(d, slot, counters[i].name, value);
    }
    for (uint32_t end = 0; end < WIRE_END_COUNT; end++) {
        char name[64];
        snprintf(name, sizeof(name), "ended_%s", profile_end_name(end));
        if (slot->process.ended[end] != 0)
            store_counter(d, slot, name, slot->process.ended[end]);
    }
    if (proc->ticks.lost != 0)
        store_counter(d, slot, "ticks_lost", proc->ticks.lost);
    if (slot->lost != 0)
        store_counter(d, slot, "lost_buffers", slot->lost);
    if (slot->process.bad_records != 0)
        store_counter(d, slot, "bad_records", slot->process.bad_records);
}

/* A copy: the target may change its own. */
static void copy_exe(const struct wire_proc *proc, char exe[sizeof(proc->exe)])
{
    memcpy(exe, proc->exe, sizeof(proc->exe));
    exe[sizeof(proc->exe) - 1] = '\0';
}

int drain_has_ended(const struct slot *slot)
{
    char text[1024];
    if (slot->pidfd >= 0) { /* a microsecond; the rest takes fifty */
        struct pollfd poll_end = {.fd = slot->pidfd, .events = POLLIN};
        return poll(&poll_end, 1, 0) > 0;
    }
    if (kill((pid_t)slot->pid, 0) != 0 && errno == ESRCH)
        return 1;
    ssize_t n = read_text(text, sizeof(text), "/proc/%u/stat", slot->pid);
    if (n < 0)
        return n == -ENOENT;
    const char *after = strrchr(text, ')'); /* after the name, which may contain anything */
    char state = '?';
    long threads = 0;
    if (after == NULL ||
        sscanf(after + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state,
               &threads) != 2)
        return 0;
    return (state == 'Z' || state == 'X') && threads <= 1;
}

int drain_is_replaced(const struct drain *d, const struct slot *slot)
{
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        const struct slot *other = &d->slots[i];
        if (other != slot && other->proc != NULL && other->pid == slot->pid &&
            other->start_ns > slot->start_ns)
            return 1;
    }
    return 0;
}

/* Whether there is anything of the process to reduce. */
static int has_recorded(const struct drain *d, const struct slot *slot)
{
    const struct wire_proc *proc = slot->proc;
    if (__atomic_load_n(&proc->ticks.ring[0].number, __ATOMIC_ACQUIRE) != 0)
        return 1;
    for (uint32_t i = 0; i < d->session->layout.nbuffers; i++)
        if (__atomic_load_n(&proc->buf_state[i], __ATOMIC_ACQUIRE) != WIRE_BUF_FREE)
            return 1;
    return 0;
}

/* The process of which fork has made the one in slot i; NULL: none, or it is not known any more. Not by its
 * number alone: it may have executed another program since, which has the same. */
static const struct reduce_process *copied_process(const struct drain *d, uint32_t i)
{
    uint32_t from = __atomic_load_n(&d->session->map->copied_slot[i], __ATOMIC_RELAXED);
    if (from == 0 || from > d->session->layout.nslots || from - 1 == i)
        return NULL;
    const struct slot *slot = &d->slots[from - 1];
    return slot->proc != NULL && slot->pid == d->slots[i].proc->copied_pid ? &slot->process : NULL;
}

/*
 * CPU time of a process goes on when it executes another program, which gets a slot of its own. Returns what
 * it had used before this one: its CPU time now, less what it can have used since this program began. The
 * slot of the program before gets no more than that.
 */
static uint64_t cpu_before(struct drain *d, const struct slot *slot)
{
    uint64_t now_ns = monotonic_ns(), cpu_ns, before_ns = 0;
    uint64_t threads = __atomic_load_n(&slot->proc->count.threads, __ATOMIC_RELAXED);
    struct slot *last = NULL;
    int known = process_cpu_ns((pid_t)slot->pid, &cpu_ns) == 0;
    uint64_t most = now_ns > slot->start_ns ? (now_ns - slot->start_ns) * (threads > 0 ? threads : 1) : 0;
    if (known && cpu_ns > most + AGENT_TIME_LOADER_NS)
        before_ns = cpu_ns - most - AGENT_TIME_LOADER_NS;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        struct slot *other = &d->slots[i];
        if (other != slot && other->proc != NULL && other->pid == slot->pid &&
            other->start_ns < slot->start_ns && (last == NULL || other->start_ns > last->start_ns))
            last = other;
    }
    if (last == NULL)
        return before_ns;
    last->replaced = 1;
    if (!known || (cpu_ns >= last->cpu_ns && last->cpu_ns > before_ns))
        before_ns = last->cpu_ns;
    last->cpu_ns = before_ns > last->cpu_ns ? before_ns : last->cpu_ns;
    return before_ns;
}

/* Not done for a process that has ended and recorded nothing: it takes most of the time that a short process
 * costs. */
static void begin_reducing(struct drain *d, struct slot *slot)
{
    struct wire_proc *proc = slot->proc;
    uint32_t pid = slot->pid, i = (uint32_t)(slot - d->slots);
    struct error err;
    struct decode_source source = source_of(d, proc);
    if (d->reducer != NULL && reduce_process_init(d->reducer, &slot->process, &source, proc->module,
                                                  &proc->nmodules, pid, &err) < 0)
        drain_set_trouble(d, &err);
    if (slot->process.decoder != NULL && d->session->map->heap != 0 &&
        reduce_process_objects(d->reducer, &slot->process, proc, pid, copied_process(d, i), &err) < 0)
        drain_set_trouble(d, &err);
    if (slot->process.decoder != NULL && d->session->map->stacks != 0 &&
        reduce_process_paths(d->reducer, &slot->process, proc->module, &proc->nmodules, pid, &err) < 0)
        drain_set_trouble(d, &err);
    if (d->session->map->perf)
        slot->triggers =
            triggers_new(slot->process.clock != NULL ? d->counters : NULL, slot->process.clock, proc->cookie);
    if (d->watch.watches != NULL && slot->process.decoder != NULL)
        slot->watcher = watcher_new(proc, pid, &d->watch);
    if (slot->watcher != NULL)
        watcher_limit(slot->watcher, d->live, d->allowance_ns);
}

void drain_adopt(struct drain *d, uint32_t i)
{
    struct slot *slot = &d->slots[i];
    struct wire_proc *proc = session_map_slot(d->session, i);
    struct error err;
    if (proc == NULL) {
        error_set(&err, -ENOMEM, "cannot map the memory shared with a process: %s", strerror(errno));
        drain_set_trouble(d, &err);
        return;
    }
    uint32_t pid = __atomic_load_n(&proc->pid, __ATOMIC_ACQUIRE);
    if (pid == 0 || pid > INT_MAX) { /* not filled in yet */
        munmap(proc, d->session->layout.slot_bytes);
        return;
    }
    *slot = (struct slot){.proc = proc, .pid = pid, .start_ns = proc->start_ns, .expected_seq = 1};
    slot->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    agent_time_begin(&slot->agent, proc, (pid_t)pid);
    slot->before_ns = cpu_before(d, slot);
    d->news = 1;
    if (!drain_has_ended(slot) || has_recorded(d, slot))
        begin_reducing(d, slot);
    if (storing(d)) {
        char exe[sizeof(proc->exe)];
        copy_exe(proc, exe);
        uint64_t start_ns = slot->start_ns > d->start_ns ? slot->start_ns - d->start_ns : 0;
        if (profile_add_process(d->profile, pid, proc->ppid, exe, start_ns, &slot->process.id, &err) < 0)
            drain_set_trouble(d, &err);
    }
    if (d->reducer != NULL &&
        reduce_process_began(d->reducer, &slot->process, pid, slot->start_ns, slot->before_ns) < 0) {
        error_set(&err, -ENOMEM, "out of memory for the windows of a process");
        drain_set_trouble(d, &err);
    }
}

/* Whether every reference was to be recorded or counted. */
static int stays(const struct drain *d)
{
    return d->mode == WIRE_MODE_FULL || d->mode == WIRE_MODE_COUNT;
}

void drain_drop(struct drain *d, struct slot *slot, int gone)
{
    struct error err;
    char exe[sizeof(slot->proc->exe)];
    drain_store_modules(d, slot);
    if (slot->watcher != NULL && watcher_finish(slot->watcher, slot->cpu_ns, gone, &err) < 0)
        drain_set_trouble(d, &err);
    drain_store_counters(d, slot);
    copy_exe(slot->proc, exe);
    unprofiled_add(&d->unprofiled, slot->proc, exe);
    refusals_add(&d->refusals, slot->proc, &slot->blocked);
    d->unknown_threads_ns += slot->unknown.ns;
    d->unknown_children += slot->proc->count.unknown_children;
    if (stays(d) && missed_add(&d->missed, slot->proc, &slot->agent, slot->lost,
                               storing(d) ? d->profile : NULL, slot->process.id, &err) < 0)
        drain_set_trouble(d, &err);
    d->burst_cpu_ns += drain_profiling_ns(d, &slot->proc->count);
    drain_add_counting(d, &slot->proc->count, &d->ended_counting);
    d->counted += slot->proc->count.count_refs + slot->proc->count.count_string_refs;
    d->counted_strings += slot->proc->count.count_string_refs;
    d->all_counted += slot->proc->count.all_refs;
    d->ended_cpu_ns += slot_cpu_ns(slot);
    d->agent_ns += gone ? slot->agent.ns : 0;
    d->assumed_ns += gone ? slot->agent.assumed_ns : 0;
    d->ended_bursts += slot->proc->count.bursts;
    if (slot->proc->count.memory_bytes > d->memory_bytes)
        d->memory_bytes = slot->proc->count.memory_bytes;
    d->ended_watch_ns += slot->proc->count.watch_cpu_ns;
    d->ended_start_ns += slot->proc->count.start_cpu_ns;
    d->lost += slot->lost;
    triggers_free(slot->triggers); /* it refers to the process' clock */
    const struct code_process code = {.modules = slot->proc->module,
                                      .nmodules = __atomic_load_n(&slot->proc->nmodules, __ATOMIC_ACQUIRE),
                                      .pid = slot->pid};
    if (d->reducer != NULL && slot->process.decoder != NULL && storing(d) &&
        reduce_process_code(d->reducer, &slot->process, d->profile, &code, &err) < 0)
        drain_set_trouble(d, &err);
    if (d->reducer != NULL && slot->process.decoder != NULL)
        reduce_process_clear(d->reducer, &slot->process);
    if (slot->pidfd >= 0)
        close(slot->pidfd);
    d->news = 1;
    references_free(slot->references);
    munmap(slot->proc, d->session->layout.slot_bytes);
    *slot = (struct slot){0};
}
