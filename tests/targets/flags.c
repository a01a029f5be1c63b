/* SPDX-License-Identifier: Apache-2.0 */
/* Runs with the alignment check flag set (in user code: an unaligned access is a SIGBUS) through calls,
 * system calls and signals, as detectors of old CPUs do for a moment; then with the direction flag set. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int seen, faults;
static sigjmp_buf back;

static void handler(int sig)
{
    seen += sig == SIGUSR1;
}

static void on_bus(int sig)
{
    faults += sig == SIGBUS;
    __asm__ volatile("pushfq; andq $~0x40000, (%%rsp); popfq" : : : "cc", "memory");
    siglongjmp(back, 1);
}

/* Raw: libc's own code need not bear the flag. */
static long system_call(long n, long a, long b)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b) : "rcx", "r11", "memory");
    return result;
}

static uint64_t work(uint64_t x)
{
    for (int i = 0; i < 200000; i++)
        x = x * 6364136223846793005ull + 1442695040888963407ull;
    return x;
}

int main(void)
{
    uint64_t digest = 1, wrong = 0;
    long pid = getpid();
    signal(SIGUSR1, handler);
    signal(SIGBUS, on_bus);
    for (int i = 0; i < 60; i++) {
        uint64_t flags;
        __asm__ volatile("pushfq; orq $0x40000, (%%rsp); popfq" : : : "cc", "memory");
        digest = work(digest);
        system_call(SYS_kill, pid, SIGUSR1);
        system_call(SYS_getppid, 0, 0);
        __asm__ volatile("pushfq; mov (%%rsp), %0; andq $~0x40000, (%%rsp); popfq"
                         : "=r"(flags)
                         :
                         : "cc", "memory");
        wrong += !(flags & 0x40000);
    }
    char bytes[64] = {0};
    if (!sigsetjmp(back, 1)) {
        __asm__ volatile("pushfq; orq $0x40000, (%%rsp); popfq; mov (%0), %%rax"
                         :
                         : "r"(bytes + 1)
                         : "rax", "cc", "memory");
        wrong++;
    }
    for (int i = 0; i < 20000; i++) {
        memset(bytes, i, sizeof bytes);
        __asm__ volatile("std; rep movsb; cld"
                         :
                         : "S"(bytes + 20), "D"(bytes + 40), "c"(10L)
                         : "cc", "memory");
        digest += (uint64_t)bytes[35];
    }
    printf("digest %llu, signals %d, faults %d, wrong %llu\n", (unsigned long long)digest, seen, faults,
           (unsigned long long)wrong);
    return 0;
}
