/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm of timer signals during a computation: `sig_storm real|virtual|prof`. The handler checks what
 * it was interrupted at: the instruction pointer must lie in the program's own mappings and the red zone
 * below the interrupted stack pointer must survive (the kernel's promise to the ABI).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

extern char __executable_start, etext;
static volatile int count, odd_pc;

static void on_tick(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    uintptr_t pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
    (void)sig;
    (void)info;
    count++;
    if (pc < (uintptr_t)&__executable_start || pc >= (uintptr_t)&etext)
        odd_pc++;
    errno = 77;
}

/* No library calls in here: every signal lands inside this program's text. */
__attribute__((noinline)) static uint64_t compute(uint32_t *table, uint64_t rounds)
{
    uint64_t h = 14695981039346656037ull;
    for (uint64_t r = 0; r < rounds; r++) {
        uint32_t *slot = &table[(h >> 20) & 1023];
        *slot = *slot * 1664525u + 1013904223u + (uint32_t)r;
        h = (h ^ *slot) * 1099511628211ull;
        __asm__ volatile("movq %0, -128(%%rsp)\n\tmovq $0, %0\n\tmovq -128(%%rsp), %0"
                         : "+r"(h)
                         :
                         : "memory");
    }
    return h;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "real";
    int which = !strcmp(kind, "prof") ? ITIMER_PROF : !strcmp(kind, "virtual") ? ITIMER_VIRTUAL : ITIMER_REAL;
    int sig = which == ITIMER_PROF ? SIGPROF : which == ITIMER_VIRTUAL ? SIGVTALRM : SIGALRM;
    /* Timers of CPU time tick a few times slower than they are asked to. */
    int enough = which == ITIMER_REAL ? 120 : 60;
    static uint32_t table[1024];
    struct sigaction a = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(sig, &a, NULL);
    uint64_t want = compute(table, 200000);
    struct itimerval tick = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    setitimer(which, &tick, NULL);
    int wrong = 0;
    while (count < enough) {
        memset(table, 0, sizeof table);
        wrong += compute(table, 200000) != want;
    }
    setitimer(which, &off, NULL);
    struct itimerval left;
    getitimer(which, &left);
    printf("%s: enough %d wrong %d hash %016llx left %ld\n", kind, count >= enough, wrong,
           (unsigned long long)want, (long)left.it_interval.tv_usec);
    /* memset is the C library's: a few ticks may land there, most must not. */
    printf("foreign places: %s\n", odd_pc <= count / 4 ? "few" : "many");
    return 0;
}
