/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf-count.c - one event per thread and kind, inherited by new threads. The kernel maps its generic names
 * to the machine's counters. Tested with the software kinds only: no machine with counters was available.
 */
#include "pirate/perf-count.h"

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
    [PERF_REFERENCES] = {"references", 0, 0},
};

enum perf_event_kind perf_count_kind(const char *name)
{
    enum perf_event_kind kind = 0;
    while (kind < PERF_KINDS && strcmp(kinds[kind].name, name) != 0)
        kind++;
    return kind;
}

static enum perf_event_kind kind_of(unsigned slot)
{
    return slot < PERF_REFERENCES ? (enum perf_event_kind)slot : PERF_REFERENCES;
}

/* The event of a slot; -1 with errno set. */
static int open_one(const struct counters *references, pid_t tid, unsigned slot)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .inherit = 1,
        .exclude_hv = 1,
    };
    if (slot < PERF_REFERENCES) {
        attr.type = kinds[slot].type;
        attr.config = kinds[slot].config;
    } else {
        const struct counter *c = &references->event[slot - PERF_REFERENCES];
        attr.type = c->type;
        attr.config = c->config;
        attr.config1 = c->config1;
        attr.config2 = c->config2;
    }
    attr.exclude_kernel = attr.type != PERF_TYPE_SOFTWARE;
    return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int perf_count_possible(enum perf_event_kind kind, struct error *err)
{
    struct counters references;
    if (kind == PERF_REFERENCES)
        return counters_find(&references, err);
    int fd = open_one(NULL, 0, kind);
    if (fd < 0)
        return error_set(err, -ENODEV, "%s cannot be counted on this machine: %s (see cachegram doctor)",
                         kinds[kind].name, counters_why(errno));
    close(fd);
    return 0;
}

/* All slots of one thread. */
static int open_thread(struct perf_count *c, pid_t tid, enum perf_event_kind wanted, struct error *err)
{
    int code = 0, *more = reallocarray(c->fd, c->n + PERF_SLOTS, sizeof *more);
    if (!more)
        return error_set(err, -ENOMEM, "out of memory");
    c->fd = more;
    for (unsigned slot = 0; slot < PERF_SLOTS; slot++) {
        enum perf_event_kind kind = kind_of(slot);
        int fd = -1;
        if (slot < PERF_REFERENCES + c->references.n) {
            fd = open_one(&c->references, tid, slot);
            if (fd < 0 && errno != ESRCH) { /* ESRCH: the thread has ended */
                c->missing[kind] = 1;
                if (kind == wanted && code == 0)
                    code = error_set(err, -ENODEV, "%s cannot be counted: %s", kinds[kind].name,
                                     counters_why(errno));
            }
        }
        c->fd[c->n++] = fd;
    }
    return code;
}

int perf_count_open(struct perf_count *c, pid_t pid, enum perf_event_kind wanted, struct error *err)
{
    char path[64];
    struct dirent *entry;
    int code = 0;
    *c = (struct perf_count){0};
    c->missing[PERF_REFERENCES] = counters_find(&c->references, NULL) != 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return error_set(err, -ESRCH, "there is no process %d", pid);
    while (code == 0 && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            code = open_thread(c, (pid_t)atoi(entry->d_name), wanted, err);
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
        unsigned slot = (unsigned)(i % PERF_SLOTS);
        double weight = slot < PERF_REFERENCES ? 1 : c->references.event[slot - PERF_REFERENCES].weight;
        if (c->fd[i] < 0 || read(c->fd[i], value, sizeof value) != sizeof value || value[2] == 0)
            continue;
        sums[kind_of(slot)] += weight * (double)value[0] * ((double)value[1] / (double)value[2]);
    }
}
