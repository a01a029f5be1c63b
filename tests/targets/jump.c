/* SPDX-License-Identifier: Apache-2.0 */
/* setjmp and longjmp over many frames, ucontext coroutines that pass values in a ring. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { COROUTINES = 5, TURNS = 40000 };
static jmp_buf env;
static ucontext_t main_context, context[COROUTINES];
static unsigned long value = 1;
static volatile int bottom; /* 0; the compiler must not know that no call returns */

__attribute__((noinline)) static int down(int n)
{
    volatile int here = n;
    if (n <= bottom)
        longjmp(env, 9);
    return down(n - 1) + here;
}

static void coroutine(int self)
{
    double own = self; /* vector state must follow each stack */
    for (int i = 0; i < TURNS; i++) {
        value = value * 31 + (unsigned long)self;
        own = own * 1.0000001 + i;
        swapcontext(&context[self], &context[(self + 1) % COROUTINES]);
    }
    value ^= (unsigned long)own;
}

int main(void)
{
    volatile long jumps = 0;
    for (volatile int i = 0; i < 60000; i++) {
        if (setjmp(env) == 9)
            jumps++;
        else
            down(i % 40);
    }
    printf("jumps %ld\n", jumps);
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&context[i]);
        context[i].uc_stack.ss_sp = malloc(65536);
        context[i].uc_stack.ss_size = 65536;
        context[i].uc_link = &main_context;
        makecontext(&context[i], (void (*)(void))coroutine, 1, i);
    }
    swapcontext(&main_context, &context[0]);
    printf("value %lx\n", value);
    return 0;
}
