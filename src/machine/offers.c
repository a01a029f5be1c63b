/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "machine/offers.h"

#include <cpuid.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/read-text.h"
#include "machine/breakpoints.h"
#include "machine/counters.h"
#include "machine/cpuinfo.h"
#include "machine/vectors.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

/* Reads the first line of a small file, without its newline; "" if it cannot be read. */
static void read_line(const char *path, char *text, size_t size)
{
    read_text(text, size, "%s", path);
    text[strcspn(text, "\n")] = '\0';
}

static int open_event(struct perf_event_attr *attr)
{
    attr->size = sizeof(*attr);
    attr->disabled = 1;
    attr->exclude_kernel = 1;
    attr->exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void try_event(struct offer *o, struct perf_event_attr *attr, const char *found)
{
    int fd = open_event(attr);
    o->state = fd >= 0 ? OFFER_YES : OFFER_NO;
    snprintf(o->found, sizeof(o->found), "%s", fd >= 0 ? found : counters_why(errno));
    if (fd >= 0)
        close(fd);
}

static void find_paranoia(struct offer *o)
{
    char text[32];
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
    read_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text));
    try_event(o, &attr, "");
    snprintf(o->found + strlen(o->found), sizeof(o->found) - strlen(o->found),
             "%skernel.perf_event_paranoid is %s", o->found[0] ? ", " : "", text[0] ? text : "not there");
}

static void find_sigtrap(struct offer *o)
{
    struct utsname u;
    int major = 0, minor = 0;
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_period = UINT64_C(3600000000000),
                                   .sigtrap = 1,
                                   .remove_on_exec = 1};
    try_event(o, &attr, "an event with sigtrap can be opened");
    if (uname(&u) != 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2 || major * 1000 + minor < 5018) {
        o->state = OFFER_NO;
        snprintf(o->found, sizeof(o->found), "kernel %.64s, needs 5.18", u.release);
    }
}

static void find_counters(struct offer *o)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS};
    try_event(o, &attr, "retired instructions can be counted");
}

static void find_breakpoints(struct offer *o)
{
    static volatile uint64_t word;
    struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
                                   .bp_type = HW_BREAKPOINT_RW,
                                   .bp_addr = (uintptr_t)&word,
                                   .bp_len = HW_BREAKPOINT_LEN_8,
                                   .sample_period = 1};
    int fd[5], n = 0;
    for (; n < 5; n++)
        if ((fd[n] = open_event(&attr)) < 0)
            break;
    o->state = n > 0 ? OFFER_YES : OFFER_NO;
    snprintf(o->found, sizeof(o->found), "%d at a time%s%s", n, n ? "" : ": ", n ? "" : counters_why(errno));
    for (int i = 0; i < n; i++)
        close(fd[i]);
    if (breakpoints_fire() == 0) {
        o->state = OFFER_NO;
        snprintf(o->found, sizeof(o->found), "can be set, but never fire");
    }
}

/* In a child, whose system calls would end in SIGSYS afterwards. */
static void find_dispatch(struct offer *o)
{
    static char selector; /* 0: allow */
    pid_t child = fork();
    int status = 0;
    if (child == 0)
        _exit(prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0L, 0L, (unsigned long)&selector) == 0 ? 0
                                                                                            : errno & 0x7f);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        o->state = OFFER_UNKNOWN;
        snprintf(o->found, sizeof(o->found), "could not be tried");
        return;
    }
    o->state = WEXITSTATUS(status) == 0 ? OFFER_YES : OFFER_NO;
    snprintf(o->found, sizeof(o->found), "%s",
             o->state == OFFER_YES ? "prctl accepts it" : strerror(WEXITSTATUS(status)));
}

static void find_cpu(struct offer *o)
{
    unsigned a, b, c, d, b7 = 0;
    int sse42 = __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_2, avx512;
    if (!__get_cpuid_count(7, 0, &a, &b7, &c, &d))
        b7 = 0;
    avx512 = b7 & bit_AVX512VL && b7 & bit_AVX512BW && b7 & bit_AVX512DQ;
    o->state = avx512 ? OFFER_YES : OFFER_NO;
    if (!sse42)
        o->advice =
            "record cannot profile programs without SSE4.2; ask the hypervisor, if there is one, for a "
            "newer processor model";
    else if (vectors_for_counting() == 0)
        o->advice =
            "without AVX2 and BMI2 record cannot count references (--mode count): it weights bursts by "
            "CPU time, so code that is slow counts for too much";
    snprintf(o->found, sizeof(o->found), "SSE4.2 %s, AVX2 %s, BMI2 %s, AVX-512VL/BW/DQ %s, FSGSBASE %s",
             sse42 ? "yes" : "no", b7 & bit_AVX2 ? "yes" : "no", b7 & bit_BMI2 ? "yes" : "no",
             avx512 ? "yes" : "no", getauxval(AT_HWCAP2) & 2 ? "yes" : "no");
}

static void find_huge_pages(struct offer *o)
{
    char thp[64], n[32];
    read_line("/sys/kernel/mm/transparent_hugepage/enabled", thp, sizeof(thp));
    read_line("/proc/sys/vm/nr_hugepages", n, sizeof(n));
    o->state = strstr(thp, "[always]") || strstr(thp, "[madvise]") || atol(n) > 0 ? OFFER_YES : OFFER_NO;
    snprintf(o->found, sizeof(o->found), "transparent: %.40s; reserved: %.20s", thp[0] ? thp : "not there",
             n[0] ? n : "none");
}

static void find_resctrl(struct offer *o)
{
    char all[4096], flags[64] = "";
    static const char *const wanted[] = {" cat_l3", " cqm_llc", " mba"};
    cpuinfo_get("flags", all, sizeof(all));
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (strstr(all, wanted[i]) != NULL)
            strcat(flags, wanted[i]);
    int mounted = access("/sys/fs/resctrl/schemata", R_OK) == 0;
    o->state = mounted ? OFFER_YES : OFFER_NO;
    snprintf(o->found, sizeof(o->found), "CPU:%s; file system %s", flags[0] ? flags : " no flag",
             mounted ? "mounted" : "not mounted");
    if (!mounted && flags[0] == '\0')
        o->advice = "only some server CPUs have it, and virtual machines hide it";
}

static void find_ptrace(struct offer *o)
{
    char text[32];
    read_line("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text));
    int scope = text[0] ? atoi(text) : 0;
    o->state = scope == 0 || (geteuid() == 0 && scope < 3) ? OFFER_YES : OFFER_NO;
    snprintf(o->found, sizeof(o->found), "kernel.yama.ptrace_scope is %s", text[0] ? text : "not there");
}

static const struct {
    const char *name, *what, *advice;
    void (*find)(struct offer *o);
} probes[] = {
    {"perf-events", "perf events (software)",
     "allow them: sysctl kernel.perf_event_paranoid=2 (as root; Debian's 3 forbids them)", find_paranoia},
    {"perf-trigger", "perf events that interrupt a thread",
     "needs Linux 5.18 and perf events allowed; else CPU timers are used, on the kernel's tick (4 ms at "
     "HZ=250)",
     find_sigtrap},
    {"counters", "hardware performance counters",
     "virtual machines often hide them: use bare metal, or an instance type that passes them through; "
     "cachegram works without them",
     find_counters},
    {"breakpoints", "data breakpoints (debug registers)",
     "needs perf events allowed, and a hypervisor that passes them on", find_breakpoints},
    {"syscall-dispatch", "syscall user dispatch", "needs Linux 5.11", find_dispatch},
    {"avx512", "vector instructions for faster recording",
     "only newer CPUs have them; cachegram works without them", find_cpu},
    {"huge-pages", "huge pages", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)",
     find_huge_pages},
    {"resctrl", "cache partitioning (resctrl)", "mount -t resctrl resctrl /sys/fs/resctrl (as root)",
     find_resctrl},
    {"ptrace", "ptrace of your other processes", "sysctl kernel.yama.ptrace_scope=0 (as root)", find_ptrace},
};

size_t offers_find(struct offer *offers, size_t capacity)
{
    size_t n = 0;
    for (; n < sizeof(probes) / sizeof(probes[0]) && n < capacity; n++) {
        offers[n] = (struct offer){.name = probes[n].name,
                                   .what = probes[n].what,
                                   .state = OFFER_UNKNOWN,
                                   .advice = probes[n].advice};
        probes[n].find(&offers[n]);
        if (offers[n].state == OFFER_YES)
            offers[n].advice = NULL;
    }
    return n;
}
