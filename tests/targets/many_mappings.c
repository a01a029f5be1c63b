/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with as many mappings as it may have. pages: its data are single pages between inaccessible ones.
 * threads: four of them compute once that is so. alarms: the main thread does, and counts the ticks of a
 * timer.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "watched.h"

enum { ROUNDS = 40, SPARE = 40, THREADS = 4, MOST = 1 << 20 };

static uint8_t *extra[MOST];
static int n;

/* A mapping that is merged with none of its neighbours. */
static int map_one(void)
{
    if (n == MOST)
        return 0;
    extra[n] = mmap(NULL, PAGE, n % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return extra[n] == MAP_FAILED ? 0 : ++n;
}

static void map_all(void)
{
    while (map_one())
        ;
}

static void unmap_to(int left)
{
    while (n > left)
        munmap(extra[--n], PAGE);
}

static void work(int rounds)
{
    static _Thread_local uint32_t hot[1024];
    for (int i = 0; i < rounds_of_work(rounds); i++)
        hot[i & 1023] += hot[i >> 7 & 1023] + 1;
    __asm__ volatile("" : : "r"(hot) : "memory");
}

static void pages(void)
{
    static uint8_t *data[PAGES];
    pool = mmap(NULL, (2 * PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool == MAP_FAILED)
        exit(99);
    for (int i = 0; i <= PAGES; i++)
        mprotect(pool + 2 * i * PAGE, PAGE, PROT_NONE);
    for (int i = 0; i < PAGES; i++)
        memset(data[i] = pool + (2 * i + 1) * PAGE, i, PAGE);
    map_all();
    unmap_to(n - SPARE);
    int before = n;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PAGES; i++)
            CHECK(*(volatile uint8_t *)(data[i] + roll() % PAGE) == i);
        work(400000);
        map_all();
        for (int i = PAGES; i > 0; i--)
            CHECK(*(volatile uint8_t *)(data[i - 1] + roll() % PAGE) == i - 1);
        unmap_to(before);
    }
}

static volatile int full, ticks;

static void *compute(void *unused)
{
    while (!full)
        usleep(1000);
    work(80000000);
    return unused;
}

static void threads(void)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, compute, NULL) == 0);
    map_all();
    full = 1;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
}

static void on_tick(int sig)
{
    (void)sig;
    ticks++;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void alarms(void)
{
    map_all();
    signal(SIGALRM, on_tick);
    struct itimerval each = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_REAL, &each, NULL);
    for (int i = 0; i < 20; i++) {
        int before = ticks;
        double from = seconds();
        while (ticks == before && seconds() < from + 5)
            work(10000000);
        CHECK(ticks != before);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "pages") == 0)
        pages();
    else if (strcmp(what, "threads") == 0)
        threads();
    else
        alarms();
    printf("checks %ld wrong %ld\n", checks, wrong);
    return wrong != 0;
}
