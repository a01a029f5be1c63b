/* SPDX-License-Identifier: Apache-2.0 */
/* siglongjmp out of handlers of synchronous and asynchronous signals, many times, with and without mask. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf env;
static volatile unsigned long spin;

static void jump(int sig)
{
    siglongjmp(env, sig);
}

int main(void)
{
    struct sigaction a = {0};
    volatile int raised = 0, timed = 0, faulted = 0;
    a.sa_handler = jump;
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGALRM, &a, NULL);
    sigaction(SIGSEGV, &a, NULL);

    for (volatile int i = 0; i < 2000; i++) {
        if (sigsetjmp(env, 1) == SIGUSR1)
            raised++;
        else
            raise(SIGUSR1);
    }
    for (volatile int i = 0; i < 2000; i++) {
        if (sigsetjmp(env, 1) == SIGSEGV)
            faulted++;
        else
            *(volatile int *)(uintptr_t)(16 + i) = i;
    }
    for (volatile int i = 0; i < 50; i++) {
        if (sigsetjmp(env, 1) == SIGALRM) {
            timed++;
            continue;
        }
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 2000}}, NULL);
        for (;;)
            spin++;
    }
    sigset_t now;
    sigprocmask(SIG_SETMASK, NULL, &now);
    printf("raised %d faulted %d timed %d blocked %d %d %d\n", raised, faulted, timed,
           sigismember(&now, SIGUSR1), sigismember(&now, SIGALRM), sigismember(&now, SIGSEGV));

    /* Without restoring the mask the signal stays blocked: undo it by hand. */
    if (sigsetjmp(env, 0) == 0)
        raise(SIGUSR1);
    sigprocmask(SIG_SETMASK, NULL, &now);
    printf("left blocked %d\n", sigismember(&now, SIGUSR1));
    return 0;
}
