/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and processes that clone and clone3 make in this memory, on stacks of 512 bytes below which nothing
 * is accessible: no frame of a signal has room there.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "work.h"

enum { STACK = 512, PAGE = 4096 };

static volatile int ran;

static int child(void *value)
{
    ran += (int)(intptr_t)value;
    return 3;
}

/* As clone, by the newer call. */
static long clone_newer(uint64_t flags, char *stack, int value, volatile int *tid)
{
    uint64_t arguments[11] = {flags & ~0xffull, 0, (uint64_t)tid, 0, flags & 0xff, (uint64_t)stack, STACK};
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "add %[value], %[ran]\n\t"
                     "mov $3, %%edi\n\t"
                     "mov %[exit], %%eax\n\t"
                     "syscall\n"
                     "1:"
                     : "=a"(result), [ran] "+m"(ran)
                     : "a"(SYS_clone3), "D"(arguments),
                       "S"(sizeof arguments), [value] "r"(value), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return result;
}

static long make(int newer, int flags, char *stack, int value, volatile int *tid)
{
    if (newer)
        return clone_newer((uint64_t)flags, stack, value, tid);
    return clone(child, stack + STACK, flags, (void *)(intptr_t)value, NULL, NULL, (void *)tid);
}

static void thread(int newer, char *stack)
{
    volatile int tid = 1;
    int now;
    long made = make(newer, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_CHILD_CLEARTID, stack, 1, &tid);
    while (made > 0 && (now = tid) != 0)
        syscall(SYS_futex, &tid, FUTEX_WAIT, now, NULL, NULL, 0);
    printf("thread %s, %d ran\n", made > 0 ? "made" : "not made", ran);
}

static void process(int newer, char *stack)
{
    int status = 0;
    long made = make(newer, CLONE_VM | SIGCHLD, stack, 100, NULL);
    waitpid((pid_t)made, &status, 0);
    printf("process %s, status %#x, %d ran\n", made > 0 ? "made" : "not made", (unsigned)status, ran);
}

int main(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages, PAGE, PROT_NONE))
        return 1;
    for (int i = 0; i < 20; i++) {
        churn(300000);
        thread(i & 1, pages + PAGE);
        churn(300000);
        process(i & 1, pages + PAGE);
        fflush(stdout);
    }
    return 0;
}
