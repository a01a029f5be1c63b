/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a segment register with no selector, which clears the segment's base, again and again; no fault is
 * due. Then computes while the FS base is not libc's, as runtimes with threads of their own do. */
#include <asm/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "rounds.h"

static void handler(int sig)
{
    (void)sig;
    _exit(1);
}

static volatile unsigned words[1024];

static volatile int handled;

static void count(int sig)
{
    (void)sig;
    handled++;
}

/* Without libc's functions, which need its FS base for errno. */
static void call(long number, long a, void *b)
{
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b) : "rcx", "r11", "memory");
}

static void compute_with_fs(unsigned long base, long pid)
{
    unsigned long own;
    call(SYS_arch_prctl, ARCH_GET_FS, &own);
    call(SYS_arch_prctl, ARCH_SET_FS, (void *)base);
    for (int i = 0; i < rounds_of_work(3000000); i++) {
        words[((unsigned)i * 7) % 1024]++;
        if (i % 30000 == 0)
            call(SYS_kill, pid, (void *)SIGUSR1);
    }
    call(SYS_arch_prctl, ARCH_SET_FS, (void *)own);
}

int main(void)
{
    signal(SIGSEGV, handler);
    signal(SIGUSR1, count);
    for (int i = 0; i < rounds_of_work(300000); i++) {
        for (unsigned j = 0; j < 50; j++)
            words[((unsigned)i + j * 7) % 1024]++;
        if (i % 64 == 0)
            __asm__ volatile("mov %0, %%gs" ::"r"(0));
        if (i % 64 == 32)
            __asm__ volatile("push $0; .byte 0x0f, 0xa9" ::: "memory"); /* pop gs */
    }
    for (int i = 0; i < 4; i++) {
        compute_with_fs(0, getpid());
        compute_with_fs(0x1000, getpid()); /* nothing is mapped there */
        compute_with_fs((unsigned long)&words[512], getpid());
    }
    printf("done, %d signals\n", handled);
    return 0;
}
