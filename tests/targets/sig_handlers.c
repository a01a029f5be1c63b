/* SPDX-License-Identifier: Apache-2.0 */
/* Signal handlers: siginfo, masks, nesting, alternate stack, one-shot handlers, pending signals. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rounds.h"

static volatile int depth, seen_value, nested_order[4], norder;
static char *stack_low, *stack_high;

/* Work, so that some of what follows happens inside a burst. */
static void churn(void)
{
    static unsigned table[1024], h = 1;
    for (int i = 0; i < rounds_of_work(1500000); i++) {
        table[h & 1023] += (unsigned)i;
        h = h * 69069 + table[(h >> 7) & 1023];
    }
}

static void on_info(int sig, siginfo_t *info, void *uc)
{
    (void)uc;
    seen_value = info->si_value.sival_int;
    printf("siginfo: signal %d code %d value %d from self %d\n", sig, info->si_code, seen_value,
           info->si_pid == getpid());
}

static void on_outer(int sig)
{
    sigset_t now;
    depth++;
    sigprocmask(SIG_SETMASK, NULL, &now);
    printf("outer: depth %d self blocked %d usr2 blocked %d term blocked %d\n", depth, sigismember(&now, sig),
           sigismember(&now, SIGUSR2), sigismember(&now, SIGTERM));
    raise(SIGUSR2); /* not in the mask: nests */
    raise(SIGTERM); /* in the mask: waits for the return */
    nested_order[norder++] = 1;
    depth--;
}

static void on_inner(int sig)
{
    nested_order[norder++] = sig == SIGUSR2 ? 2 : 3;
    printf("inner: signal %d depth %d\n", sig, depth);
}

static void on_alternate(int sig)
{
    char here;
    printf("alternate: signal %d on stack %d\n", sig, &here >= stack_low && &here < stack_high);
}

static void on_once(int sig)
{
    printf("once: %d\n", sig);
}

int main(void)
{
    struct sigaction a = {0}, old;
    setvbuf(stdout, NULL, _IONBF, 0);

    a.sa_sigaction = on_info;
    a.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &a, NULL);
    churn();
    sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 4711});
    kill(getpid(), SIGUSR1);

    memset(&a, 0, sizeof a);
    a.sa_handler = on_outer;
    sigaddset(&a.sa_mask, SIGTERM);
    sigaction(SIGUSR1, &a, &old);
    printf("old handler is ours: %d flags siginfo %d\n", old.sa_sigaction == on_info,
           !!(old.sa_flags & SA_SIGINFO));
    signal(SIGUSR2, on_inner);
    signal(SIGTERM, on_inner);
    churn();
    raise(SIGUSR1);
    printf("order %d %d %d\n", nested_order[0], nested_order[1], nested_order[2]);

    stack_low = malloc(65536);
    stack_high = stack_low + 65536;
    stack_t ss = {.ss_sp = stack_low, .ss_size = 65536}, back;
    sigaltstack(&ss, NULL);
    sigaltstack(NULL, &back);
    printf("altstack kept: %d size %zu flags %d\n", back.ss_sp == stack_low, back.ss_size, back.ss_flags);
    memset(&a, 0, sizeof a);
    a.sa_handler = on_alternate;
    a.sa_flags = SA_ONSTACK;
    sigaction(SIGHUP, &a, NULL);
    churn();
    raise(SIGHUP);

    /* The handlers that a profiler is likely to want for itself: what is set must be reported back. */
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGPROF, SIGUSR1};
    for (unsigned i = 0; i < sizeof own / sizeof own[0]; i++) {
        struct sigaction before;
        sigaction(own[i], NULL, &before);
        int was_default = before.sa_handler == SIG_DFL || own[i] == SIGUSR1;
        memset(&a, 0, sizeof a);
        a.sa_handler = on_once;
        a.sa_flags = (int)SA_RESETHAND;
        sigaction(own[i], &a, NULL);
        churn();
        raise(own[i]);
        sigaction(own[i], NULL, &old);
        printf("signal %d: default before %d, reset after %d\n", own[i], was_default,
               old.sa_handler == SIG_DFL);
    }

    sigset_t block, pending, mask;
    sigfillset(&block);
    sigprocmask(SIG_SETMASK, &block, NULL);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int s = 1; s < 65; s++)
        if (s != SIGKILL && s != SIGSTOP && (s < 32 || s > 33) && !sigismember(&mask, s))
            printf("signal %d is not blocked\n", s);
    signal(SIGUSR2, on_inner);
    churn();
    raise(SIGUSR2);
    sigpending(&pending);
    printf("pending usr2 %d usr1 %d\n", sigismember(&pending, SIGUSR2), sigismember(&pending, SIGUSR1));
    sigemptyset(&block);
    sigprocmask(SIG_SETMASK, &block, NULL);
    printf("end\n");
    return 3;
}
