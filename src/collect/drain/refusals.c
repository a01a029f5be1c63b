/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/drain/refusals.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "collect/launch/process-time.h"

/* Without any burst in so much CPU time it is worth a look. */
#define QUIET_NS UINT64_C(10000000)

static int thread_blocks_trap(pid_t pid, const char *tid)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%d/task/%.12s/status", (int)pid, tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *mask = strstr(text, "\nSigBlk:");
    return mask != NULL && (strtoull(mask + 8, NULL, 16) >> (SIGTRAP - 1) & 1) != 0;
}

static int blocks_trap(pid_t pid)
{
    char path[32];
    int found = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; !found && tasks != NULL && (task = readdir(tasks)) != NULL;)
        found = task->d_name[0] != '.' && thread_blocks_trap(pid, task->d_name);
    if (tasks != NULL)
        closedir(tasks);
    return found;
}

void blocked_look(struct blocked *b, const struct wire_proc *proc, pid_t pid)
{
    uint64_t bursts = proc->count.bursts + proc->count.counts, cpu_ns;
    if (process_cpu_ns(pid, &cpu_ns) != 0)
        return;
    if (bursts == b->bursts && cpu_ns < b->cpu_ns + QUIET_NS)
        return;
    if (bursts == b->bursts && blocks_trap(pid))
        b->ns += cpu_ns - b->cpu_ns;
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
    r->blocked_ns += b->ns;
}

void refusals_reason(const struct refusals *r, uint64_t cpu_ns, char *text, size_t size)
{
    const struct {
        uint64_t n;
        const char *why;
    } reasons[] = {{r->gs, "threads use the GS register themselves"},
                   {r->code, "the code may change (JIT), or is not from a file"},
                   {r->busy, "a signal was pending, or it was not safe there"},
                   {r->buffer, "the recorder was behind"}};
    text[0] = '\0';
    if (4 * r->blocked_ns > cpu_ns) {
        snprintf(
            text, size,
            "SIGTRAP was blocked during %.2f s of the %.2f s of CPU time, by a system call that bypassed "
            "libc, and no burst can begin then",
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
