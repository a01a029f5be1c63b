/* SPDX-License-Identifier: Apache-2.0 */
/* How a program ends. These come last: what is printed is printed before. */
#include "../hunt.h"

static void *last_worker(void *arg)
{
    struct run *r = arg;
    unrecorded_here++;
    make_pool(r, POOL_HEAP);
    for (;;)
        work(r, 1);
}

static void *last_sleeper(void *arg)
{
    (void)arg;
    for (;;)
        pause();
}

static void *last_exit(void *arg)
{
    sleep_us(3000);
    exit(*(int *)arg);
}

static void others(int n, int sleep)
{
    pthread_t t;
    for (int i = 0; i < n; i++)
        pthread_create(&t, NULL, sleep ? last_sleeper : last_worker, &shared->runs[RUNS - 1 - i]);
}

/* hunt: end */
static void end_return(struct run *r, int status /* 0..255 */, int n /* 0..2 */, int sleep /* 0..1 */)
{
    others(n, sleep);
    work(r, 5);
    exit(status);
}

/* hunt: end */
static void end_signal(struct run *r,
                       int sig /* SIGTERM SIGKILL SIGSEGV SIGABRT SIGTRAP SIGSYS SIGALRM SIGRTMIN */,
                       int n /* 0..2 */, int sleep /* 0..1 */)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    others(n, sleep);
    work(r, 5);
    signal(sig, SIG_DFL);
    kill(getpid(), sig);
    for (;;)
        pause();
}

/* hunt: end */
static void end_fault(struct run *r, int how /* 0..3 */, int n /* 0..2 */, int sleep /* 0..1 */)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    others(n, sleep);
    work(r, 5);
    if (how == 0)
        *(volatile int *)24 = 1;
    if (how == 1)
        __builtin_trap();
    if (how == 2)
        abort();
    int fd[2];
    CHECK(pipe(fd) == 0);
    close(fd[0]);
    (void)!write(fd[1], "x", 1);
    exit(9);
}

/* hunt: end */
static void end_by_thread(struct run *r, int status /* 1..100 */, int how /* 0..2 */)
{
    pthread_t t;
    static int answer;
    answer = status;
    pthread_create(&t, NULL, last_exit, &answer);
    work(r, 5);
    unrecorded_here++;
    if (how == 0)
        pthread_exit(NULL);
    for (;;)
        how == 1 ? (void)pause() : work(r, 1);
}

static void at_exit(void)
{
    work(&shared->runs[0], 5);
    write_all(1, "at exit\n", 8);
}

/* hunt: end */
static void end_at_exit(struct run *r, int quick /* 0..1 */)
{
    quick ? at_quick_exit(at_exit) : atexit(at_exit);
    work(r, 2);
    quick ? quick_exit(6) : exit(7);
}

/* Killed from outside, at any moment: the runner waits for the word, and a little longer. */
/* hunt: end kill */
static void end_killed(struct run *r, int n /* 0..2 */, int sleep /* 0..1 */, int calls /* 0..1 */)
{
    unrecorded_here++;
    others(n, sleep);
    write_all(1, "ready\n", 6);
    for (;;) {
        work(r, 1);
        if (calls)
            getppid();
    }
}

/* The same program anew, in the place of this one. */
/* hunt: end */
static void end_executed(struct run *r, int n /* 0..2 */, int sleep /* 0..1 */, int mask /* 0..2 */)
{
    char *argv[] = {"stage", "0", NULL};
    sigset_t set;
    others(n, sleep);
    work(r, 5);
    fill_mask(&set, mask);
    sigprocmask(SIG_SETMASK, &set, NULL);
    execv("/proc/self/exe", argv);
    exit(8);
}
