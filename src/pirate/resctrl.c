/* SPDX-License-Identifier: Apache-2.0 */
#include "pirate/resctrl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/launch/target.h"

#define PREFIX "cachegram-"
#define DOMAINS 64

struct resctrl {
    char group[PATH_MAX];
    uint64_t size_bytes;
    unsigned bits, least; /* of a mask: usually the number of ways; the least number of bits to set */
    int domain[DOMAINS];  /* ids of the last-level caches */
    unsigned domains;
};

/* Reads a small file; "" if it cannot be read. */
static int read_text(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    int code = n < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return code;
}

/* In one write: the kernel takes each write for a command. */
static int write_text(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int code = write(fd, text, strlen(text)) < 0 ? -errno : 0;
    close(fd);
    return code;
}

static void remove_stale(const char *folder)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *d = opendir(folder);
    while (d && (entry = readdir(d)) != NULL) {
        int pid =
            strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 ? atoi(entry->d_name + strlen(PREFIX)) : 0;
        if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        rmdir(path);
    }
    if (d)
        closedir(d);
}

/* The ids in "    L3:0=ffff;1=ffff". */
static void find_domains(struct resctrl *r, const char *schemata)
{
    const char *at = strstr(schemata, "L3:");
    while (at && r->domains < DOMAINS) {
        at += *at == ';' ? 1 : 3;
        r->domain[r->domains++] = atoi(at);
        at = strpbrk(at, ";\n");
        if (at && *at == '\n')
            break;
    }
}

int resctrl_new(const char *folder, uint64_t size_bytes, struct resctrl **resctrl, struct error *err)
{
    char text[4096], least[32];
    struct resctrl *r;
    if (read_text(folder, "info/L3/cbm_mask", text, sizeof text) != 0)
        return error_set(
            err, -ENOTSUP,
            "this machine's last-level cache cannot be partitioned, or %s is not mounted (as root: mount -t "
            "resctrl resctrl %s)",
            folder, folder);
    unsigned long long mask = strtoull(text, NULL, 16);
    read_text(folder, "info/L3/min_cbm_bits", least, sizeof least);
    read_text(folder, "schemata", text, sizeof text);
    r = calloc(1, sizeof *r);
    if (!r)
        return error_set(err, -ENOMEM, "out of memory");
    r->size_bytes = size_bytes;
    r->bits = (unsigned)__builtin_popcountll(mask);
    r->least = (unsigned)strtoul(least, NULL, 10);
    if (r->least == 0)
        r->least = 1;
    find_domains(r, text);
    remove_stale(folder);
    int n = snprintf(r->group, sizeof r->group, "%s/" PREFIX "%d", folder, (int)getpid());
    int code = 0;
    if (r->bits == 0 || r->domains == 0 || n >= (int)sizeof r->group)
        code = error_set(err, -ENOTSUP, "%s does not describe how to partition the last-level cache", folder);
    else if (mkdir(r->group, 0755) != 0)
        code =
            error_set(err, errno == ENOSPC ? -ENOTSUP : -EACCES, "cannot create a cache partition in %s: %s",
                      folder, errno == ENOSPC ? "all are in use" : strerror(errno));
    if (code != 0) {
        free(r);
        return code;
    }
    *resctrl = r;
    return 0;
}

void resctrl_free(struct resctrl *r)
{
    if (!r)
        return;
    rmdir(r->group);
    free(r);
}

static int add_thread(void *ctx, pid_t thread)
{
    const struct resctrl *r = ctx;
    char tid[32];
    snprintf(tid, sizeof tid, "%d", thread);
    int code = write_text(r->group, "tasks", tid);
    return code == -ESRCH ? 0 : code; /* it may have ended */
}

int resctrl_add(struct resctrl *r, pid_t pid, struct error *err)
{
    int code = target_each_thread(pid, add_thread, r);
    return code == 0        ? 0
           : code == -ESRCH ? error_set(err, code, "there is no process %d", pid)
                            : error_set(err, code, "cannot put process %d into a cache partition: %s", pid,
                                        strerror(-code));
}

static unsigned ways_of(const struct resctrl *r, uint64_t bytes)
{
    double ways = round((double)bytes / (double)r->size_bytes * r->bits);
    return ways < r->least ? r->least : ways > r->bits ? r->bits : (unsigned)ways;
}

uint64_t resctrl_round(const struct resctrl *r, uint64_t bytes)
{
    return r->size_bytes / r->bits * ways_of(r, bytes);
}

int resctrl_leave(struct resctrl *r, uint64_t bytes, struct error *err)
{
    char text[2048] = "L3:";
    size_t used = strlen(text);
    unsigned ways = ways_of(r, bytes);
    unsigned long long mask = ways >= 64 ? ~0ull : (1ull << ways) - 1;
    for (unsigned i = 0; i < r->domains && used < sizeof text - 32; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%d=%llx", i ? ";" : "", r->domain[i], mask);
    snprintf(text + used, sizeof text - used, "\n");
    int code = write_text(r->group, "schemata", text);
    return code == 0
               ? 0
               : error_set(err, code, "cannot set a cache partition to %u ways: %s", ways, strerror(-code));
}
