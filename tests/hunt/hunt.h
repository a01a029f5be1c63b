/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hunt.h - what generated programs are made of (README.md): runs, which collect text and sums; memory work
 * with a known number of references; handlers, checks.
 *
 * A generated program is a tree of fragments. Each is called with a run: sequential fragments share one,
 * concurrent ones have their own. Text is printed at the end, in the order of the tree, so that it does not
 * depend on timing. Nothing that is printed may depend on addresses, process numbers or times.
 */
#ifndef HUNT_H
#define HUNT_H

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

enum { PAGE = 4096, POOL_PAGES = 48, STACK = 64 * PAGE, RUNS = 48, TEXT = 16384 };

/* What a run has printed so far. In shared memory, so that a forked child's text is not lost. */
struct run {
    int id;
    unsigned length;
    char text[TEXT];
};

struct shared {
    uint64_t refs; /* made in work(), at least, by code that can be recorded */
    struct run runs[RUNS];
};

/* The part of a run that is the process' own: memory whose pages may be protected. */
struct memory {
    uint8_t *pool;
    uint32_t dice, next;
    uint32_t hot[1024];
    uint64_t sum;
};

typedef void body(struct run *r);

static struct shared *shared;
static struct memory memories[RUNS];
/* Above 0: references are not counted, since no one promises to record them; of the process, and of the
 * thread. */
static int unrecorded;
static __thread int unrecorded_here;
static int run_stage(int stage); /* generated: runs a part of the program in a new process image */

static void note(struct run *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(r->text + r->length, TEXT - r->length, format, args);
    va_end(args);
    if (n > 0)
        r->length = r->length + (unsigned)n < TEXT ? r->length + (unsigned)n : TEXT - 1;
}

static void write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0)
            text += n, length -= (size_t)n;
    }
}

/* What should hold natively. It is noted, not fatal: the program's answer is whatever it does natively. */
#define CHECK(what)                                                      \
    do {                                                                 \
        if (!(what))                                                     \
            note(r, "line %d: %s (errno %d)\n", __LINE__, #what, errno); \
    } while (0)

/* The same for what is no call's result: errno may be left from anything. */
#define CHECK_STATE(what)                              \
    do {                                               \
        if (!(what))                                   \
            note(r, "line %d: %s\n", __LINE__, #what); \
    } while (0)

/* A call again and again while signals interrupt it. */
#define AGAIN(call)                             \
    ({                                          \
        long again_;                            \
        do                                      \
            again_ = (long)(call);              \
        while (again_ == -1 && errno == EINTR); \
        again_;                                 \
    })

static inline uint32_t roll(struct memory *m)
{
    m->dice = m->dice * 1664525u + 1013904223u;
    return m->dice >> 8;
}

/* Kinds of memory for the pool. */
enum { POOL_HEAP, POOL_MAPPED, POOL_STATIC };

static void make_pool(struct run *r, int kind)
{
    static uint8_t fixed[RUNS][POOL_PAGES * PAGE] __attribute__((aligned(4096)));
    struct memory *m = &memories[r->id];
    m->dice = 12345 + (uint32_t)r->id;
    if (kind == POOL_HEAP)
        m->pool =
            (uint8_t *)(((uintptr_t)malloc((POOL_PAGES + 1) * PAGE) + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    else if (kind == POOL_MAPPED)
        m->pool = mmap(NULL, POOL_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else
        m->pool = fixed[r->id];
    memset(m->pool, 1, POOL_PAGES * PAGE);
}

/* Touches a line of each page of the pool once, so that bursts have survivors there, and then computes in 4
 * KB. One unit is at least WORK_REFS references: the volatile ones alone. */
enum { WORK_STEPS = 10000, WORK_REFS = POOL_PAGES + 2 * WORK_STEPS };

static __thread volatile long worked_; /* units, of this thread */

static __attribute__((noinline)) void work(struct run *r, int units)
{
    struct memory *m = &memories[r->id];
    for (int u = 0; u < units; u++) {
        worked_++;
        uint32_t h = roll(m);
        for (int i = 0; i < POOL_PAGES; i++)
            h += *(volatile uint8_t *)&m->pool[i * PAGE + (int)(roll(m) % PAGE)];
        for (uint32_t i = 0; i < WORK_STEPS; i++) {
            volatile uint32_t *p = &m->hot[(h >> 3 ^ i) & 1023];
            h = h * 69069 + *p + i;
            *p = h;
        }
        m->pool[roll(m) % (POOL_PAGES * PAGE)] = (uint8_t)h;
        m->sum = m->sum * 31 + h;
    }
    if (!unrecorded && !unrecorded_here)
        __atomic_add_fetch(&shared->refs, (uint64_t)units * WORK_REFS, __ATOMIC_RELAXED);
}

/* Work for as long as something lasts: it changes nothing that is printed. */
static __attribute__((noinline)) void spin(void)
{
    static __thread volatile uint32_t own[4096];
    for (uint32_t i = 0; i < 4096; i += 3)
        own[i] += own[i ^ 63];
}

/* Room for a fragment's data on pool pages: at most 2000 bytes, on the next page each time, so that places do
 * not overlap soon. Later work overwrites a byte now and then; so only for what is written and read back at
 * once. */
static void *place(struct run *r, size_t bytes)
{
    struct memory *m = &memories[r->id];
    return m->pool + m->next++ % POOL_PAGES * PAGE + roll(m) % ((PAGE - bytes) / 16) * 16;
}

/* Installs a handler; flags of sigaction, mask 0: nothing, 1: everything, 2: all but faults. */
enum { MASK_NONE, MASK_ALL, MASK_ASYNC };

static void fill_mask(sigset_t *set, int mask)
{
    sigemptyset(set);
    if (mask != MASK_NONE)
        sigfillset(set);
    if (mask == MASK_ASYNC) {
        static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            sigdelset(set, faults[i]);
    }
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *), int flags, int mask,
                   struct sigaction *old)
{
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    fill_mask(&a.sa_mask, mask);
    sigaction(sig, &a, old);
}

static void *new_stack(void)
{
    return mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* An alternate stack for the thread, for the time of a fragment. */
static void *altstack(stack_t *old, int flags)
{
    stack_t s = {.ss_sp = new_stack(), .ss_size = STACK, .ss_flags = flags};
    sigaltstack(&s, old);
    return s.ss_sp;
}

static void altstack_back(void *stack, stack_t *old)
{
    stack_t now = {0};
    sigaltstack(NULL, &now);
    if (!(now.ss_flags & SS_ONSTACK) || now.ss_sp != stack)
        sigaltstack(old, NULL);
    munmap(stack, STACK);
}

/* Waits for a child and notes how it ended. */
static int ended(struct run *r, pid_t pid)
{
    int status = -1;
    if (AGAIN(waitpid(pid, &status, __WALL)) != pid)
        note(r, "no child: %d\n", errno);
    else if (WIFSIGNALED(status))
        note(r, "child: signal %d\n", WTERMSIG(status));
    else
        note(r, "child: status %d\n", WEXITSTATUS(status));
    return status;
}

static void sleep_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

/* Ends this process as its text says; what the parent prints comes from the shared runs. */
static void print_run(struct run *r)
{
    write_all(1, r->text, r->length);
    r->length = 0;
}

static void begin(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < RUNS; i++)
        shared->runs[i].id = i;
}

static void print_refs(void)
{
    char line[64];
    int n = snprintf(line, sizeof line, "refs %llu\n", (unsigned long long)shared->refs);
    write_all(1, line, (size_t)n);
}

#endif
