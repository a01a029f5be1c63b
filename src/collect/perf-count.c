/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf-count.c - one event a thread and kind, inherited by threads to come. The kernel maps its general names
 * to the machine's counters. Tried so far with the software kinds alone: no machine with counters was at
 * hand.
 */
#include "collect/perf-count.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LLC(operation) \
    (PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_##operation << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static const struct {
    const char *name;
    uint32_t type;
    uint64_t config;
} kinds[PERF_KINDS] = {
    [PERF_INSTRUCTIONS] = {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    [PERF_CYCLES] = {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    [PERF_LLC_MISSES] = {"llc-misses", PERF_TYPE_HW_CACHE, LLC(READ)},
    [PERF_LLC_FETCHES] = {"llc-prefetches", PERF_TYPE_HW_CACHE, LLC(PREFETCH)},
    [PERF_TASK_CLOCK] = {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    [PERF_PAGE_FAULTS] = {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
};

enum perf_event_kind perf_count_kind(const char *name)
{
    enum perf_event_kind kind = 0;
    while (kind < PERF_KINDS && strcmp(kinds[kind].name, name) != 0)
        kind++;
    return kind;
}

static int open_one(pid_t tid, enum perf_event_kind kind)
{
    struct perf_event_attr attr = {
        .type = kinds[kind].type,
        .size = sizeof attr,
        .config = kinds[kind].config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .inherit = 1,
        .exclude_kernel = kinds[kind].type != PERF_TYPE_SOFTWARE,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int perf_count_possible(enum perf_event_kind kind)
{
    int fd = open_one(0, kind);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

int perf_count_open(struct perf_count *c, pid_t pid, enum perf_event_kind wanted, struct error *err)
{
    char path[64];
    struct dirent *entry;
    int code = 0;
    *c = (struct perf_count){0};
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return error_set(err, -ESRCH, "there is no process %d", pid);
    while (code == 0 && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        int *more = reallocarray(c->fd, c->n + PERF_KINDS, sizeof *more);
        if (!more) {
            code = error_set(err, -ENOMEM, "out of memory");
            break;
        }
        c->fd = more;
        for (enum perf_event_kind kind = 0; kind < PERF_KINDS; kind++) {
            int fd = open_one((pid_t)atoi(entry->d_name), kind);
            if (fd < 0 && errno != ESRCH) { /* ESRCH: the thread has ended */
                c->missing[kind] = 1;
                if (kind == wanted && code == 0)
                    code = error_set(err, -ENODEV, "%s cannot be counted: %s", kinds[kind].name,
                                     strerror(errno));
            }
            c->fd[c->n++] = fd;
        }
    }
    closedir(folder);
    if (code != 0)
        perf_count_close(c);
    return code;
}

void perf_count_close(struct perf_count *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->fd[i] >= 0)
            close(c->fd[i]);
    free(c->fd);
    c->fd = NULL;
    c->n = 0;
}

void perf_count_read(const struct perf_count *c, double sums[PERF_KINDS])
{
    for (enum perf_event_kind kind = 0; kind < PERF_KINDS; kind++)
        sums[kind] = c->n == 0 || c->missing[kind] ? NAN : 0;
    for (size_t i = 0; i < c->n; i++) {
        uint64_t value[3]; /* count, time enabled, time running */
        if (c->fd[i] < 0 || read(c->fd[i], value, sizeof value) != sizeof value || value[2] == 0)
            continue;
        sums[i % PERF_KINDS] += (double)value[0] * ((double)value[1] / (double)value[2]);
    }
}
