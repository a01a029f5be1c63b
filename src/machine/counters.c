/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.c - from names of events to the kernel's encoding.
 *
 * Not yet tested on a machine with counters: names and weights are those of the vendors' manuals. AMD's
 * events count references when they are dispatched, including mispredicted paths.
 */
#define _GNU_SOURCE
#include "machine/counters.h"

#include <dlfcn.h>
#include <errno.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIBRARY "libpfm.so.4"

/* The first entry whose events are all known is used. Newest first. */
static const struct {
    struct {
        const char *name;
        double weight;
    } event[COUNTERS_MAX];
} known[] = {
    {{{"MEM_INST_RETIRED:ALL_LOADS", 1}, {"MEM_INST_RETIRED:ALL_STORES", 1}}}, /* Intel from Skylake on */
    {{{"MEM_UOPS_RETIRED:ALL_LOADS", 1}, {"MEM_UOPS_RETIRED:ALL_STORES", 1}}}, /* Sandy Bridge to Broadwell */
    {{{"MEM_INST_RETIRED:LOADS", 1}, {"MEM_INST_RETIRED:STORES", 1}}},         /* Nehalem, Westmere */
    {{{"LS_DISPATCH:LD_DISPATCH", 1},                                          /* AMD Zen */
      {"LS_DISPATCH:STORE_DISPATCH", 1},
      {"LS_DISPATCH:LD_ST_DISPATCH", 2}}}, /* a load and a store in one */
};

struct library {
    void *handle;
    pfm_err_t (*initialize)(void);
    pfm_err_t (*encode)(const char *name, int privileges, pfm_os_t os, void *arg);
    const char *(*strerror)(int code);
};

static int library_open(struct library *l, struct error *err)
{
    l->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (l->handle == NULL)
        return error_set(err, -ENODEV, LIBRARY ", which knows the CPU's events, is missing: install libpfm4");
    *(void **)&l->initialize = dlsym(l->handle, "pfm_initialize");
    *(void **)&l->encode = dlsym(l->handle, "pfm_get_os_event_encoding");
    *(void **)&l->strerror = dlsym(l->handle, "pfm_strerror");
    if (l->initialize != NULL && l->encode != NULL && l->strerror != NULL && l->initialize() == PFM_SUCCESS)
        return 0;
    dlclose(l->handle);
    l->handle = NULL;
    return error_set(err, -ENODEV, LIBRARY " failed to initialise");
}

/* 0, or libpfm4's code. */
static int encode(const struct library *l, const char *name, double weight, struct counter *c)
{
    struct perf_event_attr attr = {.size = sizeof(attr)};
    pfm_perf_encode_arg_t arg = {.attr = &attr, .size = sizeof(arg)};
    int code = l->encode(name, PFM_PLM3, PFM_OS_PERF_EVENT, &arg);
    if (code != PFM_SUCCESS)
        return code;
    *c = (struct counter){.type = attr.type,
                          .config = attr.config,
                          .config1 = attr.config1,
                          .config2 = attr.config2,
                          .weight = weight};
    snprintf(c->name, sizeof(c->name), "%s", name);
    return 0;
}

static int find_known(const struct library *l, struct counters *c, struct error *err)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct counters found = {0};
        unsigned n = 0;
        while (n < COUNTERS_MAX && known[i].event[n].name != NULL &&
               encode(l, known[i].event[n].name, known[i].event[n].weight, &found.event[n]) == 0)
            n++;
        if (n < COUNTERS_MAX && known[i].event[n].name != NULL)
            continue;
        found.n = n;
        *c = found;
        return 0;
    }
    return error_set(err, -ENODEV,
                     "no counters of loads and stores are known for this CPU; " COUNTERS_ENV
                     " can name them");
}

static int find_named(const struct library *l, const char *names, struct counters *c, struct error *err)
{
    struct counters found = {0};
    for (const char *at = names; *at != '\0'; at += *at == ',') {
        char name[sizeof(found.event[0].name)];
        size_t length = strcspn(at, ",");
        if (length >= sizeof(name) || found.n == COUNTERS_MAX)
            return error_set(err, -ENODEV, COUNTERS_ENV " names more than %u events, or has a name too long",
                             COUNTERS_MAX);
        memcpy(name, at, length);
        name[length] = '\0';
        int code = encode(l, name, 1, &found.event[found.n++]);
        if (code != 0)
            return error_set(err, -ENODEV, "the event %s that " COUNTERS_ENV " names is not available: %s",
                             name, l->strerror(code));
        at += length;
    }
    *c = found;
    return 0;
}

/* Loads and stores of check_loop. What else is counted is little. */
#define CHECK_REFERENCES 2000000u
/* AMD's events count what is dispatched, mispredicted paths included. */
#define CHECK_LEAST 0.9
#define CHECK_MOST 2.0
/* The counters may be taken for a moment. */
#define CHECK_ATTEMPTS 3u

static void check_loop(void)
{
    volatile unsigned word = 0;
    for (unsigned i = 0; i < CHECK_REFERENCES / 2; i++)
        word = word + 1;
}

/* What read() of a group returns. */
struct group {
    uint64_t n, enabled_ns, running_ns, count[COUNTERS_MAX];
};

/* Opens all as one group, disabled, on this thread. Returns how many are open: all, unless err is set. */
static unsigned open_group(const struct counters *c, int fd[COUNTERS_MAX], struct error *err)
{
    unsigned n = 0;
    for (; n < c->n; n++) {
        struct perf_event_attr attr = {.type = c->event[n].type,
                                       .size = sizeof(attr),
                                       .config = c->event[n].config,
                                       .config1 = c->event[n].config1,
                                       .config2 = c->event[n].config2,
                                       .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                      PERF_FORMAT_TOTAL_TIME_RUNNING,
                                       .disabled = n == 0,
                                       .exclude_kernel = 1,
                                       .exclude_hv = 1};
        fd[n] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, n > 0 ? fd[0] : -1, PERF_FLAG_FD_CLOEXEC);
        if (fd[n] < 0) {
            error_set(err, -ENODEV, "the counter %s cannot be used: %s", c->event[n].name,
                      counters_why(errno));
            break;
        }
    }
    return n;
}

static void close_group(const int *fd, unsigned n)
{
    while (n-- > 0)
        close(fd[n]);
}

static int check_counts(const struct counters *c, const struct group *g, struct error *err)
{
    double sum = 0;
    for (unsigned i = 0; i < c->n; i++)
        sum += c->event[i].weight * (double)g->count[i];
    if (g->running_ns < g->enabled_ns)
        return error_set(err, -ENODEV,
                         "the counters are in use by others: another profiler, or nmi_watchdog");
    if (sum < CHECK_LEAST * CHECK_REFERENCES || sum > CHECK_MOST * CHECK_REFERENCES)
        return error_set(err, -ENODEV,
                         "the counters count %.0f of %u references; some virtual machines let none count",
                         sum, CHECK_REFERENCES);
    return 0;
}

static int check_once(const struct counters *c, struct error *err)
{
    struct group g;
    size_t bytes = offsetof(struct group, count) + c->n * sizeof(g.count[0]);
    int fd[COUNTERS_MAX], status = -ENODEV;
    unsigned n = open_group(c, fd, err);
    if (n == c->n) {
        ioctl(fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
        check_loop();
        ioctl(fd[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
        status = read(fd[0], &g, bytes) == (ssize_t)bytes
                     ? check_counts(c, &g, err)
                     : error_set(err, -ENODEV, "the counters cannot be read: %s", strerror(errno));
    }
    close_group(fd, n);
    return status;
}

int counters_check(const struct counters *c, struct error *err)
{
    int status = -ENODEV;
    for (unsigned k = 0; k < CHECK_ATTEMPTS && status < 0; k++)
        status = check_once(c, err);
    return status;
}

/* Software events, in the counters' place in tests, need not count references. */
static int check(const struct counters *c, struct error *err)
{
    int fd[COUNTERS_MAX];
    for (unsigned i = 0; i < c->n; i++)
        if (c->event[i].type != PERF_TYPE_SOFTWARE)
            return counters_check(c, err);
    unsigned n = open_group(c, fd, err);
    close_group(fd, n);
    return n == c->n ? 0 : -ENODEV;
}

const char *counters_why(int code)
{
    switch (code) {
    case ENOENT:
    case EOPNOTSUPP:
        return "this CPU, or the virtual machine, does not provide them";
    case EACCES:
    case EPERM:
        return "the kernel does not permit it (kernel.perf_event_paranoid, or a container)";
    default:
        return strerror(code);
    }
}

/* Fast, and fails in most virtual machines: checked before the library is loaded. */
static int any_counters(struct error *err)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return error_set(err, -ENODEV, "no hardware counters are available: %s", counters_why(errno));
    close(fd);
    return 0;
}

int counters_find(struct counters *c, struct error *err)
{
    const char *names = getenv(COUNTERS_ENV);
    struct counters found;
    struct library l = {0};
    int named = names != NULL && names[0] != '\0';
    int status = named ? 0 : any_counters(err);
    if (status == 0)
        status = library_open(&l, err);
    if (status < 0)
        return status;
    status = named ? find_named(&l, names, &found, err) : find_known(&l, &found, err);
    dlclose(l.handle);
    if (status == 0)
        status = check(&found, err);
    if (status == 0)
        *c = found;
    return status;
}
