/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Misses on one data object at a time: hot_objects WHAT ROUNDS [FILE]. WHAT: global (a matrix, by columns),
 * static (a table in a function, at random), stack (of a thread), main (the main thread's stack), file
 * (mapped, FILE), tls (thread-local, of a thread). Between rounds a small array is read, which always hits.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROWS 1024
#define BYTES (512u * 1024)

double matrix[ROWS][256];
static uint64_t small_array[256];
static volatile uint64_t sink;
static int rounds;

static __attribute__((noinline)) void read_small(void)
{
    uint64_t sum = 0;
    for (int k = 0; k < 200; k++)
        for (int i = 0; i < 256; i++)
            sum += small_array[i];
    sink += sum;
}

static __attribute__((noinline)) void by_columns(void)
{
    double sum = 0;
    for (int column = 0; column < 256; column += 8)
        for (int row = 0; row < ROWS; row++)
            sum += matrix[row][column];
    sink += (uint64_t)sum;
}

/* Every line of it, in an order that no prefetcher knows. */
static __attribute__((noinline)) void at_random(const volatile unsigned char *bytes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0, at = 0; i < BYTES / 64; i++, at = (at + 4099) % (BYTES / 64))
        sum += bytes[64 * at];
    sink += sum;
}

static __attribute__((noinline)) void use_static(void)
{
    static unsigned char table[BYTES];
    at_random(table);
}

static __attribute__((noinline)) void *use_stack(void *arg)
{
    volatile unsigned char local[BYTES];
    if (arg != NULL)
        printf("%ld\n", syscall(SYS_gettid));
    for (size_t i = 0; i < BYTES; i += 64)
        local[i] = (unsigned char)i;
    for (int i = 0; i < rounds; i++) {
        at_random(local);
        read_small();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    rounds = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "stack") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, use_stack, &rounds) != 0)
            return 1;
        pthread_join(thread, NULL);
    } else if (strcmp(what, "main") == 0) {
        use_stack(NULL);
    } else if (strcmp(what, "file") == 0) {
        int fd = open(argv[3], O_RDWR | O_CREAT, 0600);
        if (fd < 0 || ftruncate(fd, BYTES) != 0)
            return 1;
        unsigned char *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        for (int i = 0; i < rounds && mapped != MAP_FAILED; i++) {
            at_random(mapped);
            read_small();
        }
    } else if (strcmp(what, "mmap") == 0) {
        unsigned char *mapped =
            mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); // mmap
        for (int i = 0; i < rounds && mapped != MAP_FAILED; i++) {
            at_random(mapped);
            read_small();
        }
    } else {
        for (int i = 0; i < rounds; i++) {
            if (strcmp(what, "global") == 0)
                by_columns();
            else
                use_static();
            read_small();
        }
    }
    return 0;
}
