/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads all memory of its process that may be read, again and again, as collectors of garbage, checkpoints
 * and dumps of oneself do: by loads, through system calls, alone and from several threads, beside others.
 *
 * usage: read_all HOW ROUNDS [beside]
 *   HOW: loads, write (to a pipe and to /dev/null), vm (process_vm_readv of itself), mem (/proc/self/mem),
 * threads (loads from three threads at a time) beside: while other threads sleep, compute, and make system
 * calls or:    read_all close: makes a profiler's memory, if there is some, unusable, which must end the
 * program, not hang it
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "../../src/wire/wire.h"

#define PIECE 65536u
#define PAGE 4096u
#define LARGE (2u << 20) /* not every word of what is larger, but every page */
#define MOST 4000
#define FIRST_PART (offsetof(struct wire_proc, watching) / PAGE * PAGE)

struct range {
    uintptr_t low, high;
};

static volatile int over;
static unsigned long sum;

/* What may be read, by the list of mappings; without the kernel's own, and what devices and the like are
 * behind. */
static int list(struct range *ranges)
{
    static __thread char text[1 << 20];
    size_t have = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), n = 0;
    for (ssize_t got; (got = read(fd, text + have, sizeof text - 1 - have)) > 0;)
        have += (size_t)got;
    close(fd);
    text[have] = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        unsigned long low, high;
        char rights[8], name[8] = "";
        *end = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %7s", &low, &high, rights, name) < 3 || rights[0] != 'r' ||
            strncmp(name, "[v", 2) == 0 || strncmp(name, "/dev/", 5) == 0)
            continue;
        if (n < MOST)
            ranges[n++] = (struct range){low, high};
    }
    return n;
}

static unsigned long by_loads(const struct range *r)
{
    unsigned long s = 0;
    uintptr_t step = r->high - r->low > LARGE ? PAGE / 4 : 8;
    for (uintptr_t at = r->low; at < r->high; at += step)
        s += *(volatile const unsigned long *)at;
    return s;
}

static void fail(const char *what, const struct range *r)
{
    printf("%s at %s: %s\n", what, r->high - r->low > PAGE ? "a mapping" : "a page", strerror(errno));
    fflush(stdout);
    _exit(1);
}

static void by_write(const struct range *r, const int *ends, int null)
{
    static char back[PIECE];
    for (uintptr_t at = r->low; at < r->high; at += PIECE) {
        size_t bytes = r->high - at < PIECE ? r->high - at : PIECE;
        if (write(null, (const void *)at, bytes) != (ssize_t)bytes ||
            write(ends[1], (const void *)at, bytes) != (ssize_t)bytes)
            fail("write", r);
        for (size_t have = 0; have < bytes;) {
            ssize_t got = read(ends[0], back, bytes - have);
            if (got <= 0)
                fail("read", r);
            have += (size_t)got;
        }
    }
}

static void by_vm(const struct range *r)
{
    static char back[PIECE];
    for (uintptr_t at = r->low; at < r->high; at += PIECE) {
        size_t bytes = r->high - at < PIECE ? r->high - at : PIECE;
        struct iovec to = {back, bytes}, from = {(void *)at, bytes};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)bytes)
            fail("process_vm_readv", r);
    }
}

static void by_mem(const struct range *r, int mem)
{
    static char back[PIECE];
    for (uintptr_t at = r->low; at < r->high; at += PIECE) {
        size_t bytes = r->high - at < PIECE ? r->high - at : PIECE;
        if (pread(mem, back, bytes, (off_t)at) != (ssize_t)bytes)
            fail("/proc/self/mem", r);
    }
}

static void *loads(void *rounds)
{
    struct range *ranges = malloc(MOST * sizeof *ranges);
    unsigned long s = 0;
    int n = list(ranges);
    for (long round = 0; round < (long)rounds; round++)
        for (int i = 0; i < n; i++)
            s += by_loads(&ranges[i]);
    free(ranges);
    return (void *)s;
}

/* From where the table of watched lines lies in the process' slot. */
static void close_foreign(void)
{
    unsigned long low, high;
    char line[512], rights[8];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "/memfd:cachegram") && sscanf(line, "%lx-%lx %7s", &low, &high, rights) == 3 &&
            high - low > LARGE)
            mprotect((void *)(low + FIRST_PART), high - low - FIRST_PART, PROT_NONE);
    if (maps)
        fclose(maps);
}

static void *sleeps(void *nothing)
{
    while (!over)
        nanosleep(&(struct timespec){0, 3000000}, NULL);
    return nothing;
}

static void *computes(void *nothing)
{
    static double table[4096];
    while (!over)
        for (int i = 1; i < 4096; i++)
            table[i] = table[i - 1] * 0.5 + i;
    return nothing;
}

static void *calls(void *nothing)
{
    char byte = 0;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (!over) {
        if (write(null, &byte, 1) != 1)
            abort();
        sched_yield();
    }
    close(null);
    return nothing;
}

int main(int argc, char **argv)
{
    static struct range ranges[MOST];
    pthread_t other[3], reader[3];
    int ends[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC),
                 mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    const char *how = argc > 1 ? argv[1] : "loads";
    long rounds = argc > 2 ? atol(argv[2]) : 1;
    int beside = argc > 3;
    void *(*const what[3])(void *) = {sleeps, computes, calls};
    if (pipe2(ends, O_CLOEXEC) || fcntl(ends[1], F_SETPIPE_SZ, PIECE) < 0 || null < 0 || mem < 0)
        return 2;
    for (int i = 0; beside && i < 3; i++)
        pthread_create(&other[i], NULL, what[i], NULL);
    if (strcmp(how, "threads") == 0) {
        for (int i = 0; i < 3; i++)
            pthread_create(&reader[i], NULL, loads, (void *)rounds);
        for (int i = 0; i < 3; i++)
            pthread_join(reader[i], NULL);
    }
    for (long round = 0; strcmp(how, "threads") != 0 && strcmp(how, "close") != 0 && round < rounds;
         round++) {
        int n = list(ranges);
        for (int i = 0; i < n; i++)
            if (how[0] == 'l')
                sum += by_loads(&ranges[i]);
            else if (how[0] == 'w')
                by_write(&ranges[i], ends, null);
            else if (how[0] == 'v')
                by_vm(&ranges[i]);
            else
                by_mem(&ranges[i], mem);
    }
    if (strcmp(how, "close") == 0) {
        close_foreign();
        nanosleep(&(struct timespec){0, 200000000}, NULL);
    }
    over = 1;
    for (int i = 0; beside && i < 3; i++)
        pthread_join(other[i], NULL);
    puts("done");
    return 3;
}
