/*
 * Half of the time computing, half of it in epoll_wait, which fails with EINTR when its thread is stopped in
 * it. Ends after the given number of seconds; prints how often that happened. A second thread computes all
 * the time.
 *
 * usage: eintr SECONDS
 */
/* build: -pthread */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

volatile uint64_t progress;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *compute(void *unused)
{
    (void)unused;
    for (;;)
        progress++;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    struct epoll_event event;
    int fd = epoll_create1(0), interrupted = 0;
    double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    pthread_create(&thread, NULL, compute, NULL);
    while (now() < end) {
        if (epoll_wait(fd, &event, 1, 20) < 0 && errno == EINTR)
            interrupted++;
        for (double until = now() + 0.002; now() < until;)
            ;
    }
    printf("interrupted %d\n", interrupted);
    return 0;
}
