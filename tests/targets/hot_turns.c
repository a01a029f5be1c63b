// SPDX-License-Identifier: Apache-2.0
/* Thirty-two short loops one after the other, each over the hot field of its own table. */
#include <stdio.h>

#define COUNT 4096
#define TABLES(of)                                                                                        \
    of(0) of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8) of(9) of(10) of(11) of(12) of(13) of(14) of(15) \
        of(16) of(17) of(18) of(19) of(20) of(21) of(22) of(23) of(24) of(25) of(26) of(27) of(28) of(29) \
            of(30) of(31)

struct record {
    long cold[9];
    long hot;
    long more[6];
};

#define TABLE(n)                                               \
    static struct record table_##n[COUNT];                     \
    static __attribute__((noinline)) long turn_##n(int rounds) \
    {                                                          \
        volatile long work[8] = {0};                           \
        long sum = 0;                                          \
        for (int r = 0; r < rounds; r++)                       \
            for (unsigned i = 0, at = 0; i < COUNT; i++) {     \
                for (int k = 0; k < 5; k++) /* hits */         \
                    work[k]++;                                 \
                sum += table_##n[at].hot++;                    \
                at = (at * 5 + 1235) % COUNT;                  \
            }                                                  \
        return sum + work[0];                                  \
    }
TABLES(TABLE)

int main(void)
{
    long sum = 0;
#define TURN(n) sum += turn_##n(8);
    TABLES(TURN)
    printf("%ld\n", sum);
}
