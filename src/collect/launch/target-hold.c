/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target-hold.c - holds a program between its start and the place from which it is measured.
 *
 * Its first thread is traced from before exec until target_end_hold. Of ptrace only this is used: the thread
 * is stopped at its first instruction, then at one or two places by a debug register. Signals are passed on.
 *
 * A debug register outlives the tracer, and without a tracer its trap would kill the program. During the
 * milliseconds of the program's start, our death kills it as if it had not begun. Where a hold may take
 * longer, the guardian (target.c) clears the register after our death; where the guardian may not trace
 * (Yama), such a hold is refused.
 */
#include "collect/launch/target.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/read-text.h"
#include "collect/launch/target-internal.h"

#define CAPABILITY_PTRACE 19 /* CAP_SYS_PTRACE */
#define EXECUTE_FIRST 1u     /* in the control register: the first address, instruction fetches */
#define RESCUE_PAUSE_NS 100000
#define RESCUE_TRIES 10000
#define AT_START (PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

static void *debug_register(unsigned i)
{
    return (void *)(offsetof(struct user, u_debugreg) + i * sizeof(((struct user *)0)->u_debugreg[0]));
}

static int set_breakpoint(pid_t pid, uint64_t address)
{
    if (ptrace(PTRACE_POKEUSER, pid, debug_register(0), (void *)address) != 0 ||
        ptrace(PTRACE_POKEUSER, pid, debug_register(7), (void *)(uintptr_t)EXECUTE_FIRST) != 0)
        return -errno;
    return 0;
}

static void clear_breakpoint(pid_t pid)
{
    ptrace(PTRACE_POKEUSER, pid, debug_register(7), NULL);
    ptrace(PTRACE_POKEUSER, pid, debug_register(6), NULL);
    ptrace(PTRACE_POKEUSER, pid, debug_register(0), NULL);
}

int target_hold_begin(struct target *t, struct error *err)
{
    if (ptrace(PTRACE_SEIZE, t->pid, NULL, (void *)(uintptr_t)AT_START) == 0) {
        t->held = 1;
        return 0;
    }
    return error_set(err, -EPERM,
                     "cannot hold the program at its start, which --from and --to need: %s (ptrace)",
                     strerror(errno));
}

/* The status is a stop of the first thread. Whether it is ptrace's own event, without a signal to pass on. */
static int is_event(int status)
{
    return status >> 16 != 0;
}

int target_hold_at_start(struct target *t)
{
    int status;
    for (;;) {
        pid_t got = waitpid(t->pid, &status, __WALL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != t->pid || !WIFSTOPPED(status)) {
            t->held = 0;
            return -ECANCELED;
        }
        if (status >> 16 == PTRACE_EVENT_EXEC)
            return 0;
        ptrace(PTRACE_CONT, t->pid, NULL, (void *)(intptr_t)(is_event(status) ? 0 : WSTOPSIG(status)));
    }
}

/* May a process trace it that is not its ancestor? Yama's scope 1 forbids it. */
static int others_may_trace(void)
{
    char text[4096];
    unsigned long long capabilities = 0;
    int scope = 0;
    if (read_text(text, sizeof text, "/proc/sys/kernel/yama/ptrace_scope") >= 0 &&
        sscanf(text, "%d", &scope) != 1)
        scope = 1;
    read_text(text, sizeof text, "/proc/self/status");
    const char *line = strstr(text, "\nCapEff:");
    if (line)
        sscanf(line, "\nCapEff: %llx", &capabilities);
    return scope == 0 || (scope < 3 && (capabilities >> CAPABILITY_PTRACE & 1));
}

int target_may_hold(struct error *err)
{
    return others_may_trace() ? 0
                              : error_set(err, -EPERM,
                                          "perf breakpoints are forbidden here (kernel.perf_event_paranoid, "
                                          "or a container), and one set by ptrace would remain if cachegram "
                                          "were killed (kernel.yama.ptrace_scope forbids its removal)");
}

/* Returns 1 if the stop is at our breakpoint; otherwise lets the program continue. */
static int continue_unless_at_breakpoint(pid_t pid, int status)
{
    siginfo_t info;
    if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP) {
        ptrace(PTRACE_LISTEN, pid, NULL, NULL); /* stopped as by Ctrl-Z: stays so until SIGCONT */
        return 0;
    }
    if (!is_event(status) && WSTOPSIG(status) == SIGTRAP &&
        ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) == 0 && info.si_code == TRAP_HWBKPT)
        return 1;
    /* A stop signal that SIGCONT has undone meanwhile (Ctrl-Z, fg) is handled by the kernel. */
    ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)(is_event(status) ? 0 : WSTOPSIG(status)));
    return 0;
}

/* Runs the program until the breakpoint. 0: it is there; 1: it has ended. */
static int wait_for_breakpoint(struct target *t)
{
    struct rusage usage;
    int status, code = 0;
    while (code == 0) {
        pid_t got = wait4(t->pid, &status, __WALL | WNOHANG, &usage);
        if (got == 0) {
            code = target_wait_once(t, UINT64_MAX);
        } else if (got != t->pid || !WIFSTOPPED(status)) {
            t->held = 0;
            if (got == t->pid)
                target_note_end(t, status, &usage);
            return 1;
        } else if (continue_unless_at_breakpoint(t->pid, status)) {
            return 0;
        }
    }
    return code;
}

/* Tells the guardian what to do if we die. If the guardian is gone, nothing can be done. */
static void order_guardian(const struct target *t, char word)
{
    if (write(t->guardian_pipe[1], &word, 1) != 1)
        return;
}

int target_hold_until(struct target *t, uint64_t address, int at_start, struct error *err)
{
    if (!at_start) {
        order_guardian(t, TARGET_RESCUE);
        ptrace(PTRACE_SETOPTIONS, t->pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACEEXEC);
    }
    int code = set_breakpoint(t->pid, address);
    if (code != 0)
        return error_set(err, -EPERM, "cannot set a breakpoint at %#llx: %s", (unsigned long long)address,
                         strerror(-code));
    ptrace(PTRACE_CONT, t->pid, NULL, NULL);
    code = wait_for_breakpoint(t);
    if (code == 0)
        clear_breakpoint(t->pid);
    if (!at_start)
        order_guardian(t, TARGET_FREE);
    return code;
}

void target_end_hold(struct target *t)
{
    if (t->held)
        ptrace(PTRACE_DETACH, t->pid, NULL, NULL);
    t->held = 0;
}

void target_hold_rescue(pid_t pid)
{
    const struct timespec pause = {0, RESCUE_PAUSE_NS};
    int status, signal = 0;
    /* Our pipe is closed some moments before the kernel detaches us as the tracer. */
    for (int i = 0; ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0; i++) {
        if (errno != EPERM || i == RESCUE_TRIES)
            return;
        nanosleep(&pause, NULL);
    }
    if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 || waitpid(pid, &status, __WALL) != pid ||
        !WIFSTOPPED(status))
        return;
    if (!is_event(status))
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status); /* it may have just arrived there */
    clear_breakpoint(pid);
    ptrace(PTRACE_DETACH, pid, NULL, (void *)(intptr_t)signal);
}
