/* SPDX-License-Identifier: Apache-2.0 */
#include "pirate/meter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "pirate/elf-symbol.h"

#define ATTACH_TRIES 100
#define ATTACH_PAUSE_NS 1000000

static int take_symbol(struct meter *m, const struct elf_symbol *symbol, struct error *err)
{
    if (symbol->is_function || (symbol->size != 4 && symbol->size != 8))
        return error_set(err, -EINVAL,
                         "'%s' is not a variable of 4 or 8 bytes, so it cannot measure progress",
                         m->variable);
    m->size = (unsigned)symbol->size;
    return 0;
}

int meter_init(struct meter *m, const char *what, const char *path, struct error *err)
{
    struct elf_symbol symbol;
    *m = (struct meter){.kind = METER_IO, .fd = -1};
    if (strcmp(what, "io") == 0)
        return 0;
    m->event = perf_count_kind(what);
    if (m->event < PERF_KINDS) {
        m->kind = METER_EVENT;
        m->variable = what;
        return perf_count_possible(m->event, err);
    }
    m->kind = METER_VARIABLE;
    m->variable = what;
    if (!path)
        return 0;
    int code = elf_symbol_find(path, what, &symbol, err);
    return code == 0 ? take_symbol(m, &symbol, err) : code;
}

int meter_attach(struct meter *m, pid_t pid, struct error *err)
{
    char path[64];
    struct elf_symbol symbol;
    uint64_t address;
    const struct timespec pause = {0, ATTACH_PAUSE_NS};
    if (m->kind == METER_EVENT)
        return perf_count_open(&m->count, pid, m->event, err);
    if (m->kind == METER_IO) {
        snprintf(path, sizeof path, "/proc/%d/io", pid);
        m->fd = open(path, O_RDONLY | O_CLOEXEC);
        return m->fd >= 0 ? 0 : error_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
    }
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    for (int i = 1;; i++) { /* exec has begun, but the program may not be mapped yet */
        int code = elf_symbol_address(pid, m->variable, &address, err);
        if (code == 0)
            code = elf_symbol_find(path, m->variable, &symbol, err);
        if (code == 0) {
            m->address = address;
            return take_symbol(m, &symbol, err);
        }
        if (i == ATTACH_TRIES)
            return code;
        nanosleep(&pause, NULL);
    }
}

void meter_detach(struct meter *m)
{
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
    perf_count_close(&m->count);
}

static int read_io(int fd, double *units)
{
    char text[512], *at;
    uint64_t in, out;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    if (!(at = strstr(text, "rchar:")) || sscanf(at, "rchar: %" SCNu64, &in) != 1 ||
        !(at = strstr(text, "wchar:")) || sscanf(at, "wchar: %" SCNu64, &out) != 1)
        return -ESRCH;
    *units = (double)in + (double)out;
    return 0;
}

int meter_read(const struct meter *m, pid_t pid, double *units)
{
    double sums[PERF_KINDS];
    uint64_t value = 0;
    if (m->kind == METER_EVENT) {
        perf_count_read(&m->count, sums);
        *units = sums[m->event];
        return 0;
    }
    if (m->kind == METER_IO)
        return read_io(m->fd, units);
    struct iovec here = {&value, m->size}, there = {(void *)m->address, m->size}; /* little-endian */
    ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (n != (ssize_t)m->size)
        return n < 0 ? -errno : -EFAULT;
    *units = (double)value;
    return 0;
}

void meter_read_events(const struct meter *m, double sums[PERF_KINDS])
{
    perf_count_read(&m->count, sums); /* not METER_EVENT: all NaN */
}

const char *meter_unit(const struct meter *m)
{
    if (m->kind == METER_EVENT)
        return m->variable;
    return m->kind == METER_IO ? "bytes" : "steps";
}
