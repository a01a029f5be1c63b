/* SPDX-License-Identifier: Apache-2.0 */
/* Asks again and again for masks of signals in ways that the kernel refuses, between computations. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "work.h"

enum { ROUNDS = 300, WORK = 100000, NO_WAY = 1700 };

int main(void)
{
    sigset_t set;
    uint64_t digest = 1;
    int wrong = 0;
    sigemptyset(&set);
    for (int i = 0; i < ROUNDS; i++) {
        digest = scatter(digest, WORK);
        wrong += pthread_sigmask(NO_WAY, &set, NULL) != EINVAL;
        wrong += syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)8, NULL, 8) != -1 || errno != EFAULT;
        wrong += syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, NULL, 7) != -1 || errno != EINVAL;
    }
    printf("digest %llu wrong %d\n", (unsigned long long)digest, wrong);
    return 3;
}
