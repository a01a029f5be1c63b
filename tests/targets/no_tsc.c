/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_tsc: computes, forbids itself to read the processor's time stamp counter, computes on, and allows it
 * again, ten times; prints "ok" if nothing but its own reading failed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <x86intrin.h>

static sigjmp_buf back;
static volatile int failed;

static void on_fault(int sig)
{
    (void)sig;
    failed++;
    siglongjmp(back, 1);
}

static unsigned long compute(void)
{
    static unsigned long cells[1024];
    for (unsigned long i = 1; i < 20000000; i++)
        cells[i * 7 & 1023] += i ^ cells[i & 1023];
    return cells[5];
}

int main(void)
{
    struct sigaction act = {.sa_handler = on_fault};
    unsigned long sum = 0;
    int seen = 0;
    sigaction(SIGSEGV, &act, NULL);
    for (int round = 0; round < 10; round++) {
        sum += compute();
        if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
            return 2;
        sum += compute();
        if (sigsetjmp(back, 1) == 0)
            seen += __rdtsc() != 0;
        prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
        seen += __rdtsc() == 0;
    }
    printf("%s\n", failed == 10 && seen == 0 && sum ? "ok" : "no");
    return 0;
}
