/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that fault half-way, are repaired by the handler, and go on where they stopped. Prints the
 * addresses and bytes of the elements before the faults: they are touched once each, and are to be recorded
 * once.
 */
#include <immintrin.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#define PAGE 4096
#define COUNT 100
#define BEFORE 60

static char *memory; /* a page to use, and one that faults until it is repaired */
static int repaired;

static void on_fault(int sig)
{
    (void)sig;
    mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE);
    repaired++;
}

static void copy_forwards(void)
{
    static char from[COUNT];
    char *to = memory + PAGE - BEFORE;
    const void *source = from;
    size_t n = COUNT;
    mprotect(memory + PAGE, PAGE, PROT_NONE);
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(source), "+c"(n) : : "memory");
    for (int i = 0; i < BEFORE; i++)
        printf("%lx 1\n", (unsigned long)(memory + PAGE - BEFORE + i));
}

__attribute__((target("avx2"))) static void gather(void)
{
    static const int at[8] = {0, 64, 128, PAGE + 64, 256, PAGE, 320, 384};
    __m256i sum, index = _mm256_loadu_si256((const __m256i *)at);
    mprotect(memory + PAGE, PAGE, PROT_NONE);
    sum = _mm256_i32gather_epi32((const int *)memory, index, 1);
    __asm__ volatile("" : : "x"(sum));
    for (int i = 0; at[i] < PAGE; i++)
        printf("%lx 4\n", (unsigned long)(memory + at[i]));
}

__attribute__((target("avx512f,avx512vl"))) static void scatter(void)
{
    static const int at[8] = {8, 72, 136, 264, PAGE + 72, 328, PAGE + 8, 392};
    __m256i index = _mm256_loadu_si256((const __m256i *)at);
    mprotect(memory + PAGE, PAGE, PROT_NONE);
    _mm512_mask_i32scatter_epi64(memory, 0xfd, index, _mm512_set1_epi64(1), 1);
    for (int i = 0; at[i] < PAGE; i++)
        if (0xfd >> i & 1)
            printf("%lx 8\n", (unsigned long)(memory + at[i]));
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_fault};
    int expected = 1;
    memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || sigaction(SIGSEGV, &action, NULL) != 0)
        return 1;
    copy_forwards();
    if (__builtin_cpu_supports("avx2")) {
        gather();
        expected++;
    }
    if (__builtin_cpu_supports("avx512vl")) {
        scatter();
        expected++;
    }
    return repaired == expected ? 0 : 1;
}
