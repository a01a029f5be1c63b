/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation functions with odd arguments, in threads, forked children and before main: prints what they did.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void *early;

__attribute__((constructor)) static void before_main(void)
{
    early = malloc(100);
    memset(early, 7, 100);
}

static void show(const char *what, const void *result)
{
    printf("%s: %s, errno %d\n", what, result == MAP_FAILED ? "failed" : result ? "ok" : "NULL", errno);
    errno = 0;
}

static void odd_arguments(void)
{
    volatile size_t most = SIZE_MAX, half = SIZE_MAX / 2 + 2;
    void *p = NULL, *q;
    errno = 0;
    show("malloc(0)", p = malloc(0));
    free(p);
    show("malloc(most)", malloc(most));
    show("malloc(half)", malloc(half));
    show("calloc overflow", calloc(half, 3));
    show("calloc(0, 0)", p = calloc(0, 0));
    free(p);
    show("realloc(NULL)", p = realloc(NULL, 10));
    show("realloc too much", realloc(p, most));
    show("realloc more", p = realloc(p, 100000));
    show("realloc(0)", realloc(p, 0));
    show("reallocarray overflow", reallocarray(NULL, half, 3));
    p = NULL;
    printf("posix_memalign: %d %d\n", posix_memalign(&p, 3, 10), p != NULL);
    printf("posix_memalign: %d %d\n", posix_memalign(&p, 4096, 5000), (uintptr_t)p % 4096 == 0);
    free(p);
    show("aligned_alloc", p = aligned_alloc(1 << 16, 1 << 20));
    printf("aligned %d\n", (uintptr_t)p % (1 << 16) == 0);
    free(p);
    show("memalign", p = memalign(128, 3));
    printf("usable %d\n", malloc_usable_size(p) >= 3);
    free(p);
    show("valloc", p = valloc(1));
    free(p);
    show("pvalloc", p = pvalloc(1));
    free(p);
    errno = 5;
    free(NULL);
    free(malloc(1 << 20));
    show("errno after free", NULL);
    show("mmap of nothing", mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    show("mmap", p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    printf("munmap %d\n", munmap((char *)p + 4096, 4096));
    printf("munmap %d errno %d\n", munmap((char *)p + 1, 4096), errno);
    *(volatile char *)p = 1;
    q = dlsym(RTLD_NEXT, "malloc");
    printf("next %d\n", q != NULL);
    char *text = NULL;
    printf("asprintf %d\n", asprintf(&text, "%d %s", 5, "words"));
    free(text);
}

/* Blocks keep what is written to them, and do not overlap. */
static int rounds = 16000;

static void *churn(void *seed)
{
    enum { SLOTS = 512 };
    struct {
        unsigned char *block;
        size_t bytes;
        unsigned char mark;
    } slots[SLOTS];
    unsigned r = (unsigned)(uintptr_t)seed;
    memset(slots, 0, sizeof slots);
    for (int i = 0; i < rounds; i++) {
        unsigned k = (r = r * 1103515245u + 12345u) >> 16 & (SLOTS - 1), how = r >> 8 & 7;
        size_t bytes = how == 7 ? 100000 : (r >> 4 & 255) + 1;
        for (size_t at = 0; at < slots[k].bytes; at += 97)
            if (slots[k].block[at] != slots[k].mark)
                return (void *)1;
        if (how == 0) {
            size_t kept = slots[k].bytes < bytes ? slots[k].bytes : bytes;
            slots[k].block = realloc(slots[k].block, bytes);
            for (size_t at = 0; at < kept; at += 97)
                if (slots[k].block[at] != slots[k].mark)
                    return (void *)2;
        } else {
            free(slots[k].block);
            slots[k].block = how == 1   ? calloc(1, bytes)
                             : how == 2 ? aligned_alloc(64, bytes)
                                        : malloc(bytes);
            if (how == 1 && slots[k].block[bytes - 1] != 0)
                return (void *)3;
        }
        slots[k].bytes = bytes;
        slots[k].mark = (unsigned char)i;
        memset(slots[k].block, slots[k].mark, bytes);
    }
    for (int k = 0; k < SLOTS; k++)
        free(slots[k].block);
    return NULL;
}

static void on_alarm(int sig)
{
    (void)sig;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    if (argc > 1)
        rounds = atoi(argv[1]);
    odd_arguments();
    signal(SIGALRM, on_alarm);
    ualarm(500, 500);
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        printf("thread %d: %ld\n", i, (long)(uintptr_t)wrong);
    }
    fflush(stdout);
    void *inherited = malloc(1 << 20);
    pid_t child = fork();
    if (child == 0) {
        free(inherited);
        printf("child: %ld\n", (long)(uintptr_t)churn((void *)9));
        fflush(stdout);
        _exit(0);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    printf("child ended %d, early %d\n", status, ((char *)early)[99]);
    free(inherited);
    free(early);
    return 0;
}
