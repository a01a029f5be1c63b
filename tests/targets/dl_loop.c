/* SPDX-License-Identifier: Apache-2.0 */
/* build: -ldl -pthread */
/* dlopen and dlclose of two different libraries in turn: results must be those of the one that is loaded.
 * With a third argument another thread runs meanwhile: then translated code becomes stale, but is not
 * discarded. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "rounds.h"

static int expected(int which, int x, const int *table)
{
    int sum = which ? 2 : 1;
    for (int i = 0; i < 64; i++)
        sum = which ? sum * 5 - table[i] - x : sum * 3 + table[i] + x;
    return sum;
}

static volatile int done;

static void *busy(void *arg)
{
    volatile unsigned x = 1;
    while (!done)
        x = x * 5 + 1;
    return arg;
}

int main(int argc, char **argv)
{
    const char *name[2] = {argv[1], argv[2]};
    int table[64], wrong = 0;
    unsigned digest = 0;
    if (argc < 3)
        return 2;
    for (int i = 0; i < 64; i++)
        table[i] = i * i;
    pthread_t thread;
    if (argc > 3 && pthread_create(&thread, NULL, busy, NULL))
        return 2;
    for (int round = 0; round < 300; round++) {
        void *lib = dlopen(name[round & 1], RTLD_NOW | RTLD_LOCAL);
        if (!lib) {
            printf("%s\n", dlerror());
            return 1;
        }
        int (*plugin)(int, const int *) = (int (*)(int, const int *))dlsym(lib, "plugin");
        for (int i = 0; i < rounds_of_work(1000); i++) {
            int got = plugin(i, table);
            wrong += got != expected(round & 1, i, table);
            digest = digest * 31 + (unsigned)got;
        }
        dlclose(lib);
    }
    done = 1;
    if (argc > 3)
        pthread_join(thread, NULL);
    printf("wrong %d digest %u\n", wrong, digest);
    return wrong != 0;
}
