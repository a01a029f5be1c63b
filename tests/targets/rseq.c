/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/*
 * Counters of which each CPU has its own, incremented in restartable sequences by more threads than there are
 * CPUs: no increment may be lost. argv[1]: "section" lists the descriptor where tools look for it, "hidden"
 * not.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/rseq.h>

enum { THREADS = 6, ROUNDS = 3000000, CPUS = 1024 };
static struct {
    volatile uint64_t n;
    uint64_t pad[7];
} counters[CPUS];
static int hidden;

static volatile struct rseq *area(void)
{
    return (volatile struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* clang-format off */
#define INCREMENT(name, section)                                                                       \
    static int name(uint32_t cpu)                                                                      \
    {                                                                                                  \
        uint64_t *counter = (uint64_t *)&counters[cpu % CPUS].n;                                       \
        __asm__ goto(                                                                                  \
            ".pushsection " section ", \"aw\"\n.balign 32\n"                                           \
            "9: .long 0, 0\n.quad 1f, 2f - 1f, 4f\n.popsection\n"                                      \
            "   lea 9b(%%rip), %%rax\n"                                                                \
            "   mov %%rax, 8(%[area])\n"                                                               \
            "1: cmp %[cpu], 4(%[area])\n"                                                              \
            "   jne %l[elsewhere]\n"                                                                   \
            "   mov (%[counter]), %%rax\n"                                                             \
            "   add $1, %%rax\n"                                                                       \
            "   test %%rax, %%rax\n"                                                                   \
            "   jz 3f\n"                                                                               \
            "3: mov %%rax, (%[counter])\n"                                                             \
            "2:\n"                                                                                     \
            ".pushsection .text.unlikely, \"ax\"\n"                                                    \
            "   .byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n" /* the signature that libc registers */    \
            "4: jmp %l[elsewhere]\n.popsection\n"                                                      \
            : : [area] "r"(area()), [cpu] "r"(cpu), [counter] "r"(counter)                             \
            : "rax", "memory", "cc" : elsewhere);                                                      \
        return 1;                                                                                      \
    elsewhere:                                                                                         \
        return 0;                                                                                      \
    }
INCREMENT(increment_listed, "__rseq_cs")
INCREMENT(increment_hidden, ".data")
/* clang-format on */

static void *work(void *argument)
{
    for (long i = 0; i < ROUNDS; i++)
        while (!(hidden ? increment_hidden(area()->cpu_id_start) : increment_listed(area()->cpu_id_start)))
            ;
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t t[THREADS];
    uint64_t sum = 0;
    hidden = argc > 1 && !strcmp(argv[1], "hidden");
    if (__rseq_size == 0) {
        puts("no rseq here");
        return 0;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < CPUS; i++)
        sum += counters[i].n;
    printf("sum %llu, missing %lld\n", (unsigned long long)sum, (long long)THREADS * ROUNDS - (long long)sum);
    return 0;
}
