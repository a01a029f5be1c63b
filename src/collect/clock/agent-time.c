/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent-time.c - a process may lose the agent: it executes a program that is statically linked, or
 * without our environment, or as a user who may not open the session. Its CPU time still grows. So that time
 * counts only while the agent's memory is found in the process. Where this is not known for an interval, the
 * process is assumed to have run during all of it, on all of its threads.
 */
#include "collect/clock/agent-time.h"

#include <errno.h>
#include <stddef.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include "collect/launch/process-time.h"

int agent_there(const struct wire_proc *proc, pid_t pid)
{
    uint64_t there = 0, cookie_at = proc->mapped_at + offsetof(struct wire_proc, cookie);
    struct iovec local = {&there, sizeof(there)}, remote = {(void *)(uintptr_t)cookie_at, sizeof(there)};
    if (proc->mapped_at == 0)
        return -1;
    ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (n < 0 && errno != EFAULT)
        return -1;
    return n == sizeof(there) && there == proc->cookie;
}

/* Grows as long as the agent does anything. */
static uint64_t activity(const struct wire_proc *proc)
{
    const struct wire_counters *c = &proc->count;
    return c->triggers + c->ticks + c->bursts + c->counts + c->syscalls + proc->next_seq;
}

static uint64_t at_most(const struct agent_time *t, const struct wire_proc *proc, uint64_t now_ns)
{
    uint64_t threads = proc->count.threads, processors = (uint64_t)get_nprocs();
    threads = threads > processors ? processors : threads;
    return now_ns > t->at_ns ? (now_ns - t->at_ns) * (threads > 0 ? threads : 1) : 0;
}

void agent_time_begin(struct agent_time *t, const struct wire_proc *proc, pid_t pid)
{
    *t = (struct agent_time){.ns = AGENT_TIME_LOADER_NS,
                             .assumed_ns = AGENT_TIME_LOADER_NS,
                             .user_share = 1,
                             .at_ns = proc->start_ns,
                             .there = -1};
    agent_time_look(t, proc, pid);
}

void agent_time_look(struct agent_time *t, const struct wire_proc *proc, pid_t pid)
{
    uint64_t now_ns = monotonic_ns(), did = activity(proc), cpu_ns, most = at_most(t, proc, now_ns);
    int before = t->there, known = process_cpu_ns(pid, &cpu_ns) == 0;
    t->there = agent_there(proc, pid);
    if (known && (t->there == 1 || (t->there < 0 && before == 1))) { /* the latter: a zombie */
        uint64_t grown = cpu_ns > t->ns ? cpu_ns - t->ns : 0;
        t->ns += t->there == 1 || grown < most ? grown : most;
        if (proc->count.disabled != WIRE_OFF_NOT)
            t->user_share = process_user_share(pid);
    } else if ((t->there != 0 && before != 0) || did != t->activity) {
        /* It has ended, or may not be inspected, or is in another PID namespace (a container). */
        t->ns += most;
        t->assumed_ns += most;
    }
    t->at_ns = now_ns;
    t->activity = did;
}
