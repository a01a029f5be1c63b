/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays on stacks, each of which misses in a small cache: of main, used by a function that is called; of two
 * functions that use the same memory in turns; of two blocks of one function, likewise; of a thread. Deep
 * calls below main, so that its frame is not near the stack pointer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (512 << 10)
#define LINES (BYTES / 64)
#define NOINLINE __attribute__((noinline))

struct cell {
    long key, next;
    char unused[112];
};

static long rounds = 20;

static NOINLINE long walk(volatile char *from)
{
    long sum = 0;
    for (long i = 0; i < LINES; i++)
        sum += from[64 * (i * 7 % LINES)];
    return sum;
}

static NOINLINE long first(long seed)
{
    char red[BYTES];
    memset(red, (int)seed, sizeof red);
    return walk(red) + walk(red);
}

static NOINLINE long second(long seed)
{
    char blue[BYTES];
    memset(blue, (int)seed, sizeof blue);
    return walk(blue);
}

static NOINLINE long blocks(long seed)
{
    long sum = 0;
    {
        volatile char upper[BYTES];
        for (long i = 0; i < LINES; i++)
            upper[64 * i] = (char)seed;
        sum += upper[seed];
    }
    {
        volatile char lower[2 * BYTES];
        for (long i = 0; i < 2 * LINES; i++)
            lower[64 * i] = (char)seed;
        sum += lower[seed];
    }
    return sum;
}

static NOINLINE long deep(long depth, long (*function)(long), long seed)
{
    volatile long here = depth;
    return depth == 0 ? function(seed) : deep(depth - 1, function, seed) + here;
}

static NOINLINE long keys(const struct cell *cells, long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += cells[i * 7 % n].key;
    return sum;
}

static void *thread(void *sum)
{
    char own[BYTES];
    for (long r = 0; r < rounds; r++) {
        memset(own, (int)r, sizeof own);
        *(long *)sum += walk(own);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct cell cells[8192];
    long sum = 0;
    pthread_t other;
    rounds = argc > 1 ? atol(argv[1]) : rounds;
    memset(cells, 1, sizeof cells);
    for (long r = 0; r < rounds; r++) {
        sum += first(r) + second(r) + blocks(r);
        sum += keys(cells, 8192);
        sum += deep(40, second, r);
    }
    if (pthread_create(&other, NULL, thread, &sum) != 0 || pthread_join(other, NULL) != 0)
        return 1;
    printf("%ld\n", sum);
    return 0;
}
