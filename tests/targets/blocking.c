/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking system calls that signals interrupt, and those that nothing may interrupt: no stray EINTR. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "rounds.h"

static volatile int alarms;

static void on_alarm(int sig)
{
    (void)sig;
    alarms++;
}

/* One alarm, or one every so often: a call that is begun late, on a busy machine, is interrupted by the next.
 */
static void arm(long us, int repeatedly)
{
    setitimer(ITIMER_REAL, &(struct itimerval){{0, repeatedly ? us : 0}, {0, us}}, NULL);
}

/* Keeps bursts coming between the calls. */
static unsigned churn(unsigned h)
{
    static unsigned table[1024];
    for (int i = 0; i < rounds_of_work(1000000); i++) {
        table[h & 1023] += (unsigned)i;
        h = h * 69069 + table[(h >> 7) & 1023];
    }
    return h;
}

int main(void)
{
    struct sigaction a = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &a, NULL);
    int pipes[2];
    char byte;
    unsigned h = 1;
    if (pipe(pipes) != 0)
        return 1;
    int eintr[8] = {0};
    for (int round = 0; round < 5; round++) {
        struct timespec second = {5, 0}, rest;
        h = churn(h);
        arm(10000, 1);
        eintr[0] += pause() == -1 && errno == EINTR;
        h = churn(h);
        arm(10000, 1);
        eintr[1] += read(pipes[0], &byte, 1) == -1 && errno == EINTR;
        h = churn(h);
        arm(10000, 1);
        eintr[2] += nanosleep(&second, &rest) == -1 && errno == EINTR && rest.tv_sec == 4;
        h = churn(h);
        arm(10000, 1);
        fd_set set;
        FD_ZERO(&set);
        FD_SET(pipes[0], &set);
        eintr[3] += select(pipes[0] + 1, &set, NULL, NULL, NULL) == -1 && errno == EINTR;
        h = churn(h);
        arm(10000, 1);
        struct pollfd pf = {.fd = pipes[0], .events = POLLIN};
        eintr[4] += poll(&pf, 1, 5000) == -1 && errno == EINTR;
        int ep = epoll_create1(0);
        struct epoll_event ev;
        h = churn(h);
        arm(10000, 1);
        eintr[5] += epoll_wait(ep, &ev, 1, 5000) == -1 && errno == EINTR;
        close(ep);

        /* The classic race-free wait: blocked outside, open only inside sigsuspend. */
        sigset_t block, old;
        sigemptyset(&block);
        sigaddset(&block, SIGALRM);
        arm(0, 0);
        sigprocmask(SIG_BLOCK, &block, &old);
        arm(1000, 0);
        int before = alarms;
        h = churn(h);
        eintr[6] += alarms == before;
        sigsuspend(&old);
        eintr[6] += alarms == before + 1 && errno == EINTR;
        arm(1000, 0);
        h = churn(h);
        siginfo_t info;
        eintr[7] += sigwaitinfo(&block, &info) == SIGALRM && alarms == before + 1;
        sigprocmask(SIG_SETMASK, &old, NULL);
    }
    for (int i = 0; i < 8; i++)
        printf("%d ", eintr[i]);
    printf("hash %u alarms %s\n", h, alarms >= 35 ? "all" : "too few");

    /* SA_RESTART: read goes on and gets its byte. */
    a.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &a, NULL);
    fflush(stdout);
    pid_t p = fork();
    if (p == 0) {
        churn(2);
        nanosleep(&(struct timespec){0, 60000000}, NULL);
        _exit(write(pipes[1], "x", 1) == 1 ? 0 : 1);
    }
    arm(10000, 1);
    ssize_t got = read(pipes[0], &byte, 1);
    int status;
    waitpid(p, &status, 0);
    arm(0, 0);
    printf("restarted read %zd '%c' status %d\n", got, byte, status);

    /* No one sends anything: these must not come back early. */
    int early = 0;
    for (int i = 0; i < 40; i++) {
        struct timespec start, end;
        h = churn(h);
        clock_gettime(CLOCK_MONOTONIC, &start);
        early += nanosleep(&(struct timespec){0, 3000000}, NULL) != 0;
        early += poll(NULL, 0, 2) != 0;
        clock_gettime(CLOCK_MONOTONIC, &end);
        early += (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec < 5000000;
    }
    printf("early %d\n", early);
    return 0;
}
