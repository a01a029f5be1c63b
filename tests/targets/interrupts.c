/* SPDX-License-Identifier: Apache-2.0 */
/* What siginterrupt was asked for holds for signal(), before and afterwards, and is reported by sigaction. */
/* build: -Wno-deprecated-declarations */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "rounds.h"

static int ends[2];
static volatile int alarms;

static void on_alarm(int sig)
{
    signal(sig, on_alarm);
    if (++alarms % 2 == 0 && write(ends[1], "x", 1) != 1)
        _exit(9);
}

/* Two alarms come, the second with something to read. */
static void try(const char *what)
{
    struct itimerval soon = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    struct sigaction now;
    volatile unsigned char work[65536];
    char c;
    for (int i = 0; i < rounds_of_work(3000000); i++)
        work[i * 64 % sizeof work] = (unsigned char)i;
    alarms = 0;
    setitimer(ITIMER_REAL, &soon, NULL);
    ssize_t first = read(ends[0], &c, 1);
    int error = first < 0 ? errno : 0;
    while (alarms < 2)
        usleep(1000);
    setitimer(ITIMER_REAL, &never, NULL);
    if (first < 0 && read(ends[0], &c, 1) != 1)
        _exit(8);
    sigaction(SIGALRM, NULL, &now);
    printf("%s: read %zd %s, restarts %d\n", what, first, strerror(error), (now.sa_flags & SA_RESTART) != 0);
}

int main(void)
{
    if (pipe(ends))
        return 1;
    signal(SIGALRM, on_alarm);
    try("at first");
    siginterrupt(SIGALRM, 1);
    try("interrupts");
    signal(SIGALRM, on_alarm);
    try("and again");
    siginterrupt(SIGALRM, 0);
    try("restarts");
    signal(SIGALRM, SIG_DFL);
    siginterrupt(SIGALRM, 1);
    signal(SIGALRM, on_alarm);
    try("asked before");
    int bad = siginterrupt(0, 1);
    printf("bad: %d %s\n", bad, strerror(errno));
    printf("bad: %d\n", siginterrupt(65, 1));
    return 0;
}
