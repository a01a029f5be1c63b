/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/breakpoints.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

int breakpoints_fire(void)
{
    static volatile uint64_t word;
    struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
                                   .size = sizeof(attr),
                                   .bp_type = HW_BREAKPOINT_RW,
                                   .bp_addr = (uintptr_t)&word,
                                   .bp_len = HW_BREAKPOINT_LEN_8,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    uint64_t count = 0;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -1;
    word = 1;
    int known = read(fd, &count, sizeof(count)) == sizeof(count);
    close(fd);
    return known ? count > 0 : -1;
}
