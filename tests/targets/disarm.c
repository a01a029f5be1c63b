/* SPDX-License-Identifier: Apache-2.0 */
/* An alternate stack with SS_AUTODISARM: a handler may leave it for another context, where the next one
 * comes. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include "work.h"

#define AUTODISARM (1u << 31)

static ucontext_t of_handler, other;
static char of_other[65536], alternate[65536];
static volatile int depth, wrong;
static sigjmp_buf out;

static int on_alternate(const volatile void *p)
{
    return (const volatile char *)p >= alternate && (const volatile char *)p < alternate + sizeof alternate;
}

static void show(const char *what)
{
    stack_t now;
    sigaltstack(NULL, &now);
    printf("%s: flags %x size %zu ours %d\n", what, (unsigned)now.ss_flags, now.ss_size,
           now.ss_sp == alternate);
}

static void elsewhere(void)
{
    show("elsewhere");
    raise(SIGUSR1);
    setcontext(&of_handler);
}

static void handler(int sig)
{
    volatile unsigned char mark[256];
    int level = ++depth;
    memset((void *)(uintptr_t)mark, level, sizeof mark);
    printf("level %d, alternate %d\n", level, on_alternate(mark));
    show("in it");
    if (level == 1 && sig == SIGUSR1) {
        getcontext(&other);
        other.uc_stack.ss_sp = of_other;
        other.uc_stack.ss_size = sizeof of_other;
        other.uc_link = NULL;
        makecontext(&other, elsewhere, 0);
        swapcontext(&of_handler, &other);
    }
    churn(300000);
    for (size_t i = 0; i < sizeof mark; i++)
        wrong += mark[i] != level;
    depth--;
    if (sig == SIGUSR2)
        siglongjmp(out, 1);
}

int main(void)
{
    stack_t s = {.ss_sp = alternate, .ss_size = sizeof alternate, .ss_flags = (int)AUTODISARM};
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR2, &a, NULL);
    a.sa_flags = 0;
    sigaction(SIGHUP, &a, NULL);
    for (volatile int i = 0; i < 3; i++) {
        printf("set %d\n", sigaltstack(&s, NULL));
        show("before");
        churn(1000000);
        raise(SIGUSR1);
        show("behind");
        raise(SIGHUP); /* disarms, too */
        show("behind the plain one");
        if (sigsetjmp(out, 1) == 0)
            raise(SIGUSR2);
        show("jumped out");
        raise(SIGUSR1);
    }
    printf("wrong %d\n", wrong);
    return 0;
}
