/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* Ends in the way that its argument names, after some work. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "rounds.h"

static volatile int *volatile nowhere = (volatile int *)8; /* hidden from the compiler */

static unsigned compute(unsigned h)
{
    static unsigned table[2048];
    for (int i = 0; i < rounds_of_work(4000000); i++) {
        table[h & 2047] += (unsigned)i;
        h = h * 69069 + table[(h >> 7) & 2047];
    }
    return h;
}

static void *abort_in_thread(void *unused)
{
    compute(4);
    abort();
    return unused;
}

static void *exit_in_thread(void *unused)
{
    compute(4);
    exit(33);
    return unused;
}

static void at_exit(void)
{
    printf("atexit\n");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t t;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    atexit(at_exit);
    printf("%u\n", compute(1));
    fflush(stdout);
    if (!strcmp(how, "segv"))
        *nowhere = 1;
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "term"))
        raise(SIGTERM);
    if (!strcmp(how, "ill"))
        __builtin_trap();
    if (!strcmp(how, "fpe"))
        __asm__ volatile("xorl %%ecx, %%ecx\n\tcltd\n\tidivl %%ecx" : : : "eax", "ecx", "edx");
    if (!strcmp(how, "trap"))
        __asm__ volatile("int3");
    if (!strcmp(how, "hlt"))
        __asm__ volatile("hlt");
    if (!strcmp(how, "thread-abort"))
        pthread_create(&t, NULL, abort_in_thread, NULL), compute(5), pause();
    if (!strcmp(how, "thread-exit"))
        pthread_create(&t, NULL, exit_in_thread, NULL), compute(5), pause();
    if (!strcmp(how, "main-exits-first"))
        pthread_create(&t, NULL, exit_in_thread, NULL), pthread_exit(NULL);
    if (!strcmp(how, "_exit"))
        _exit(21);
    if (!strcmp(how, "syscall-exit"))
        syscall(SYS_exit_group, 22);
    return 20;
}
