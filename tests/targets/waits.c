/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait with a mask of their own: all signals that it lets in are handled, with it in force, and
 * those that come when they are over are not. Then once more with a second thread.
 */
/* build: -pthread */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include "work.h"

enum { SIGSUSPEND, PPOLL, PSELECT, EPOLL_PWAIT, SYSCALL, RING, RING_STRUCT, RING_SUBMIT, WAYS };
static const char *const names[] = {"sigsuspend", "ppoll", "pselect",     "epoll_pwait",
                                    "syscall",    "ring",  "ring_struct", "ring_submit"};
static char order[16];
static sigset_t within[3];
static int epoll;
static volatile int hangs_up; /* SIGUSR1's handler sends SIGHUP, which waits */

static void note(int sig)
{
    int which = sig == SIGUSR1 ? 0 : sig == SIGUSR2 ? 1 : 2;
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    within[which] = now;
    order[strlen(order)] = (char)('1' + which);
    if (hangs_up && sig == SIGUSR1)
        pthread_kill(pthread_self(), SIGHUP);
}

/* One operation that does nothing is to be submitted. */
static void fill_ring(int ring, const struct io_uring_params *p)
{
    size_t bytes = p->sq_off.array + p->sq_entries * sizeof(unsigned), page = 4096;
    uint8_t *sq = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *sqe =
        mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring, (off_t)IORING_OFF_SQES);
    *sqe = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
    *(unsigned *)(sq + p->sq_off.array) = 0;
    __atomic_store_n((unsigned *)(sq + p->sq_off.tail), 1, __ATOMIC_RELEASE);
    munmap(sq, bytes);
    munmap(sqe, page);
}

/* Waits for more completions than there will be. Where there is no io_uring, as ppoll does. The ring stays
 * open: the kernel's work after it is closed may interrupt a later call, without a signal. */
static int wait_for_ring(int way, const struct timespec *most, const sigset_t *mask)
{
    struct io_uring_params p = {0};
    struct __kernel_timespec at_most = {most->tv_sec, most->tv_nsec};
    struct io_uring_getevents_arg with = {
        .sigmask = (uint64_t)mask, .sigmask_sz = 8, .ts = (uint64_t)&at_most};
    int ring = (int)syscall(SYS_io_uring_setup, 2, &p), submitted = way == RING_SUBMIT;
    if (ring < 0)
        return ppoll(NULL, 0, most, mask);
    if (submitted)
        fill_ring(ring, &p);
    if (way == RING)
        return (int)syscall(SYS_io_uring_enter, ring, 0, 2, IORING_ENTER_GETEVENTS, mask, 8);
    return (int)syscall(SYS_io_uring_enter, ring, submitted, 2, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                        &with, sizeof with);
}

static void wait_with(int way, const sigset_t *mask)
{
    struct timespec most = {5, 0};
    struct epoll_event event;
    errno = 0;
    int result = way == SIGSUSPEND    ? sigsuspend(mask)
                 : way == PPOLL       ? ppoll(NULL, 0, &most, mask)
                 : way == PSELECT     ? pselect(0, NULL, NULL, NULL, &most, mask)
                 : way == EPOLL_PWAIT ? epoll_pwait(epoll, &event, 1, 5000, mask)
                 : way == SYSCALL     ? (int)syscall(SYS_ppoll, NULL, 0, &most, mask, 8)
                                      : wait_for_ring(way, &most, mask);
    printf("%s: %d %s;", names[way], result, strerror(errno));
}

static void show(const char *what)
{
    sigset_t now;
    printf(" %s: order %s, blocked in them:", what, order);
    for (int i = 0; i < 3; i++)
        printf(" %d%d%d", sigismember(&within[i], SIGUSR1), sigismember(&within[i], SIGUSR2),
               sigismember(&within[i], SIGHUP));
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    printf(", afterwards %d%d%d\n", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2),
           sigismember(&now, SIGHUP));
    fflush(stdout);
    memset(order, 0, sizeof order);
    memset(within, 0, sizeof within);
}

static void try_all(void)
{
    sigset_t users, hup, none;
    sigemptyset(&none);
    sigemptyset(&users);
    sigaddset(&users, SIGUSR1);
    sigaddset(&users, SIGUSR2);
    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    for (int round = 0; round < 3; round++)
        for (int way = 0; way < WAYS; way++) {
            pthread_sigmask(SIG_SETMASK, &users, NULL);
            pthread_kill(pthread_self(), SIGUSR1);
            pthread_kill(pthread_self(), SIGUSR2);
            churn(300000);
            wait_with(way, &none);
            show("two");
            /* Comes while the call waits. */
            struct itimerval soon = {.it_value = {0, 3000}};
            sigset_t rest = users;
            sigaddset(&rest, SIGALRM);
            pthread_sigmask(SIG_SETMASK, &rest, NULL);
            pthread_kill(pthread_self(), SIGUSR2);
            rest = none;
            sigaddset(&rest, SIGUSR2);
            setitimer(ITIMER_REAL, &soon, NULL);
            wait_with(way, &rest);
            show("later");
            pthread_sigmask(SIG_SETMASK, &none, NULL);
            show("still there");
            /* SIGHUP is let in when the call is over, and finds the others blocked again. */
            pthread_sigmask(SIG_SETMASK, &users, NULL);
            pthread_kill(pthread_self(), SIGUSR1);
            hangs_up = 1;
            wait_with(way, &hup);
            hangs_up = 0;
            show("behind");
        }
}

static void *in_thread(void *unused)
{
    try_all();
    return unused;
}

int main(void)
{
    struct sigaction a = {.sa_handler = note};
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR2, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
    sigaction(SIGALRM, &a, NULL);
    epoll = epoll_create1(0);
    try_all();
    /* The timer's signal is the thread's. */
    pthread_t t;
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    pthread_create(&t, NULL, in_thread, NULL);
    pthread_join(t, NULL);
    churn(10000000);
    return 0;
}
