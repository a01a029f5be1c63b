/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer sends a signal that is usually a fault's; its handler, without SA_RESTART, interrupts a read.
 *
 * usage: sent_faults NUMBER
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void handler(int sig)
{
    static int times;
    (void)sig;
    if (++times > 2)
        _exit(1); /* the read went on */
}

int main(int argc, char **argv)
{
    int sig = argc > 1 ? atoi(argv[1]) : SIGBUS, ends[2];
    struct sigaction action = {.sa_handler = handler};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig};
    struct itimerspec when = {{0, 200000000}, {0, 200000000}};
    timer_t timer;
    char byte;
    if (pipe(ends) || sigaction(sig, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
        timer_settime(timer, 0, &when, NULL))
        return 2;
    ssize_t got = read(ends[0], &byte, 1);
    printf("%zd %d\n", got, got < 0 && errno == EINTR);
    return 0;
}
