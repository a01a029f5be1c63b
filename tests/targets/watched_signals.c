/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of the program's own while pages of it are closed: faults it makes and handles itself, stacks of
 * its own, masks. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
#include "watched.h"

enum { STACK = 64 * PAGE };
static sigjmp_buf env;
static volatile long faults, alarms, foreign;
static volatile int code;
static uint8_t *guarded; /* pages that the program closes itself */

static void handle(int sig, void (*handler)(int, siginfo_t *, void *), int flags, int all)
{
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    if (all)
        sigfillset(&a.sa_mask);
    sigaction(sig, &a, NULL);
}

/* A collector's write barrier. */
static void on_barrier(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)uc;
    uintptr_t at = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);
    if (at - (uintptr_t)guarded >= 8 * PAGE || info->si_code != SEGV_ACCERR) {
        foreign++;
        _exit(77);
    }
    churn();
    faults++;
    mprotect((void *)at, PAGE, PROT_READ | PROT_WRITE);
}

static void barrier(int flags, int all)
{
    handle(SIGSEGV, on_barrier, flags, all);
    for (int round = 0; round < 60; round++) {
        long before = faults;
        mprotect(guarded, 8 * PAGE, PROT_READ);
        churn();
        for (int i = 0; i < 8; i++) {
            guarded[i * PAGE + round]++;
            guarded[i * PAGE + round + 1]++;
        }
        CHECK(faults == before + 8);
        churn();
    }
}

static void on_jump(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)uc;
    code = info->si_code;
    faults++;
    siglongjmp(env, 1);
}

static void jumping(int flags)
{
    handle(SIGSEGV, on_jump, flags, 0);
    for (volatile int round = 0; round < 100; round++) {
        churn();
        if (sigsetjmp(env, 1) == 0) {
            *(volatile int *)(uintptr_t)(16 * (round % 3)) = 1;
            CHECK(0);
        }
        CHECK(code == SEGV_MAPERR);
        /* Blocked for a while, and jumped out of that, too: faults go on to be seen afterwards. */
        if (sigsetjmp(env, 1) == 0) {
            sigset_t all;
            sigfillset(&all);
            sigprocmask(SIG_BLOCK, &all, NULL);
            churn();
            siglongjmp(env, 1);
        }
        if (sigsetjmp(env, 1) == 0)
            raise(SIGSEGV);
        CHECK(code == SI_TKILL);
    }
}

static void on_alarm(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)info, (void)uc;
    volatile uint8_t here[512];
    for (unsigned i = 0; i < sizeof here; i++)
        here[i] = (uint8_t)i;
    alarms++;
    if (alarms % 4 == 0)
        churn();
    CHECK(here[200] == 200);
}

static void tick(int us)
{
    struct itimerval t = {.it_interval = {0, us}, .it_value = {0, us}};
    setitimer(ITIMER_REAL, &t, NULL);
}

/* The signal stack and the coroutines' stacks are plain memory, where bursts have survivors. */
static void alternate_stack(void)
{
    stack_t s = {.ss_sp = malloc(STACK), .ss_size = STACK}, none = {.ss_flags = SS_DISABLE};
    CHECK(sigaltstack(&s, NULL) == 0);
    handle(SIGALRM, on_alarm, SA_ONSTACK | SA_RESTART, 0);
    tick(500);
    for (int i = 0; i < 1000; i++)
        churn();
    barrier(SA_ONSTACK, 0);
    tick(0);
    CHECK(alarms > 20);
    CHECK(sigaltstack(&none, NULL) == 0);
    free(s.ss_sp);
}

static ucontext_t main_context, contexts[8];
static volatile long turns;

static void coroutine(int me)
{
    volatile uint8_t deep[8 * PAGE];
    for (;;) {
        for (unsigned i = 0; i < sizeof deep; i += 256)
            deep[i]++;
        turns++;
        sigset_t none, now;
        struct sigaction a;
        sigemptyset(&none);
        CHECK(sigprocmask(SIG_BLOCK, &none, &now) == 0 && !sigismember(&now, SIGUSR1));
        CHECK(sigaction(SIGALRM, NULL, &a) == 0 && a.sa_sigaction == on_alarm);
        usleep(1);
        swapcontext(&contexts[me], &main_context);
    }
}

static void coroutines(void)
{
    handle(SIGALRM, on_alarm, SA_RESTART, 0);
    for (int i = 0; i < 8; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack = (stack_t){.ss_sp = malloc(STACK), .ss_size = STACK};
        makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
    }
    tick(400);
    for (int round = 0; round < 150; round++)
        for (int i = 0; i < 8; i++) {
            if (i % 4 == 0)
                churn();
            swapcontext(&main_context, &contexts[i]);
        }
    tick(0);
    CHECK(turns == 150 * 8);
}

/* Masks: what is blocked, and reported so. */
static void masks(void)
{
    sigset_t all, before, now;
    sigfillset(&all);
    for (int i = 0; i < 100; i++) {
        CHECK(sigprocmask(SIG_BLOCK, &all, &before) == 0);
        CHECK(!sigismember(&before, SIGSEGV) && !sigismember(&before, SIGUSR1));
        churn();
        CHECK(sigprocmask(SIG_SETMASK, NULL, &now) == 0);
        CHECK(sigismember(&now, SIGSEGV) && sigismember(&now, SIGSYS) && sigismember(&now, SIGTRAP));
        CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
        churn();
        /* Without libc. */
        uint64_t raw = ~0ull, old = 1;
        CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &raw, &old, 8) == 0 && old == 0);
        churn();
        CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, &raw, 8) == 0);
        CHECK(raw >> (SIGSEGV - 1) & 1);
        churn();
    }
}

/* Dies by a fault while SIGSEGV is blocked, whatever handler there is. */
static void blocked(void)
{
    sigset_t set;
    handle(SIGSEGV, on_jump, 0, 0);
    sigemptyset(&set), sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 2000; i++)
        churn();
    if (sigsetjmp(env, 0) == 0)
        *(volatile int *)(uintptr_t)(alarms + 8) = 1;
    printf("survived\n");
}

/* The kernel's own handler for SIGSEGV, taken without libc: no page may be closed from then on. */
struct raw_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};
__asm__(".globl raw_restorer\nraw_restorer: mov $15, %eax\nsyscall\n");
void raw_restorer(void);

static void raw_handler(void)
{
    struct raw_action a = {on_barrier, SA_SIGINFO | 0x04000000, raw_restorer, 0};
    long ret;
    for (int i = 0; i < 1000; i++)
        churn();
    register long size __asm__("r10") = 8;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(SYS_rt_sigaction), "D"(SIGSEGV), "S"(&a), "d"(0), "r"(size)
                     : "rcx", "r11", "memory");
    CHECK(ret == 0);
    for (int i = 0; i < 200; i++)
        churn();
    CHECK(faults == 0);
    for (int round = 0; round < 20; round++) {
        mprotect(guarded, PAGE, PROT_READ);
        guarded[round]++;
        churn();
    }
    CHECK(faults == 20);
}

int main(int argc, char **argv)
{
    make_pool();
    guarded = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "faults") == 0) {
        barrier(0, 0);
        barrier(0, 1);
        jumping(0);
    } else if (strcmp(what, "altstack") == 0) {
        alternate_stack();
    } else if (strcmp(what, "coroutines") == 0) {
        coroutines();
    } else if (strcmp(what, "masks") == 0) {
        masks();
        jumping(SA_NODEFER);
    } else if (strcmp(what, "blocked") == 0) {
        blocked();
    } else if (strcmp(what, "raw") == 0) {
        raw_handler();
    } else {
        return 2;
    }
    printf("wrong %ld foreign %ld\n", wrong, foreign);
    return wrong != 0;
}
