/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/drain/refusals.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/read-text.h"
#include "collect/launch/process-time.h"

/* The threads of a process are examined if it had no burst in so much CPU time. */
#define QUIET_NS UINT64_C(10000000)

static int thread_blocks_trap(pid_t pid, const char *tid)
{
    char text[4096];
    read_text(text, sizeof(text), "/proc/%d/task/%.12s/status", (int)pid, tid);
    const char *mask = strstr(text, "\nSigBlk:");
    return mask != NULL && (strtoull(mask + 8, NULL, 16) >> (SIGTRAP - 1) & 1) != 0;
}

static uint64_t thread_cpu_ns(pid_t pid, const char *tid)
{
    char text[128];
    read_text(text, sizeof(text), "/proc/%d/task/%.12s/schedstat", (int)pid, tid);
    return strtoull(text, NULL, 10);
}

static void list_blocked(struct blocked *b, pid_t pid)
{
    char path[32];
    b->n = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; b->n < BLOCKED_THREADS && tasks != NULL && (task = readdir(tasks)) != NULL;)
        if (task->d_name[0] != '.' && thread_blocks_trap(pid, task->d_name))
            b->thread[b->n++] =
                (struct blocked_thread){(pid_t)atoi(task->d_name), thread_cpu_ns(pid, task->d_name)};
    if (tasks != NULL)
        closedir(tasks);
}

void blocked_look(struct blocked *b, const struct wire_proc *proc, pid_t pid)
{
    uint64_t bursts = proc->count.bursts + proc->count.counts, cpu_ns;
    if (process_cpu_ns(pid, &cpu_ns) != 0)
        return;
    if (bursts == b->bursts && cpu_ns < b->cpu_ns + QUIET_NS)
        return;
    struct blocked last = *b;
    b->n = 0;
    if (bursts == b->bursts)
        list_blocked(b, pid);
    for (unsigned i = 0; i < b->n; i++)
        for (unsigned k = 0; k < last.n; k++)
            if (b->thread[i].tid == last.thread[k].tid && b->thread[i].cpu_ns > last.thread[k].cpu_ns)
                b->ns += b->thread[i].cpu_ns - last.thread[k].cpu_ns;
    b->bursts = bursts;
    b->cpu_ns = cpu_ns;
}

void refusals_add(struct refusals *r, const struct wire_proc *proc, const struct blocked *b)
{
    r->triggers += proc->count.triggers;
    r->buffer += proc->count.skipped_buffer;
    r->code += proc->count.skipped_code;
    r->busy += proc->count.skipped_busy;
    r->gs += proc->count.skipped_gs;
    r->handlers += proc->count.skipped_handlers;
    r->blocked_ns += b->ns;
}

void refusals_reason(const struct refusals *r, uint64_t cpu_ns, char *text, size_t size)
{
    const struct {
        uint64_t n;
        const char *why;
    } reasons[] = {{r->gs, "threads use the GS register themselves"},
                   {r->handlers,
                    "the program has installed its own handlers of SIGSEGV, SIGTRAP or SIGSYS by "
                    "system calls that bypassed libc (--mode full sees these)"},
                   {r->code, "the code may change (JIT), or is not from a file"},
                   {r->busy, "a signal was pending, or the moment was not safe"},
                   {r->buffer, "the recorder was too slow"}};
    text[0] = '\0';
    if (4 * r->blocked_ns > cpu_ns) {
        snprintf(text, size,
                 "SIGTRAP was blocked for at least %.2f s of the %.2f s of CPU time, by a system call that "
                 "bypassed libc, and no burst can begin meanwhile",
                 (double)r->blocked_ns * 1e-9, (double)cpu_ns * 1e-9);
        return;
    }
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (2 * reasons[i].n > r->triggers) {
            snprintf(text, size, "%llu of %llu triggers could not begin a burst: %s",
                     (unsigned long long)reasons[i].n, (unsigned long long)r->triggers, reasons[i].why);
            return;
        }
}
