/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_kinds KIND N: some ten seconds of what profilers stumble over, for scripts/bench-accuracy.py. N is
 * the work.
 *
 *  cold     maps 64 MB, writes each word once, unmaps, N times: nothing is ever reused
 *  stream   N times a[i] = b[i] + c[i] over arrays of 256 MB each
 *  heap     1.2 GB in nodes; N million steps, most of them to one of few nodes, some to any
 *  churn    N million times allocates or frees one of 20,000 pieces, of 16 bytes to 1 MB, and writes it
 *  threads  8 threads, N million steps each: a table of its own and one that all share
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MB ((size_t)1 << 20)
#define THREADS 8

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *need(void *memory)
{
    if (memory == NULL || memory == MAP_FAILED) {
        perror("bench_kinds");
        exit(1);
    }
    return memory;
}

static uint64_t cold(long n)
{
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) {
        uint64_t *p = need(mmap(NULL, 64 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        for (size_t k = 0; k < 64 * MB / sizeof *p; k++)
            p[k] = k ^ (uint64_t)i;
        sum += p[(size_t)i];
        munmap(p, 64 * MB);
    }
    return sum;
}

static uint64_t stream(long n)
{
    size_t words = 256 * MB / sizeof(double);
    double *a = need(malloc(3 * words * sizeof *a)), *b = a + words, *c = b + words;
    for (size_t i = 0; i < 3 * words; i++) /* untouched pages would all be one */
        a[i] = 1;
    for (long round = 0; round < n; round++)
        for (size_t i = 0; i < words; i++)
            a[i] = b[i] + c[i];
    return (uint64_t)a[words / 2];
}

struct node {
    uint64_t value, link[7];
};

static uint64_t heap(long n)
{
    size_t count = 1200 * MB / sizeof(struct node);
    struct node *nodes = need(malloc(count * sizeof *nodes));
    uint64_t random = 7, sum = 0;
    for (size_t i = 0; i < count; i++)
        nodes[i] = (struct node){i, {i * 7 % count}};
    for (long i = 0; i < n * 1000000; i++) {
        uint64_t draw = next(&random);
        /* Nine of ten among the first 2,000, most of the rest among as many as fit into 4 MB. */
        size_t among = draw % 10 ? 2000 : draw % 100 ? 65536 : count;
        struct node *at = &nodes[(draw >> 8) % among];
        sum += at->value++ + at->link[draw >> 3 & 1];
    }
    return sum;
}

static uint64_t churn(long n)
{
    static char *piece[20000];
    uint64_t random = 7, sum = 0;
    for (long i = 0; i < n * 1000000; i++) {
        uint64_t draw = next(&random);
        char **slot = &piece[draw % 20000];
        if (*slot) {
            sum += (unsigned char)**slot;
            free(*slot);
            *slot = NULL;
            continue;
        }
        /* Sixteen bytes mostly, a megabyte once in 65,536 times. */
        size_t size = (size_t)16 << (draw >> 20 ? __builtin_ctzll(draw >> 20) : 0);
        size = size < MB ? size : MB;
        *slot = need(malloc(size));
        memset(*slot, (int)draw, size);
    }
    return sum;
}

static uint64_t shared[MB / 2];
static long steps;

static void *walk(void *argument)
{
    uint64_t random = 7 + (uintptr_t)argument, sum = 0;
    size_t words = 256 * 1024 / sizeof(uint64_t);
    uint64_t *own = need(calloc(words, sizeof *own));
    for (long i = 0; i < steps; i++) {
        uint64_t draw = next(&random);
        sum += own[draw % words]++;
        if (draw >> 40 & 7)
            continue;
        sum += __atomic_fetch_add(&shared[(draw >> 20) % (MB / 2)], 1, __ATOMIC_RELAXED);
    }
    free(own);
    return (void *)(uintptr_t)sum;
}

static uint64_t threads(long n)
{
    pthread_t thread[THREADS];
    uint64_t sum = 0;
    steps = n * 1000000;
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, walk, (void *)i) != 0)
            need(NULL);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(thread[i], &result);
        sum += (uintptr_t)result;
    }
    return sum;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint64_t (*run)(long n);
    } kinds[] = {{"cold", cold}, {"stream", stream}, {"heap", heap}, {"churn", churn}, {"threads", threads}};
    long n = argc == 3 ? atol(argv[2]) : 0;
    for (size_t i = 0; n > 0 && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(argv[1], kinds[i].name) == 0)
            return printf("%llu\n", (unsigned long long)kinds[i].run(n)) < 0;
    fprintf(stderr, "usage: bench_kinds cold|stream|heap|churn|threads N\n");
    return 2;
}
