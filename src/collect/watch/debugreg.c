/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/watch/debugreg.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/launch/process-time.h"

#define TRIES 5

/* How much of a touch's own time is in the time that it is told for: the exception, and the interrupt that
 * stops the clock. */
static uint64_t touch_ns;

static int open_word(pid_t tid, uint64_t word)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_BREAKPOINT,
        .bp_type = HW_BREAKPOINT_RW,
        .bp_addr = word,
        .bp_len = HW_BREAKPOINT_LEN_8,
        .sample_period = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .remove_on_exec = 1,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int debugreg_open(struct debugreg *d, pid_t pid, pid_t tid, const uint64_t *words, unsigned n)
{
    int code = 0;
    *d = (struct debugreg){.n = 0};
    while (d->n < n && code >= 0)
        if ((code = open_word(tid, words[d->n])) >= 0)
            d->fd[d->n++] = code;
    process_cpu_ns(pid, &d->from_ns);
    /* Each until its first touch, with which its time stops, too. */
    for (unsigned i = 0; i < d->n && code >= 0; i++)
        if (ioctl(d->fd[i], PERF_EVENT_IOC_REFRESH, 1) != 0)
            code = -errno;
    if (code < 0)
        debugreg_close(d);
    return code < 0 ? code : 0;
}

int debugreg_touched(const struct debugreg *d, uint64_t *at_ns)
{
    uint64_t first_ns = UINT64_MAX;
    for (unsigned i = 0; i < d->n; i++) {
        struct {
            uint64_t count, enabled_ns;
        } now;
        if (read(d->fd[i], &now, sizeof now) != sizeof now)
            return -EIO;
        if (now.count != 0 && now.enabled_ns < first_ns)
            first_ns = now.enabled_ns;
    }
    if (first_ns == UINT64_MAX)
        return 0;
    *at_ns = d->from_ns + (first_ns > touch_ns ? first_ns - touch_ns : 0);
    return 1;
}

void debugreg_close(struct debugreg *d)
{
    while (d->n > 0)
        close(d->fd[--d->n]);
}

int debugreg_check(struct error *err)
{
    static volatile uint64_t word;
    const uint64_t address = (uintptr_t)&word;
    uint64_t least = UINT64_MAX;
    int code = 0;
    touch_ns = 0;
    for (int i = 0; i < TRIES && code == 0; i++) {
        struct debugreg d;
        uint64_t at_ns, before;
        if ((code = debugreg_open(&d, 0, 0, &address, 1)) != 0)
            break;
        process_cpu_ns(0, &before);
        word = 1;
        if (debugreg_touched(&d, &at_ns) != 1)
            code = -ENODEV;
        else if (at_ns - before < least)
            least = at_ns > before ? at_ns - before : 0;
        debugreg_close(&d);
    }
    if (code == 0) {
        touch_ns = least;
        return 0;
    }
    if (code == -ENOSPC)
        return error_set(
            err, code,
            "--watch debugreg: all debug registers are in use, by a debugger or perf: use --watch "
            "page, or end that");
    return error_set(err, -ENODEV,
                     "--watch debugreg: the kernel gives us no debug registers (%s): allow perf events "
                     "(kernel.perf_event_paranoid), or use --watch page",
                     strerror(-code));
}
