/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads at work, at rest and at their ends while pages are closed: nothing fails, nothing is cut short,
 * no one waits for ever. Prints what went wrong and a sum of the memory.
 *
 * usage: watched_threads SCENE
 */
/* build: -pthread */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <linux/futex.h>
#include "watched.h"

enum { THREADS = 4, PART = PAGES / THREADS };
extern char **environ;
static atomic_long bad;
static atomic_int go_on = 1;

#undef CHECK
#define CHECK(what)                                                         \
    do {                                                                    \
        if (!(what) && atomic_fetch_add(&bad, 1) < 20)                      \
            printf("line %d: %s (%s)\n", __LINE__, #what, strerror(errno)); \
    } while (0)

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Touches a line of each of some pages, and then other memory for a while. */
static uint32_t churn_some(int first, int n, uint32_t *state, int rounds)
{
    static _Thread_local uint32_t hot[1024];
    uint32_t sum = 0;
    for (int i = first; i < first + n; i++)
        sum += *(volatile uint8_t *)&pool[i * PAGE + (int)(next_random(state) % PAGE)];
    uint32_t h = *state;
    for (int i = 0; i < rounds; i++) {
        hot[h & 1023] += (uint32_t)i;
        h = h * 69069 + hot[h >> 7 & 1023];
    }
    return sum;
}

/* A piece of the pool for one thread, on a page that others touch, too. */
static void *piece(int thread, int n, size_t bytes)
{
    return pool + n % PAGES * PAGE + (size_t)thread * 1024 + (1024 - bytes) / 64 * 32;
}

static void start(pthread_t *id, void *(*run)(void *), long n)
{
    CHECK(pthread_create(id, NULL, run, (void *)n) == 0);
}

static void join(pthread_t id)
{
    CHECK(pthread_join(id, NULL) == 0);
}

static void run_all(void *(*run)(void *), int n)
{
    pthread_t id[16];
    for (long i = 0; i < n; i++)
        start(&id[i], run, i);
    for (int i = 0; i < n; i++)
        join(id[i]);
}

/* --- all at the same pages --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *sharer(void *me)
{
    uint32_t state = (uint32_t)(long)me + 1;
    for (int i = 0; i < 150; i++) {
        churn_some(0, PAGES, &state, 5000);
        for (int k = 0; k < PAGES; k++) { /* each its own bytes, all on one line */
            uint8_t *line = pool + k * PAGE + i % 32 * 64;
            line[(long)me]++;
        }
        pthread_mutex_lock(&mutex);
        ((uint32_t *)(void *)(pool + 100 * 16))[1]++;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void share(void)
{
    run_all(sharer, THREADS);
}

/* --- asleep in calls, while others close pages --- */

enum { PIPE, POLL, EPOLL, SOCKET, CONDITION, NAP, FUTEX, SLEEPERS };
static int ends[SLEEPERS][2];
static struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t come;
    int there;
} * meeting;
static uint32_t *word;

static void sleep_in(int how, int round)
{
    char *text = piece(how & 3, round * 7 + how, 64);
    int in = ends[how][0];
    struct pollfd *p = (void *)text;
    struct epoll_event *e = (void *)text;
    struct iovec *v = (void *)text;
    struct msghdr *m = (void *)(text + 16);
    struct timespec *t = (void *)text;
    char *own = piece(3 - (how & 3), round * 7 + how + 20, 64);
    int efd;
    switch (how) {
    case PIPE:
        CHECK(read(in, text, 8) == 8 && memcmp(text, "wake up!", 8) == 0);
        return;
    case POLL:
        *p = (struct pollfd){in, POLLIN, 0};
        CHECK(poll(p, 1, 60000) == 1 && p->revents == POLLIN);
        break;
    case EPOLL:
        efd = epoll_create1(0);
        *e = (struct epoll_event){.events = EPOLLIN, .data.fd = 5};
        CHECK(epoll_ctl(efd, EPOLL_CTL_ADD, in, e) == 0);
        CHECK(epoll_wait(efd, e, 1, -1) == 1 && e->data.fd == 5);
        close(efd);
        break;
    case SOCKET:
        *v = (struct iovec){own, 8};
        memset(m, 0, sizeof *m);
        m->msg_iov = v, m->msg_iovlen = 1;
        CHECK(recvmsg(in, m, 0) == 8 && memcmp(own, "wake up!", 8) == 0);
        return;
    case CONDITION:
        pthread_mutex_lock(&meeting->mutex);
        while (meeting->there <= round)
            pthread_cond_wait(&meeting->come, &meeting->mutex);
        pthread_mutex_unlock(&meeting->mutex);
        return;
    case NAP:
        *t = (struct timespec){0, 5000000};
        CHECK(nanosleep(t, t) == 0);
        return;
    case FUTEX:
        while ((int)__atomic_load_n(word, __ATOMIC_ACQUIRE) <= round)
            syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, (uint32_t)round, NULL);
        return;
    }
    CHECK(read(in, text, 8) == 8);
}

enum { NIGHTS = 30 };

static void *sleeper(void *how)
{
    uint32_t state = (uint32_t)(long)how + 9;
    for (int round = 0; round < NIGHTS; round++) {
        sleep_in((int)(long)how, round);
        churn_some(0, PAGES, &state, 2000);
    }
    return NULL;
}

static void sleepers(void)
{
    pthread_t id[SLEEPERS];
    uint32_t state = 5;
    meeting = (void *)(pool + 40 * PAGE + 512);
    word = (void *)(pool + 41 * PAGE + 640);
    memset(meeting, 0, sizeof *meeting);
    *word = 0;
    pthread_mutex_init(&meeting->mutex, NULL);
    pthread_cond_init(&meeting->come, NULL);
    for (long i = 0; i < SLEEPERS; i++) {
        CHECK(i == SOCKET ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) == 0 : pipe(ends[i]) == 0);
        start(&id[i], sleeper, i);
    }
    for (int round = 0; round < NIGHTS; round++) {
        for (int i = 0; i < 8; i++)
            churn_some(0, PAGES, &state, 20000);
        for (int i = 0; i < CONDITION; i++)
            CHECK(write(ends[i][1], "wake up!", 8) == 8);
        pthread_mutex_lock(&meeting->mutex);
        meeting->there++;
        pthread_cond_broadcast(&meeting->come);
        pthread_mutex_unlock(&meeting->mutex);
        __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
    }
    for (int i = 0; i < SLEEPERS; i++)
        join(id[i]), close(ends[i][0]), close(ends[i][1]);
    memset(meeting, 1, sizeof *meeting); /* what pthread left there */
    memset(pool, 1, PAGES * PAGE);
}

/* --- many calls of many threads, with memory on the same pages --- */

static void *caller(void *me)
{
    int n = (int)(long)me, in[2];
    uint32_t state = (uint32_t)n + 3;
    CHECK(pipe(in) == 0);
    for (int i = 0; i < 120; i++) {
        uint8_t *from = piece(n, i, 900), *to = piece(n, i + 33, 900);
        memset(from, i + n, 900);
        churn_some(0, PAGES, &state, 3000);
        CHECK(write(in[1], from, 900) == 900);
        churn_some(0, PAGES, &state, 3000);
        CHECK(read(in[0], to, 900) == 900 && memcmp(from, to, 900) == 0);
        struct timespec *t = piece(n, i + 5, sizeof *t);
        CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, t) == 0);
        *t = (struct timespec){0, 1000};
        CHECK(nanosleep(t, NULL) == 0);
    }
    close(in[0]), close(in[1]);
    return NULL;
}

static void calls(void)
{
    run_all(caller, THREADS);
    memset(pool, 1, PAGES * PAGE);
}

/* --- threads come and go; what they do last, they do in destructors --- */

static pthread_key_t late;

static void at_end(void *value)
{
    int fd[2];
    char *text = value;
    CHECK(pipe(fd) == 0);
    CHECK(write(fd[1], text, 16) == 16 && read(fd[0], text + 16, 16) == 16 &&
          memcmp(text, text + 16, 16) == 0);
    close(fd[0]), close(fd[1]);
    free(malloc(5000));
}

static void *mayfly(void *n)
{
    uint32_t state = (uint32_t)(long)n;
    pthread_setspecific(late, piece((int)((long)n & 3), (int)(long)n, 64));
    churn_some(0, PAGES, &state, 20000);
    return malloc(100);
}

static void *detached(void *n)
{
    pthread_detach(pthread_self());
    free(mayfly(n));
    atomic_fetch_add((atomic_int *)(void *)word, 1);
    return NULL;
}

static void come_and_go(void)
{
    pthread_t id[3];
    uint32_t state = 77;
    word = (void *)(pool + 9 * PAGE + 1600);
    *word = 0;
    CHECK(pthread_key_create(&late, at_end) == 0);
    for (long round = 0; round < 40; round++) {
        void *left;
        start(&id[0], mayfly, round);
        start(&id[1], mayfly, round + 13);
        start(&id[2], detached, round + 27);
        churn_some(0, PAGES, &state, 40000);
        for (int i = 0; i < 2; i++) {
            CHECK(pthread_join(id[i], &left) == 0 && left != NULL);
            free(left);
        }
    }
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < 40)
        sched_yield();
    memset(pool, 1, PAGES * PAGE);
}

/* --- one thread makes processes, others go on --- */

static void *worker(void *me)
{
    uint32_t state = (uint32_t)(long)me + 21;
    while (atomic_load(&go_on)) {
        churn_some((int)(long)me % THREADS * PART, PART, &state, 10000);
        pool[(int)(long)me % THREADS * PART * PAGE + (int)(next_random(&state) % 64)]++;
        sched_yield();
    }
    return NULL;
}

static int ended(pid_t child)
{
    int *status = piece(2, 60, sizeof *status);
    CHECK(child > 0 && waitpid(child, status, 0) == child);
    return WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
}

static void processes(void)
{
    pthread_t id[2];
    uint32_t state = 4;
    char **argv = piece(1, 61, 4 * sizeof *argv), *path = piece(0, 62, 64), *text = piece(3, 62, 64);
    strcpy(path, "/bin/sh");
    argv[0] = path, argv[1] = strcpy(piece(1, 63, 8), "-c"), argv[2] = text, argv[3] = NULL;
    for (long i = 0; i < 2; i++)
        start(&id[i], worker, i);
    for (int i = 0; i < 12; i++) {
        churn_some(0, PAGES, &state, 60000);
        pid_t child = i % 3 == 0 ? (pid_t)syscall(SYS_fork) : fork();
        if (child == 0) {
            memset(pool, 3, PAGES * PAGE);
            for (int k = 0; k < 5; k++)
                churn_some(0, PAGES, &state, 20000);
            _exit(pool[PAGE] == 3 ? 3 : 4);
        }
        CHECK(ended(child) == 3);
        strcpy(text, "exit 5");
        churn_some(0, PAGES, &state, 60000);
        CHECK(posix_spawn(&child, path, NULL, NULL, argv, environ) == 0 && ended(child) == 5);
        strcpy(text, "exit 6");
        churn_some(0, PAGES, &state, 60000);
        child = vfork();
        if (child == 0) {
            execve(path, argv, environ);
            _exit(1);
        }
        CHECK(ended(child) == 6);
        CHECK(WEXITSTATUS(system(text)) == 6);
    }
    atomic_store(&go_on, 0);
    for (int i = 0; i < 2; i++)
        join(id[i]);
    memset(pool, 1, PAGES * PAGE);
}

/* --- mappings change under the others' eyes --- */

static void *mapper(void *me)
{
    uint32_t state = (uint32_t)(long)me + 8;
    for (int i = 0; i < 100; i++) {
        size_t bytes = 16 * PAGE;
        uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
        memset(p, 1 + (int)(long)me, bytes);
        churn_some((int)(long)me * PART, PART, &state, 10000);
        CHECK(mprotect(p, 4 * PAGE, PROT_READ) == 0);
        for (int k = 0; k < 16; k++)
            CHECK(p[k * PAGE + 99] == 1 + (int)(long)me);
        CHECK(mmap(p + 4 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1, 0) == p + 4 * PAGE);
        CHECK(p[5 * PAGE] == 0);
        CHECK(madvise(p + 8 * PAGE, 4 * PAGE, MADV_DONTNEED) == 0 && p[9 * PAGE] == 0);
        churn_some((int)(long)me * PART, PART, &state, 10000);
        CHECK(mprotect(p, 4 * PAGE, PROT_READ | PROT_WRITE) == 0);
        p[0] = 7;
        uint8_t *q = mremap(p, bytes, 2 * bytes, MREMAP_MAYMOVE);
        CHECK(q != MAP_FAILED && q[0] == 7 && q[15 * PAGE] == 1 + (int)(long)me && q[17 * PAGE] == 0);
        CHECK(munmap(q, 2 * bytes) == 0);
        free(malloc(300000));
    }
    return NULL;
}

static void maps(void)
{
    run_all(mapper, THREADS);
}

/* --- rights there and back: lines of a page are chosen while it is read-only, and again while it is not ---
 */

static void *spinner(void *me)
{
    uint32_t state = (uint32_t)(long)me;
    while (atomic_load(&go_on))
        churn_some(0, 0, &state, 1000);
    return NULL;
}

static void rights(void)
{
    pthread_t id;
    uint32_t state = 3;
    start(&id, spinner, 1);
    for (int i = 0; i < 300; i++) {
        CHECK(mprotect(pool, PAGES * PAGE, PROT_READ) == 0);
        churn_some(0, PAGES, &state, 30000);
        CHECK(mprotect(pool, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
        churn_some(0, PAGES, &state, 30000);
        for (int k = 0; k < PAGES; k++)
            pool[k * PAGE + i % 64 * 64]++;
    }
    atomic_store(&go_on, 0);
    join(id);
}

/* --- a write barrier of the program's own: SIGSEGV, and what it is reported --- */

static uint8_t *guarded; /* pages that are read-only at times */
static atomic_long barriers;

static void on_segv(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    uint8_t *at = info->si_addr;
    if (at < guarded || at >= guarded + THREADS * PAGE || info->si_code != SEGV_ACCERR) {
        static const char text[] = "a fault that is not ours\n";
        (void)!write(1, text, sizeof text - 1);
        _exit(77);
    }
    atomic_fetch_add(&barriers, 1);
    mprotect((void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE);
}

static void *mutator(void *me)
{
    uint8_t *mine = guarded + (long)me * PAGE;
    uint32_t state = (uint32_t)(long)me + 40;
    for (int i = 0; i < 100; i++) {
        CHECK(mprotect(mine, PAGE, PROT_READ) == 0);
        churn_some(0, PAGES, &state, 10000);
        mine[i]++;
        churn_some(0, PAGES, &state, 10000);
    }
    return NULL;
}

static void barrier(void)
{
    struct sigaction a = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    guarded = mmap(NULL, THREADS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(guarded != MAP_FAILED && sigaction(SIGSEGV, &a, NULL) == 0);
    run_all(mutator, THREADS);
    printf("barriers %ld\n", atomic_load(&barriers));
}

/* --- signals of all kinds reach threads in all states --- */

static atomic_long handled;

static void on_signal(int sig)
{
    int before = errno;
    uint32_t state = (uint32_t)sig;
    churn_some(0, PAGES, &state, 500);
    atomic_fetch_add(&handled, 1);
    errno = before;
}

static void *listener(void *me)
{
    uint32_t state = (uint32_t)(long)me + 50;
    size_t bytes = 64 * 1024;
    stack_t own = {.ss_sp = malloc(bytes), .ss_size = bytes}, none = {.ss_flags = SS_DISABLE};
    sigset_t all, before;
    CHECK(sigaltstack(&own, NULL) == 0);
    sigfillset(&all);
    for (int i = 0; i < 120; i++) {
        churn_some(0, PAGES, &state, 10000);
        CHECK(pthread_kill(pthread_self(), i % 2 ? SIGUSR1 : SIGUSR2) == 0);
        CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
        churn_some(0, PAGES, &state, 10000);
        raise(SIGUSR1);
        CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    }
    sigaltstack(&none, NULL);
    free(own.ss_sp);
    return NULL;
}

static void signals(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    CHECK(sigaction(SIGUSR1, &a, NULL) == 0);
    CHECK(sigaction(SIGALRM, &a, NULL) == 0);
    sigfillset(&a.sa_mask);
    CHECK(sigaction(SIGUSR2, &a, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    run_all(listener, THREADS);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK(atomic_load(&handled) >= THREADS * 240);
}

/* --- mutexes that the kernel hands on when their owner dies --- */

static pthread_mutex_t *robust;

static void *owner(void *n)
{
    uint32_t state = (uint32_t)(long)n + 60;
    int locked = pthread_mutex_lock(robust);
    CHECK(locked == 0 || locked == EOWNERDEAD);
    if (locked == EOWNERDEAD)
        CHECK(pthread_mutex_consistent(robust) == 0);
    for (int i = 0; i < 4; i++)
        churn_some(0, PAGES, &state, 20000);
    return NULL;
}

static void dead_owners(void)
{
    pthread_mutexattr_t a;
    uint32_t state = 2;
    robust = piece(1, 30, sizeof *robust);
    memset(robust, 0, sizeof *robust);
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    CHECK(pthread_mutex_init(robust, &a) == 0);
    for (long i = 0; i < 30; i++) {
        pthread_t id;
        start(&id, owner, i);
        for (int k = 0; k < 3; k++)
            churn_some(0, PAGES, &state, 20000);
        join(id);
        CHECK(pthread_mutex_lock(robust) == EOWNERDEAD);
        CHECK(pthread_mutex_consistent(robust) == 0);
        CHECK(pthread_mutex_unlock(robust) == 0);
    }
    memset(robust, 1, sizeof *robust);
}

/* --- cancelled in calls; made to change their user; stopped --- */

static void unlock(void *m)
{
    pthread_mutex_unlock(m);
}

static void *waiter(void *how)
{
    uint32_t state = (uint32_t)(long)how;
    churn_some(0, PAGES, &state, 10000);
    if ((long)how % 2) {
        pthread_mutex_lock(&meeting->mutex);
        pthread_cleanup_push(unlock, &meeting->mutex);
        for (;;)
            pthread_cond_wait(&meeting->come, &meeting->mutex);
        pthread_cleanup_pop(0);
    }
    for (;;)
        (void)!read(ends[0][0], piece(2, (int)(long)how, 64), 64);
}

static void cancelled(void)
{
    uint32_t state = 11;
    meeting = piece(0, 22, sizeof *meeting);
    memset(meeting, 0, sizeof *meeting);
    pthread_mutex_init(&meeting->mutex, NULL);
    pthread_cond_init(&meeting->come, NULL);
    CHECK(pipe(ends[0]) == 0);
    for (long i = 0; i < 20; i++) {
        pthread_t id[2];
        void *left;
        start(&id[0], waiter, 2 * i);
        start(&id[1], waiter, 2 * i + 1);
        for (int k = 0; k < 5; k++)
            churn_some(0, PAGES, &state, 20000);
        CHECK(setgid(getgid()) == 0); /* a signal to every thread */
        for (int k = 0; k < 2; k++) {
            CHECK(pthread_cancel(id[k]) == 0);
            CHECK(pthread_join(id[k], &left) == 0 && left == PTHREAD_CANCELED);
        }
    }
    memset(pool, 1, PAGES * PAGE);
}

static void *napper(void *how)
{
    struct timespec *t = piece((int)(long)how, 3, sizeof *t), before, after;
    uint32_t state = (uint32_t)(long)how + 5;
    for (int i = 0; i < 4; i++) {
        churn_some(0, PAGES, &state, 30000);
        clock_gettime(CLOCK_MONOTONIC, &before);
        *t = (struct timespec){0, 80000000};
        /* A timer of the agent's may end a sleep, rarely (docs/agent-rules.md, "Known gaps"). */
        int result = how ? poll(NULL, 0, 80) : nanosleep(t, t);
        CHECK(result == 0 || errno == EINTR);
        clock_gettime(CLOCK_MONOTONIC, &after);
        CHECK(result != 0 ||
              (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >= 79000000);
    }
    atomic_fetch_sub(&go_on, 1);
    return NULL;
}

static void stopped(void)
{
    pthread_t id[2];
    uint32_t state = 1;
    pid_t self = getpid();
    atomic_store(&go_on, 2);
    for (long i = 0; i < 2; i++)
        start(&id[i], napper, i);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 8; i++) {
            poll(NULL, 0, 15);
            kill(self, SIGSTOP);
            poll(NULL, 0, 15);
            kill(self, SIGCONT);
        }
        _exit(9);
    }
    while (atomic_load(&go_on) > 0)
        churn_some(0, PAGES, &state, 30000);
    for (int i = 0; i < 2; i++)
        join(id[i]);
    CHECK(ended(child) == 9);
    memset(pool, 1, PAGES * PAGE);
}

/* --- stacks of the program's own making --- */

static void coroutine(int n)
{
    uint32_t state = (uint32_t)n + 90;
    churn_some(0, PAGES, &state, 10000);
    struct timespec t = {0, 1000};
    CHECK(nanosleep(&t, NULL) == 0);
    raise(SIGUSR1);
}

static void *on_own_stack(void *me)
{
    static _Thread_local ucontext_t here, there;
    uint32_t state = (uint32_t)(long)me + 70;
    size_t bytes = 64 * 1024;
    uint8_t *stack = malloc(bytes);
    for (int i = 0; i < 60; i++) {
        churn_some(0, PAGES, &state, 5000);
        CHECK(getcontext(&there) == 0);
        there.uc_stack.ss_sp = stack;
        there.uc_stack.ss_size = bytes;
        there.uc_link = &here;
        makecontext(&there, (void (*)(void))coroutine, 1, i);
        CHECK(swapcontext(&here, &there) == 0);
    }
    free(stack);
    return NULL;
}

static void stacks(void)
{
    pthread_attr_t a;
    pthread_t id[THREADS];
    struct sigaction act = {.sa_handler = on_signal};
    uint8_t *memory = malloc(THREADS * 65536 + PAGE), *first = memory + PAGE - (uintptr_t)memory % PAGE;
    CHECK(memory != NULL && sigaction(SIGUSR1, &act, NULL) == 0);
    pthread_attr_init(&a);
    for (int round = 0; round < 4; round++) {
        for (long i = 0; i < THREADS; i++) {
            CHECK(pthread_attr_setstack(&a, first + i * 65536, 65536) == 0);
            CHECK(pthread_create(&id[i], &a, on_own_stack, (void *)i) == 0);
        }
        for (int i = 0; i < THREADS; i++)
            join(id[i]);
    }
    free(memory);
    printf("handled %ld\n", atomic_load(&handled));
}

/* --- threads that libc does not know --- */

static int raw_run(void *me)
{
    uint32_t state = (uint32_t)(long)me;
    for (int i = 0; i < 50; i++) {
        uint8_t *to = piece((int)(long)me, i, 8);
        for (volatile int k = 0; k < 3000; k++)
            next_random(&state);
        if (syscall(SYS_read, ends[0][0], to, 1ul) != 1)
            atomic_fetch_add(&bad, 1);
    }
    return 0;
}

static void raw(void)
{
    enum { STACK = 1 << 16 };
    uint32_t state = 6;
    static pid_t left[2];
    pthread_t id;
    start(&id, worker, 1);
    CHECK(pipe(ends[0]) == 0);
    for (int i = 0; i < 300; i++) /* watching ends at the first call of clone */
        churn_some(0, PAGES, &state, 30000);
    for (long i = 0; i < 2; i++) {
        uint8_t *stack = malloc(STACK);
        left[i] = 1;
        int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                    CLONE_CHILD_CLEARTID;
        CHECK(clone(raw_run, stack + STACK, flags, (void *)i, NULL, NULL, &left[i]) > 0);
    }
    for (int i = 0; i < 100; i++) {
        CHECK(write(ends[0][1], "x", 1) == 1);
        churn_some(0, PAGES, &state, 10000);
    }
    for (int i = 0; i < 2; i++)
        while (__atomic_load_n(&left[i], __ATOMIC_ACQUIRE))
            sched_yield();
    atomic_store(&go_on, 0);
    join(id);
    memset(pool, 1, PAGES * PAGE);
}

/* --- ends --- */

static void *execer(void *argv)
{
    uint32_t state = 3;
    for (int i = 0; i < 40; i++)
        churn_some(0, PAGES, &state, 20000);
    char **there = piece(1, 12, 64);
    there[0] = "/nowhere", there[1] = NULL;
    CHECK(execv(there[0], there) == -1 && errno == ENOENT); /* and on it goes */
    there[0] = ((char **)argv)[0], there[1] = strcpy(piece(2, 13, 16), "share"), there[2] = NULL;
    execv("/proc/self/exe", there);
    return NULL;
}

static void executes(char **argv)
{
    pthread_t id[3];
    for (long i = 0; i < 2; i++)
        start(&id[i], worker, i);
    CHECK(pthread_create(&id[2], NULL, execer, argv) == 0);
    pause();
}

static void *quitter(void *n)
{
    uint32_t state = (uint32_t)(long)n;
    for (int i = 0; i < 200; i++)
        churn_some(0, PAGES, &state, 20000);
    printf("quits\n");
    exit(17);
}

static void quits(void)
{
    pthread_t id[3];
    CHECK(pipe(ends[0]) == 0);
    for (long i = 0; i < 2; i++)
        start(&id[i], worker, i);
    start(&id[2], quitter, 5);
    (void)!read(ends[0][0], piece(1, 5, 16), 16);
}

static void *left_alone(void *main_thread)
{
    uint32_t state = 123;
    join((pthread_t)main_thread);
    for (int i = 0; i < 200; i++)
        churn_some(0, PAGES, &state, 20000);
    printf("alone, wrong %ld\n", atomic_load(&bad));
    exit(18);
}

static void main_goes(void)
{
    pthread_t id;
    uint32_t state = 55;
    start(&id, left_alone, (long)pthread_self());
    for (int i = 0; i < 200; i++)
        churn_some(0, PAGES, &state, 20000);
    pthread_exit(NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenes[] = {{"share", share},      {"sleepers", sleepers},   {"calls", calls},
                  {"come", come_and_go}, {"processes", processes}, {"maps", maps},
                  {"barrier", barrier},  {"signals", signals},     {"robust", dead_owners},
                  {"cancel", cancelled}, {"stop", stopped},        {"stacks", stacks},
                  {"raw", raw},          {"quit", quits},          {"main", main_goes},
                  {"rights", rights}};
    const char *scene = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 1024);
    make_pool();
    uint32_t state = 1, sum = 0;
    for (int i = 0; i < 100; i++) /* bursts begin while there is one thread */
        churn_some(0, PAGES, &state, 20000);
    if (strcmp(scene, "exec") == 0)
        executes(argv);
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(scene, scenes[i].name) == 0)
            scenes[i].run();
    for (int i = 0; i < PAGES * PAGE; i++)
        sum = sum * 31 + pool[i];
    (void)dice, (void)checks, (void)wrong, (void)churn, (void)place;
    printf("%s: wrong %ld, sum %08x\n", scene, atomic_load(&bad), sum);
    return 0;
}
