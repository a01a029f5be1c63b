/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that are not installed by sigaction: libc's own of SIGPROF, by which `gcc -pg` samples and which
 * blocks all signals; one of the program's by a system call instruction, which does the same; and one by
 * libc's other name for sigaction. Two threads.
 */
/* build: -pthread */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "work.h"

extern int __sigaction(int sig, const struct sigaction *new,
                       struct sigaction *old); /* exported by libc.so.6 */

static unsigned short samples[65536];
static volatile int over, handled;
static sigjmp_buf back;

static void on_fault(int sig)
{
    siglongjmp(back, sig);
}

static void on_signal(int sig)
{
    handled += sig == SIGUSR1;
}

void restores(void);
__asm__("restores: mov $15, %eax; syscall"); /* rt_sigreturn */

static void install(void)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } k = {on_signal, 0x04000000 | SA_RESTART, restores, ~0ull};
    register long size __asm__("r10") = 8;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_rt_sigaction), "D"(SIGUSR1), "S"(&k), "d"(NULL), "r"(size)
                     : "rcx", "r11", "memory");
}

static void *works(void *main_thread)
{
    while (!over) {
        churn(100000 * work_divisor); /* with more signals, the other thread would hardly go on */
        pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
    }
    return NULL;
}

static unsigned sampled(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        n += samples[i];
    return n;
}

int main(void)
{
    pthread_t thread, self = pthread_self();
    struct sigaction new = {.sa_handler = on_fault}, old;
    volatile char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile int faults = 0;
    unsigned short *volatile nothing = NULL;
    /* All of this program's code counts in one of the numbers. */
    profil(samples, sizeof samples, (uintptr_t)main & ~(uintptr_t)0xffff, 65536);
    install();
    pthread_create(&thread, NULL, works, &self);
    while (sampled() < 20) { /* 0.2 s of CPU time */
        scatter(sampled(), 100000 * work_divisor);
        if (__sigaction(SIGSEGV, &new, &old) != 0)
            return 1;
        if (sigsetjmp(back, 1) == 0)
            *none = 1;
        else
            faults++;
        /* The first one is that of the program's start. */
        if (old.sa_handler != (faults == 1 ? SIG_DFL : on_fault))
            printf("wrong handler\n");
    }
    profil(nothing, 0, 0, 0);
    over = 1;
    pthread_join(thread, NULL);
    printf("ended, %s, %s\n", faults > 1 ? "with faults" : "without",
           handled > 1 ? "with signals" : "without");
    return 0;
}
