/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread -ldl */
/*
 * disturbed LOOPS WHAT...: every thread that counts makes 2 * LOOPS references in its loop, whatever else
 * goes on: `tick` (a thread wakes up every 10 ms), `masked` (it blocks all signals), `map` (code is mapped
 * and unmapped), `load` (a library is loaded and unloaded), `two` (a second thread counts), `naps` (that one
 * sleeps 20,000 times before), `often` (load and count by turns, twenty times), `raw` (a thread that
 * pthread_create does not know counts as well), `most` (ten times as much), `trap` (the loop runs with
 * SIGTRAP blocked by a system call instruction of the program's own), `fault` (such an instruction has set
 * the default action of SIGSEGV). Prints the sums.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static long loops, naps;
static volatile int raw_done;
static int raw_times = 1;

static long count(long n)
{
    volatile long sum = 0; /* a load and a store each time */
    for (long i = 0; i < n; i++)
        sum += i;
    return sum;
}

static void *count_all(void *unused)
{
    (void)unused;
    for (long i = 0; i < naps; i++)
        usleep(1);
    return (void *)count(loops);
}

static int count_raw(void *unused)
{
    (void)unused;
    count(raw_times * loops);
    raw_done = 1;
    return 0;
}

static volatile int ticks_end;

static void *tick(void *unused)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec every = {{0, 10000000}, {0, 10000000}};
    timerfd_settime(fd, 0, &every, NULL);
    while (!ticks_end) {
        unsigned long n;
        struct pollfd p = {fd, POLLIN, 0};
        poll(&p, 1, -1);
        if (read(fd, &n, sizeof n) != sizeof n)
            break;
    }
    return unused;
}

static void map(void)
{
    void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p, 4096, PROT_READ | PROT_EXEC);
    munmap(p, 8192);
}

static void load(void)
{
    void *library = dlopen("libz.so.1", RTLD_NOW);
    if (library)
        dlclose(library);
}

static void block_trap(unsigned long mask)
{
    long how = SIG_SETMASK, result = SYS_rt_sigprocmask;
    register long bytes __asm__("r10") = 8;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(how), "S"(&mask), "d"(0L), "r"(bytes)
                     : "rcx", "r11", "memory");
}

static void reset_fault(void)
{
    long result = SYS_rt_sigaction, none[4] = {0};
    register long bytes __asm__("r10") = 8;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"((long)SIGSEGV), "S"(none), "d"(0L), "r"(bytes)
                     : "rcx", "r11", "memory");
}

int main(int argc, char **argv)
{
    static char stack[1 << 16] __attribute__((aligned(16)));
    pthread_t ticker, second;
    sigset_t all, before;
    int two = 0, often = 0, trap = 0, raw = 0, ticks = 0;
    loops = argc > 1 ? atol(argv[1]) : 1000000;
    for (int i = 2; i < argc; i++) {
        int masked = strcmp(argv[i], "masked") == 0;
        sigfillset(&all);
        if (masked)
            pthread_sigmask(SIG_SETMASK, &all, &before);
        if (masked || strcmp(argv[i], "tick") == 0) {
            pthread_create(&ticker, NULL, tick, NULL);
            ticks = 1;
            usleep(30000); /* it waits by now */
        }
        if (masked)
            pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (strcmp(argv[i], "map") == 0)
            map();
        if (strcmp(argv[i], "load") == 0)
            load();
        if (strcmp(argv[i], "fault") == 0)
            reset_fault();
        two |= strcmp(argv[i], "two") == 0;
        naps = strcmp(argv[i], "naps") == 0 ? 20000 : naps;
        often |= strcmp(argv[i], "often") == 0;
        raw |= strcmp(argv[i], "raw") == 0;
        raw_times = strcmp(argv[i], "most") == 0 ? 10 : raw_times;
        trap |= strcmp(argv[i], "trap") == 0;
    }
    if (two)
        pthread_create(&second, NULL, count_all, NULL);
    if (raw)
        clone(count_raw, stack + sizeof stack,
              CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL);
    if (trap)
        block_trap(1ul << (SIGTRAP - 1));
    long sum = 0;
    for (int i = 0; often && i < 20; i++) {
        load();
        sum += count(loops / 20);
    }
    if (!often)
        sum = count(loops);
    if (two) {
        void *other;
        pthread_join(second, &other);
        sum += (long)other;
    }
    while (raw && !raw_done)
        usleep(1000);
    if (trap)
        block_trap(0);
    ticks_end = 1; /* a thread that runs when another one ends the process loses its last buffer */
    if (ticks)
        pthread_join(ticker, NULL);
    printf("%ld\n", sum);
    return 0;
}
