/* SPDX-License-Identifier: Apache-2.0 */
/*
 * new_pages N: N rounds of some 20 us that only loads, from one line, and of stores into 64 new pages, which
 * take the kernel many times as long. Prints how many loads and stores were made; the few of the loops are
 * not reported.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGES 64
#define PAGE 4096
#define STORES 64 /* a page */
#define LOADS 20000

static uint64_t words[8];

static void load(long n)
{
    for (long i = 0; i < n; i++)
        __asm__ volatile("mov (%0), %%rax\n\tadd 8(%0), %%rax\n\tadd 16(%0), %%rax"
                         :
                         : "r"(words)
                         : "rax", "memory", "cc");
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1, loads = 0, stores = 0;
    uint32_t random = 7;
    char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return 1;
    for (long i = 0; i < rounds; i++) {
        random = random * 1664525u + 1013904223u;
        long n = (long)(random >> 8) % (2 * LOADS); /* not always as long as each other */
        load(n);
        for (long page = 0; page < PAGES; page++)
            for (long k = 0; k < STORES; k++)
                __asm__ volatile("movb $1, (%0)" : : "r"(pages + page * PAGE + k * 64) : "memory");
        madvise(pages, PAGES * PAGE, MADV_DONTNEED);
        loads += 3 * n;
        stores += PAGES * STORES;
    }
    printf("loads %ld stores %ld\n", loads, stores);
    return 0;
}
