/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweeps WHAT KB KB ROUNDS: two threads that read memory from end to end, a byte of each line, again and
 * again.
 *
 *   own    each its own, of so many KB; both at the same time, sweep by sweep
 *   turns  all of the first one's, one after the other: a line that one has read is next read by the other
 *   one    the first thread alone
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t turn;
static const char *what;
static int rounds;

struct part {
    char *memory;
    size_t bytes;
    int number;
};

static void sweep(const struct part *p)
{
    for (size_t i = 0; i < p->bytes; i += 64)
        (void)*(volatile char *)(p->memory + i);
}

static void *run(void *argument)
{
    const struct part *p = argument;
    int turns = strcmp(what, "turns") == 0;
    for (int n = 0; n < rounds; n++) {
        if (!turns || n % 2 == p->number)
            sweep(p);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct part parts[2];
    pthread_t thread[2];
    if (argc != 5)
        return 2;
    what = argv[1];
    rounds = atoi(argv[4]);
    pthread_barrier_init(&turn, NULL, strcmp(what, "one") == 0 ? 1 : 2);
    for (int i = 0; i < 2; i++)
        parts[i] = (struct part){.bytes = strtoul(argv[2 + i], NULL, 10) << 10, .number = i};
    for (int i = 0; i < 2; i++)
        parts[i].memory = aligned_alloc(64, parts[i].bytes);
    if (strcmp(what, "turns") == 0)
        parts[1] = (struct part){parts[0].memory, parts[0].bytes, 1};
    if (strcmp(what, "one") == 0) {
        run(&parts[0]);
        return 0;
    }
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, run, &parts[i]) != 0)
            return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    puts("swept");
    return 0;
}
