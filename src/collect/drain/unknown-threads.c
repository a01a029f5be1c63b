/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/drain/unknown-threads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/read-text.h"

static int has_trigger(const struct wire_proc *proc, uint32_t tid)
{
    for (uint32_t i = 0; i < WIRE_MAX_TRIGGERS; i++)
        if (__atomic_load_n(&proc->trigger[i].tid, __ATOMIC_RELAXED) == tid)
            return 1;
    return 0;
}

static int has_timer(const struct wire_proc *proc, uint32_t tid)
{
    for (uint32_t i = 0; i < WIRE_MAX_TRIGGERS; i++)
        if (__atomic_load_n(&proc->timer_tid[i], __ATOMIC_RELAXED) == tid)
            return 1;
    return 0;
}

/* Threads claim a trigger when they are attached, and are listed when they give it up for a timer. */
static int is_known(const struct wire_proc *proc, uint32_t tid)
{
    return has_trigger(proc, tid) || has_timer(proc, tid);
}

/* Threads that work for the kernel inside the process (io_uring's) make no references of the program's. */
static int has_run_in_user_mode(pid_t pid, const char *tid)
{
    char text[512];
    unsigned long user_ticks = 0;
    if (read_text(text, sizeof(text), "/proc/%d/task/%.12s/stat", (int)pid, tid) <= 0)
        return 0;
    const char *after_name = strrchr(text, ')');
    return after_name != NULL &&
           sscanf(after_name, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu", &user_ticks) == 1 &&
           user_ticks != 0;
}

static void list(struct unknown_threads *u, const struct wire_proc *proc, pid_t pid)
{
    char text[128];
    u->n = 0;
    snprintf(text, sizeof(text), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(text);
    for (struct dirent *task; u->n < UNKNOWN_THREADS && tasks != NULL && (task = readdir(tasks)) != NULL;) {
        if (task->d_name[0] == '.' || is_known(proc, (uint32_t)atoi(task->d_name)) ||
            !has_run_in_user_mode(pid, task->d_name) ||
            read_text(text, sizeof(text), "/proc/%d/task/%.12s/schedstat", (int)pid, task->d_name) <= 0)
            continue;
        u->thread[u->n++] = (struct unknown_thread){(pid_t)atoi(task->d_name), strtoull(text, NULL, 10)};
    }
    if (tasks != NULL)
        closedir(tasks);
}

void unknown_threads_look(struct unknown_threads *u, const struct wire_proc *proc, pid_t pid)
{
    struct unknown_threads last = *u;
    u->n = 0;
    /* Threads have no trigger if there are no perf events, or none is left. */
    if (proc->count.disabled != WIRE_OFF_NOT || !is_known(proc, (uint32_t)pid) || !has_trigger(proc, 0) ||
        !has_timer(proc, 0))
        return;
    list(u, proc, pid);
    for (unsigned i = 0; i < u->n; i++)
        for (unsigned k = 0; k < last.n; k++)
            if (u->thread[i].tid == last.thread[k].tid && u->thread[i].cpu_ns > last.thread[k].cpu_ns)
                u->ns += u->thread[i].cpu_ns - last.thread[k].cpu_ns;
}
