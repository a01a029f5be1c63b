/* SPDX-License-Identifier: Apache-2.0 */
/* A program at a low address, which maps memory larger than all addresses below its end: low MAPPINGS. */
/* build: -no-pie */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static volatile unsigned sum;

/* 64 functions. */
#define ONE(n)                                              \
    __attribute__((noinline)) static void function##n(void) \
    {                                                       \
        if (sum % 3 == 0)                                   \
            sum = sum * 5 + 1;                              \
        sum = sum + 1##n;                                   \
    }
#define FOUR(of, n) of(n##0) of(n##1) of(n##2) of(n##3)
#define SIXTEEN(of, n) FOUR(of, n##0) FOUR(of, n##1) FOUR(of, n##2) FOUR(of, n##3)
#define ALL(of) SIXTEEN(of, 1) SIXTEEN(of, 2) SIXTEEN(of, 3) SIXTEEN(of, 4)
#define CALL(n) function##n();
ALL(ONE)

int main(int argc, char **argv)
{
    int mappings = argc > 1 ? atoi(argv[1]) : 0;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 1000; i++) {
            ALL(CALL)
        }
        if (round < mappings &&
            mmap(NULL, 256u << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            return 1;
    }
    printf("%u\n", sum);
    return 0;
}
