/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that the program causes and handles itself; the context that its handlers see is checked. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "rounds.h"

enum { ROUNDS = 2000 };
static char *page;
static volatile int repaired, skipped, trapped, divided;
static volatile uintptr_t fault_address, fault_pc;
static volatile int fault_code;
static sigjmp_buf env;
static greg_t seen[NGREG];
static uint8_t seen_xmm[16];

static void on_repair(int sig, siginfo_t *info, void *uc)
{
    (void)sig;
    (void)uc;
    fault_address = (uintptr_t)info->si_addr;
    fault_code = info->si_code;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    repaired++;
}

static void on_jump(int sig, siginfo_t *info, void *uc)
{
    (void)uc;
    fault_address = (uintptr_t)info->si_addr;
    fault_code = info->si_code;
    siglongjmp(env, sig);
}

static void on_ill(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    (void)sig;
    fault_address = (uintptr_t)info->si_addr;
    fault_pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
    memcpy(seen, uc->uc_mcontext.gregs, sizeof seen);
    memcpy(seen_xmm, &uc->uc_mcontext.fpregs->_xmm[5], sizeof seen_xmm);
    uc->uc_mcontext.gregs[REG_RIP] += 2; /* over the ud2 */
    uc->uc_mcontext.gregs[REG_RAX] += 1;
    skipped++;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    (void)sig;
    fault_code = info->si_code;
    fault_pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
    trapped++;
}

static void on_fpe(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    (void)sig;
    fault_code = info->si_code;
    uc->uc_mcontext.gregs[REG_RCX] = 7; /* the divisor; the division is tried again */
    divided++;
}

/* Some microseconds of the program's own between two faults: these are the kernel's, in which no burst
 * begins. */
static void work(void)
{
    for (volatile int i = 0; i < rounds_of_work(3000); i++)
        ;
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(sig, &a, NULL);
}

static void undefined(void)
{
    extern char undefined_here[];
    uint64_t rax = 41, sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        work();
        __asm__ volatile("movq $0x5eed, %%rbx\n\tmovq $-3, %%r8\n\tmovq $0x123456789, %%r15\n\t"
                         "movq %%r15, %%xmm5\n\tpunpcklqdq %%xmm5, %%xmm5\n\tstc\n\t"
                         ".globl undefined_here\nundefined_here: ud2\n\tadcq $0, %0"
                         : "+a"(rax)
                         :
                         : "rbx", "r8", "r15", "xmm5", "cc");
        sum += rax;
    }
    uint64_t half[2];
    memcpy(half, seen_xmm, sizeof half);
    printf(
        "ill: %d rax %llu sum %llu pc ok %d addr ok %d rbx %llx r8 %lld r15 %llx carry %lld xmm %llx %llx\n",
        skipped, (unsigned long long)rax, (unsigned long long)sum, fault_pc == (uintptr_t)undefined_here,
        fault_address == (uintptr_t)undefined_here, (unsigned long long)seen[REG_RBX],
        (long long)seen[REG_R8], (unsigned long long)seen[REG_R15], (long long)(seen[REG_EFL] & 1),
        (unsigned long long)half[0], (unsigned long long)half[1]);
}

int main(void)
{
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGSEGV, on_repair);
    unsigned sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        work();
        mprotect(page, 4096, PROT_NONE);
        page[i % 300] = (char)i;
        mprotect(page, 4096, PROT_READ);
        page[i % 300 + 1000] = (char)(i * 3);
        sum = sum * 31 + (unsigned char)page[i % 300] + (unsigned char)page[i % 300 + 1000];
    }
    printf("segv repaired %d sum %u last offset %ld code %d\n", repaired, sum,
           (long)(fault_address - (uintptr_t)page), fault_code);

    handle(SIGSEGV, on_jump);
    volatile int jumps = 0;
    for (volatile int i = 0; i < ROUNDS; i++) {
        work();
        if (sigsetjmp(env, 1) == SIGSEGV)
            jumps++;
        else
            *(volatile char *)(uintptr_t)(0x1000 + i % 300) = 1;
    }
    printf("segv jumped %d address %lx code %d\n", jumps, (unsigned long)fault_address, fault_code);
    if (sigsetjmp(env, 1) == 0)
        ((void (*)(void))(uintptr_t)0x2340)(); /* a jump into nothing */
    else
        printf("jump into nothing: address %lx code %d\n", (unsigned long)fault_address, fault_code);
    if (sigsetjmp(env, 1) == 0)
        (void)*(volatile int *)(uintptr_t)0x8000000000000000ull; /* not canonical: general protection */
    else
        printf("not canonical: address %lx code %d\n", (unsigned long)fault_address, fault_code);

    handle(SIGILL, on_ill);
    undefined();

    handle(SIGTRAP, on_trap);
    for (int i = 0; i < ROUNDS; i++) {
        work();
        extern char after_trap[];
        __asm__ volatile("int3\n.globl after_trap\nafter_trap: nop");
        if (fault_pc != (uintptr_t)after_trap)
            printf("trap pc wrong\n");
    }
    printf("trap %d code %d\n", trapped, fault_code);

    handle(SIGFPE, on_fpe);
    long quotients = 0;
    for (int i = 0; i < ROUNDS; i++) {
        work();
        long q = 1000 + i, rest, divisor = 0;
        __asm__ volatile("cqo\n\tidivq %2" : "+a"(q), "=&d"(rest), "+c"(divisor));
        quotients += q * 10 + rest;
    }
    printf("fpe %d code %d quotients %ld\n", divided, fault_code, quotients);

    char name[] = "/tmp/cachegram-target-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    if (ftruncate(fd, 8192) != 0)
        return 1;
    char *file = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    file[5000] = 1;
    if (ftruncate(fd, 4096) != 0)
        return 1;
    handle(SIGBUS, on_jump);
    volatile int buses = 0;
    for (volatile int i = 0; i < ROUNDS; i++) {
        work();
        if (sigsetjmp(env, 1) == SIGBUS)
            buses++;
        else
            file[4096 + i % 300] = 1;
    }
    printf("bus %d offset %ld code %d\n", buses, (long)(fault_address - (uintptr_t)file), fault_code);
    return 0;
}
