/* SPDX-License-Identifier: Apache-2.0 */
#include "pirate/breakpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/launch/target.h"

struct opening {
    struct breakpoint *b;
    struct perf_event_attr attr;
    size_t before;
};

static int open_thread(void *ctx, pid_t tid)
{
    struct opening *o = ctx;
    struct breakpoint *b = o->b;
    for (size_t i = 0; i < b->n; i++)
        if (b->tid[i] == tid)
            return 0;
    int *fds = reallocarray(b->fd, b->n + 1, sizeof *fds);
    if (fds)
        b->fd = fds;
    pid_t *tids = reallocarray(b->tid, b->n + 1, sizeof *tids);
    if (tids)
        b->tid = tids;
    if (!fds || !tids)
        return -ENOMEM;
    int fd = (int)syscall(SYS_perf_event_open, &o->attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return errno == ESRCH ? 0 : -errno; /* it has ended */
    b->fd[b->n] = fd;
    b->tid[b->n++] = tid;
    if (fcntl(fd, F_SETOWN, getpid()) != 0 || fcntl(fd, F_SETFL, O_ASYNC) != 0)
        return -errno;
    return 0;
}

int breakpoint_open(struct breakpoint *b, pid_t pid, uint64_t address, int enabled, struct error *err)
{
    struct opening o = {
        .b = b,
        .attr = {.size = sizeof o.attr,
                 .type = PERF_TYPE_BREAKPOINT,
                 .bp_type = HW_BREAKPOINT_X,
                 .bp_addr = address,
                 .bp_len = sizeof(long), /* required by the kernel for instruction breakpoints */
                 .sample_period = 1,
                 .wakeup_events = 1,
                 .disabled = !enabled,
                 .exclude_kernel = 1,
                 .exclude_hv = 1,
                 .inherit = 1,
                 .inherit_thread = 1, /* threads, not children */
                 .remove_on_exec = 1}};
    int code;
    *b = (struct breakpoint){0};
    do { /* threads may be created by those without a breakpoint yet */
        o.before = b->n;
        code = target_each_thread(pid, open_thread, &o);
    } while (code == 0 && b->n > o.before);
    if (code == 0)
        return 0;
    breakpoint_close(b);
    if (code == -ESRCH || code == -ENOMEM)
        return error_set(err, code, "cannot set a breakpoint in process %d: %s", pid, strerror(-code));
    if (code == -EPERM || code == -EACCES || code == -ENOSYS)
        return error_set(err, -EPERM,
                         "the kernel does not permit breakpoints (kernel.perf_event_paranoid is too high, or "
                         "a container forbids perf events)");
    return error_set(err, -ENODEV, "the kernel provides no breakpoint: %s", strerror(-code));
}

void breakpoint_enable(struct breakpoint *b)
{
    for (size_t i = 0; i < b->n; i++)
        ioctl(b->fd[i], PERF_EVENT_IOC_ENABLE, 0);
}

uint64_t breakpoint_count(const struct breakpoint *b)
{
    uint64_t sum = 0, one;
    for (size_t i = 0; i < b->n; i++)
        if (read(b->fd[i], &one, sizeof one) == sizeof one)
            sum += one;
    return sum;
}

void breakpoint_close(struct breakpoint *b)
{
    for (size_t i = 0; i < b->n; i++)
        close(b->fd[i]);
    free(b->fd);
    free(b->tid);
    *b = (struct breakpoint){0};
}
