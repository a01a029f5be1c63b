/* SPDX-License-Identifier: Apache-2.0 */
/* build: -no-pie */
/* mixed_mode.c - a program of 64 bits that executes code of 32 bits, as Wine does: loops of the two in turn,
 * with a timer whose signals arrive in both. The bytes of the loops of 32 bits mean something else, and do
 * not end, as code of 64 bits. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include "rounds.h"

enum { BYTES = 65536, COMPATIBLE = 0x23 };

extern char back[];
static volatile sig_atomic_t hits[2];
static volatile uint32_t table[65536];

static void hit(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    hits[(uint16_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_CSGSFS] == COMPATIBLE]++;
}

static uint32_t run(void *code, void *stack, uint32_t rounds)
{
    uint32_t result;
    __asm__ volatile("mov %%rsp, %%r12\n\t"
                     "mov %2, %%rsp\n\t"
                     "mov %3, %%ecx\n\t"
                     "pushq $0x23\n\t"
                     "push %1\n\t"
                     "lretq\n\t"
                     ".globl back\n"
                     "back:\n\t"
                     "mov %%r12, %%rsp\n\t"
                     "mov %%eax, %0"
                     : "=r"(result)
                     : "r"(code), "r"(stack), "r"(rounds)
                     : "rax", "rcx", "rdx", "rbx", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
    return result;
}

/* Some kernels have no segment for code of 32 bits. */
static int has_segment(unsigned selector)
{
    unsigned rights;
    unsigned char found;
    __asm__("lar %2, %0\n\tsetz %1" : "=r"(rights), "=r"(found) : "r"(selector) : "cc");
    return found;
}

int main(int argc, char **argv)
{
    int turns = argc > 1 ? atoi(argv[1]) : 40;
    uint32_t rounds = argc > 2 ? (uint32_t)atoi(argv[2]) : 2000000;
    unsigned char *memory =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_32BIT | MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (memory == MAP_FAILED || !has_segment(COMPATIBLE))
        return 77;
    uint32_t target = (uint32_t)(uintptr_t)back;
    /* xor eax, eax; push eax; pop eax; inc eax; dec ecx; jnz to the push; ljmp 0x33:back */
    static const unsigned char code[] = {0x31, 0xc0, 0x50, 0x58, 0x40, 0x49, 0x75, 0xfa, 0xea},
                               segment[] = {0x33, 0};
    memcpy(memory, code, sizeof code);
    memcpy(memory + sizeof code, &target, sizeof target);
    memcpy(memory + sizeof code + sizeof target, segment, sizeof segment);
    struct sigaction action = {.sa_sigaction = hit, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &often, NULL);
    uint64_t sum = 0;
    for (int i = 0; i < turns; i++) {
        sum += run(memory, memory + BYTES - 256, rounds);
        for (int k = 0; k < rounds_of_work(1000000); k++)
            table[(uint32_t)k * 2654435761u >> 16]++;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
