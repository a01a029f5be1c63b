/* SPDX-License-Identifier: Apache-2.0 */
/*
 * long_calls N: N rounds of a system call that takes about a millisecond of CPU time (zeros are read; half of
 * it to one and a half, or the rounds might keep step with the kernel's ticks), of 0.1 ms that only stores,
 * of 0.25 ms that only loads, and of 1 ms that does both. Prints how many loads and stores the loops made;
 * the few around are not reported.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST = 16 << 20 };

static char zeros[3 * LEAST];
static unsigned long words[8];

static void store(long n)
{
    for (long i = 0; i < n; i++)
        __asm__ volatile("mov %%rax, (%0)\n\tmov %%rax, 8(%0)\n\t.rept 4\n\timul %%rcx, %%rcx\n\t.endr"
                         :
                         : "r"(words)
                         : "rcx", "memory", "cc");
}

static void load(long n)
{
    for (long i = 0; i < n; i++)
        __asm__ volatile("mov (%0), %%rax\n\tmov 8(%0), %%rax\n\t.rept 4\n\timul %%rcx, %%rcx\n\t.endr"
                         :
                         : "r"(words)
                         : "rax", "rcx", "memory", "cc");
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1, loads = 0, stores = 0;
    unsigned random = 1;
    int fd = open("/dev/zero", O_RDONLY);
    for (long i = 0; i < rounds; i++) {
        random = random * 1664525 + 1013904223;
        size_t bytes = LEAST + random % (2 * LEAST);
        if (read(fd, zeros, bytes) != (ssize_t)bytes)
            return 1;
        store(25000);
        load(62500);
        for (long k = 0; k < 250; k++) {
            load(500);
            store(500);
        }
        loads += 2 * (62500 + 250 * 500);
        stores += 2 * (25000 + 250 * 500);
    }
    printf("loads %ld stores %ld\n", loads, stores);
    return 0;
}
