/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks while another thread loads and unloads a library: no child finds a descriptor that the program has
 * not opened. Prints how many did.
 *
 * usage: forks_meanwhile SECONDS LIBRARY
 */
/* build: -pthread -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 40 };
static volatile int stop;
static volatile char memory[1 << 20];
static const char *library;

static void *load(void *unused)
{
    while (!stop) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (handle)
            dlclose(handle);
        for (unsigned i = 0; i < 300000; i++)
            memory[i & (sizeof memory - 1)]++;
    }
    return unused;
}

/* Descriptors of files in /proc: a library may be open for dlopen itself. */
static int strays(void)
{
    int n = 0;
    for (int fd = 3; fd < MOST; fd++) {
        char path[64], to[256];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t got = readlink(path, to, sizeof to);
        n += got > 5 && !memcmp(to, "/proc", 5);
    }
    return n;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int bad = 0;
    if (argc < 3)
        return 2;
    library = argv[2];
    time_t end = time(NULL) + atoi(argv[1]);
    int before = strays();
    if (!dlopen(library, RTLD_NOW) || pthread_create(&thread, NULL, load, NULL))
        return 3;
    while (time(NULL) < end) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit(strays() != before);
        waitpid(child, &status, 0);
        bad += status != 0;
        usleep(300);
    }
    stop = 1;
    pthread_join(thread, NULL);
    printf("children with a stray descriptor: %d\n", bad);
    return 0;
}
