/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads with real-time priorities on one processor: the upper one wakes often and interrupts the lower
 * one anywhere. One that waits for the other by giving up the processor waits for ever. Exit status 77: such
 * priorities are not permitted.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile int stop;
static volatile char data[64 << 10];

static void *lower(void *unused)
{
    while (!stop) {
        for (int i = 0; i < 2000; i++)
            data[i * 64 % sizeof data]++;
        getppid();
    }
    return unused;
}

static void *upper(void *unused)
{
    while (!stop) {
        struct timespec pause = {0, 50000};
        nanosleep(&pause, NULL);
        getppid();
        data[rand() % sizeof data]++;
    }
    return unused;
}

static pthread_t start(void *(*routine)(void *), int priority, int cpu)
{
    pthread_t thread;
    pthread_attr_t how;
    struct sched_param its = {.sched_priority = priority};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    pthread_attr_init(&how);
    pthread_attr_setinheritsched(&how, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&how, SCHED_FIFO);
    pthread_attr_setschedparam(&how, &its);
    pthread_attr_setaffinity_np(&how, sizeof cpus, &cpus);
    if (pthread_create(&thread, &how, routine, NULL) != 0)
        exit(77);
    return thread;
}

int main(void)
{
    cpu_set_t mine;
    int cpu = 0;
    sched_getaffinity(0, sizeof mine, &mine);
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &mine))
        cpu++;
    pthread_t low = start(lower, 1, cpu), high = start(upper, 2, cpu);
    struct timespec limit;
    usleep(1500000);
    stop = 1;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 10;
    int late = pthread_timedjoin_np(high, NULL, &limit) != 0 || pthread_timedjoin_np(low, NULL, &limit) != 0;
    puts(late ? "late" : "done");
    fflush(stdout);
    _exit(late);
}
