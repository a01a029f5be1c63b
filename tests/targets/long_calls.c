/* SPDX-License-Identifier: Apache-2.0 */
/*
 * long_calls N: N rounds of a system call that takes about a millisecond of CPU time (zeros are read), of .1
 * ms that only stores, of .25 ms that only loads, and of 1 ms that does both. Prints how many loads and
 * stores the loops made; the few around are not told.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char zeros[32 << 20];
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
    int fd = open("/dev/zero", O_RDONLY);
    for (long i = 0; i < rounds; i++) {
        if (read(fd, zeros, sizeof zeros) != sizeof zeros)
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
