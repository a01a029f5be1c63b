/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding out of signal handlers, as exceptions, cancellation, profilers and crash reports do: what a
 * handler returns to has the call frame information of a signal frame, and the registers of interrupted code
 * are found.
 */
#include "rounds.h"
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include <unwind.h>

struct dwarf_eh_bases {
    void *text, *data, *function;
};
const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases);

enum { KEPT = 6 };
static const int kept[KEPT] = {3, 6, 12, 13, 14, 15}; /* rbx, rbp, r12 to r15, as DWARF numbers them */
static unsigned undescribed, unrecognised, lost, wrong_registers;
static volatile unsigned found;
unsigned handled;

/* Both have 1111..., 2222... and so on in these registers between the labels. raise_it(pid, sig) is
 * interrupted after its system call, spin() until the next signal has been handled. */
extern const char raise_begins[], raise_ends[], spin_begins[], spin_ends[];
void raise_it(long pid, long sig);
void spin(void);
__asm__(".text\n"
        "fill:  movabs $0x1111111111111111, %rbx\n"
        "       movabs $0x2222222222222222, %rbp\n"
        "       movabs $0x3333333333333333, %r12\n"
        "       movabs $0x4444444444444444, %r13\n"
        "       movabs $0x5555555555555555, %r14\n"
        "       movabs $0x6666666666666666, %r15\n"
        "       ret\n"
        "raise_it:\n"
        "       push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "       call fill\n"
        "raise_begins:\n"
        "       mov $62, %eax\n" /* kill */
        "       syscall\n"
        "       nop\n"
        "raise_ends:\n"
        "       jmp 1f\n"
        "spin:  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "       mov handled(%rip), %eax\n"
        "       call fill\n"
        "spin_begins:\n"
        "       cmp %eax, handled(%rip)\n"
        "       je spin_begins\n"
        "spin_ends:\n"
        "1:     pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "       ret\n");

struct walk {
    int frames, signal_frames, described, found;
};

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *data)
{
    struct walk *w = data;
    int exact = 0; /* execution continues at the address; it does not follow a call */
    uintptr_t ip = _Unwind_GetIPInfo(context, &exact);
    struct dwarf_eh_bases bases;
    const int32_t *fde = _Unwind_Find_FDE((void *)(ip - 1), &bases);
    if (exact) { /* the frame that was interrupted */
        w->signal_frames++;
        w->found = (ip >= (uintptr_t)raise_begins && ip <= (uintptr_t)raise_ends) ||
                   (ip >= (uintptr_t)spin_begins && ip <= (uintptr_t)spin_ends);
        for (int k = 0; w->found && k < KEPT; k++)
            wrong_registers += _Unwind_GetGR(context, kept[k]) != 0x1111111111111111ul * (unsigned)(k + 1);
        return _URC_END_OF_STACK;
    }
    if (fde != NULL) { /* length, distance back to the CIE; its length, 0, version, augmentation */
        const char *cie = (const char *)(fde + 1) - fde[1];
        w->described += strchr(cie + 9, 'S') != NULL;
    }
    return ++w->frames < 100 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void handler(int sig)
{
    struct walk w = {0};
    (void)sig;
    handled++;
    _Unwind_Backtrace(frame, &w);
    undescribed += w.described != 1;
    unrecognised += w.signal_frames != 1;
    found += (unsigned)w.found;
    lost += !w.found;
}

static void report(const char *what)
{
    printf("%s: undescribed %u, unrecognised %u, lost %u, wrong %u\n", what, undescribed, unrecognised, lost,
           wrong_registers);
    undescribed = unrecognised = lost = wrong_registers = 0;
}

int main(void)
{
    struct sigaction a = {0};
    struct itimerval every = {{0, 5000}, {0, 5000}}, off = {{0, 0}, {0, 0}};
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    a.sa_handler = handler;
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGALRM, &a, NULL);
    for (int i = 0; i < rounds_of_work(1000); i++)
        raise_it(getpid(), SIGUSR1);
    report("sent");

    sigaltstack(&alternate, NULL);
    a.sa_flags = SA_ONSTACK | SA_SIGINFO;
    sigaction(SIGUSR2, &a, NULL);
    for (int i = 0; i < rounds_of_work(1000); i++)
        raise_it(getpid(), SIGUSR2);
    report("sent, on another stack");

    setitimer(ITIMER_REAL, &every, NULL);
    for (found = 0; found < 50;) /* some signals come before or after it spins */
        spin();
    setitimer(ITIMER_REAL, &off, NULL);
    lost = 0;
    report("timer");
    return 0;
}
