/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What random programs (tests/hunt) were harmed by, each as small as it can be. Prints what happened; alone,
 * that is always the same.
 *
 * usage: hunted SCENE
 *
 * One file, for the scenes are one list: each is some twenty lines on top of the same pool of pages, the same
 * work between calls (churn) and the same checks, and is run in the same modes by the same test.
 */
/* build: -pthread */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "watched.h"

static volatile long handled;

static void on_signal(int sig)
{
    (void)sig;
    handled++;
}

static void *thread(void *arg)
{
    sigset_t mask;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    *(int *)arg += sigismember(&mask, SIGSYS) == 1;
    return NULL;
}

/* Threads made while all signals are blocked, which was done without libc's functions for masks. */
static void masked_makers(void)
{
    uint64_t all = ~0ull, before;
    int blocked = 0;
    sigset_t now;
    CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, thread, &blocked) == 0);
        churn();
        CHECK(pthread_join(t, NULL) == 0);
    }
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
    CHECK(sigismember(&now, SIGSYS) == 1 && sigismember(&now, SIGUSR1) == 1);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8) == 0);
    churn();
    CHECK(blocked == 20);
}

/* No signal can be queued (another process of the same user may have filled the queue, too): the kernel then
 * delivers those below SIGRTMIN without the information that goes with them. */
static void full_queue(void)
{
    struct rlimit none;
    CHECK(getrlimit(RLIMIT_SIGPENDING, &none) == 0);
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 100; i++) {
        churn();
        raise(SIGUSR1);
    }
    CHECK(handled == 100);
}

/* Coroutines, on stacks that are plain memory, make threads. */
static ucontext_t outside, coroutines[4];

static void coroutine(int me)
{
    for (int i = 0;; i++) {
        pthread_t t;
        int blocked = 0;
        volatile uint8_t deep[3 * PAGE];
        for (unsigned k = 0; k < sizeof deep; k += 64)
            deep[k] = (uint8_t)k;
        churn();
        CHECK(pthread_create(&t, NULL, thread, &blocked) == 0);
        CHECK(pthread_join(t, NULL) == 0);
        churn();
        CHECK(deep[64] == 64 && blocked == 0);
        swapcontext(&coroutines[me], &outside);
    }
}

static void makers_on_own_stacks(void)
{
    for (int i = 0; i < 4; i++) {
        getcontext(&coroutines[i]);
        coroutines[i].uc_stack = (stack_t){.ss_sp = malloc(16 * PAGE), .ss_size = 16 * PAGE};
        makecontext(&coroutines[i], (void (*)(void))coroutine, 1, i);
    }
    for (int i = 0; i < 120; i++)
        swapcontext(&outside, &coroutines[i % 4]);
}

/* A library's constructor, with the loader's lock held, waits for threads that make threads. */
static void constructor(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 20);
    CHECK(n > 0);
    path[n] = 0;
    strcpy(strrchr(path, '/'), "/lib_starts.so");
    churn();
    void *lib = dlopen(path, RTLD_NOW);
    CHECK(lib != NULL);
    int *made = dlsym(lib, "made");
    CHECK(made != NULL && *made == 3);
}

/* Signals of faults that are sent: while they are blocked, and by another process at any moment. */
static void sent_faults(void)
{
    static const int which[] = {SIGFPE, SIGILL, SIGBUS, SIGSEGV, SIGTRAP, SIGSYS};
    pid_t me = getpid();
    for (int i = 0; i < 6; i++)
        signal(which[i], on_signal);
    for (int i = 0; i < 300; i++) {
        sigset_t one, now;
        int sig = which[i % 3]; /* the others cannot be blocked */
        long before = handled;
        sigemptyset(&one), sigaddset(&one, sig);
        sigprocmask(SIG_BLOCK, &one, NULL);
        raise(sig);
        if (i % 2)
            churn();
        sigpending(&now);
        CHECK(sigismember(&now, sig) == 1 && handled == before);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        CHECK(handled == before + 1);
    }
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 300; i++) {
            kill(me, which[i % 6]);
            usleep(200);
        }
        _exit(0);
    }
    long before = handled;
    while (waitpid(child, NULL, WNOHANG) == 0)
        churn();
    CHECK(handled > before);
}

/* What sigaction says of signals that no one has asked anything for. */
static void untouched(void)
{
    for (int sig = 1; sig < 32; sig++) {
        struct sigaction a;
        if (sig == SIGINT || sig == SIGQUIT || sig == SIGPIPE || sig == SIGHUP)
            continue; /* perhaps ignored by who started this */
        memset(&a, 1, sizeof a);
        CHECK(sigaction(sig, NULL, &a) == 0);
        CHECK(a.sa_handler == SIG_DFL && a.sa_flags == 0 && sigisemptyset(&a.sa_mask) == 1);
    }
}

/* Processes made without libc's knowledge that allow themselves four system calls only. */
static void strict_children(void)
{
    for (int i = 0; i < 3; i++) {
        int status;
        churn();
        pid_t pid = i == 0 ? _Fork() : i == 1 ? (pid_t)syscall(SYS_fork) : fork();
        if (pid == 0) {
            churn();
            if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
                _exit(9);
            churn();
            syscall(SYS_exit, 5);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    }
}

/* As sigaltstack, by an instruction of the program's own. */
static long set_altstack(const stack_t *new)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_sigaltstack), "D"(new), "S"(0L)
                     : "rcx", "r11", "memory");
    return result;
}

/* Alternate stacks in memory that the program reads, none, and again, without libc's knowledge. */
static void raw_altstacks(void)
{
    static volatile unsigned sum;
    stack_t off = {.ss_flags = SS_DISABLE};
    for (int i = 0; i < 120; i++) {
        uint8_t *stack = pool + i % 8 * 8 * PAGE;
        stack_t on = {.ss_sp = stack, .ss_size = 8 * PAGE};
        for (int k = 0; k < PAGES * PAGE; k += 64) /* no line of it is watched from here on */
            sum += pool[k];
        CHECK(set_altstack(i >= 300 && i % 2 ? &off : &on) == 0);
        for (int k = 0; k < 100000; k++)
            sum += stack[(unsigned)k * 7919u % (8 * PAGE)];
        for (int k = 0; k < 200000; k++)
            sum += (unsigned)k;
    }
}

/* A child made by a system call shows the mask that its parent had. */
static void raw_child_masks(void)
{
    sigset_t mask;
    int blocked = 0, status;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, thread, &blocked) == 0 && pthread_join(t, NULL) == 0);
    for (int i = 0; i < 10; i++) {
        churn();
        pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0) {
            CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
            _exit(sigismember(&mask, SIGSEGV) + sigismember(&mask, SIGTRAP) + sigismember(&mask, SIGSYS));
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void *forking_in_vfork(void *unused)
{
    int status;
    for (int i = 0; i < 5; i++) {
        pid_t child = vfork();
        if (child == 0) {
            sigaction(SIGTRAP, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
            pid_t pid = fork();
            if (pid == 0) {
                for (int k = 0; k < 20; k++)
                    churn();
                _exit(7);
            }
            waitpid(pid, &status, 0);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    return unused;
}

/* Two pages, the second of which is inaccessible: bytes before it that end there. */
static char *at_the_end(const void *bytes, size_t n)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    return memcpy(pages + 4096 - n, bytes, n);
}

static ucontext_t vfork_caller, vfork_coroutine;
static char *last_path, *last_variable;

/* The child has the default action of SIGSEGV. How it ends: after a mapping from a stack that ends soon; by a
 * program whose path and variable end at an inaccessible page; after pointers that cannot be used. */
static void faulting_in_vfork(void)
{
    char *argv[] = {last_path, NULL}, *envp[] = {last_variable, NULL};
    void *bad = last_path + sizeof "/bin/false";
    int status, ends[5];
    for (volatile int how = 0; how < 5; how++) {
        pid_t child = vfork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL);
            if (how == 0)
                mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            else if (how < 3)
                execve(how == 1 ? last_path : bad, argv, envp);
            else
                syscall(SYS_rt_sigaction, SIGUSR1, how == 3 ? bad : NULL, how == 3 ? NULL : bad, 8);
            _exit(how == 0 || errno == EFAULT ? 7 : 8);
        }
        CHECK(waitpid(child, &status, 0) == child);
        ends[how] = status;
    }
    CHECK(WIFEXITED(ends[0]) && WEXITSTATUS(ends[0]) == 7);
    CHECK(WIFEXITED(ends[1]) && WEXITSTATUS(ends[1]) == 1); /* false's */
    for (int how = 2; how < 5; how++)
        CHECK(WIFEXITED(ends[how]) && WEXITSTATUS(ends[how]) == 7);
}

static void faults_in_vfork(void)
{
    size_t bytes = 65536;
    char *stack = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack + bytes, 4096, PROT_NONE) == 0);
    last_path = at_the_end("/bin/false", sizeof "/bin/false");
    last_variable = at_the_end("A=1", sizeof "A=1");
    for (int i = 0; i < 10; i++) {
        CHECK(getcontext(&vfork_coroutine) == 0);
        vfork_coroutine.uc_stack = (stack_t){.ss_sp = stack, .ss_size = bytes};
        vfork_coroutine.uc_link = &vfork_caller;
        makecontext(&vfork_coroutine, faulting_in_vfork, 0);
        CHECK(swapcontext(&vfork_caller, &vfork_coroutine) == 0);
        churn();
    }
}

/* A child by vfork sets the disposition of SIGTRAP, its own, and forks. */
static void forks_in_vfork(void)
{
    pthread_t t;
    forking_in_vfork(NULL);
    CHECK(pthread_create(&t, NULL, forking_in_vfork, NULL) == 0 && pthread_join(t, NULL) == 0);
}

static void *loading(void *ends)
{
    while (!__atomic_load_n((int *)ends, __ATOMIC_ACQUIRE)) {
        void *library = dlopen("libresolv.so.2", RTLD_NOW);
        CHECK(library && dlclose(library) == 0);
    }
    return NULL;
}

static void *nothing(void *unused)
{
    return unused;
}

/* A child creates a thread, while another thread of its parent loads and unloads a library. */
static void forks_beside_loads(void)
{
    int status, ends = 0;
    pthread_t loader, t;
    CHECK(pthread_create(&loader, NULL, loading, &ends) == 0);
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            _exit(pthread_create(&t, NULL, nothing, NULL) == 0 && pthread_join(t, NULL) == 0 ? 7 : 1);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    __atomic_store_n(&ends, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(loader, NULL) == 0);
}

static void *signalling(void *to)
{
    for (int i = 0; i < 2000; i++) {
        CHECK(pthread_kill(*(pthread_t *)to, SIGUSR1) == 0);
        for (volatile int k = 0; k < 2000; k++)
            ;
    }
    return NULL;
}

static void *forking(void *unused)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t t, me = pthread_self();
        signal(SIGUSR1, on_signal);
        for (int i = 0; i < 30; i++)
            churn();
        CHECK(pthread_create(&t, NULL, signalling, &me) == 0);
        for (int i = 0; i < 60; i++)
            churn();
        CHECK(pthread_join(t, NULL) == 0);
        _exit(5);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    return unused;
}

/* Children, made by a thread, that create a thread, which sends signals. */
static void forking_threads(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, forking, NULL) == 0 && pthread_join(t, NULL) == 0);
    }
}

static void on_edit(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    ucontext_t *uc = context;
    uc->uc_mcontext.gregs[REG_R12] += 5;
    uc->uc_mcontext.gregs[REG_RBX] = 0;
    handled++;
}

static volatile int stop;

static void *disturbing(void *to)
{
    /* Not for ever: where a handler takes longer than the next signal, the receiver hardly goes on. */
    for (int sent = 0; !stop && sent < 20000; sent++) {
        long before = handled;
        CHECK(pthread_kill(*(pthread_t *)to, SIGUSR1) == 0);
        for (int i = 0; i < 1000 && handled == before; i++)
            sched_yield();
    }
    return NULL;
}

/* A handler that changes registers, whose signal may arrive where another handler is about to start. */
static void edited_entries(void)
{
    struct sigaction a = {.sa_sigaction = on_edit, .sa_flags = SA_SIGINFO};
    pthread_t t, me = pthread_self();
    signal(SIGUSR1, on_signal);
    CHECK(sigaction(SIGUSR2, &a, NULL) == 0);
    CHECK(pthread_create(&t, NULL, disturbing, &me) == 0);
    for (int i = 0; i < 2000; i++) {
        long result;
        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "0"(SYS_tgkill), "D"(getpid()), "S"(gettid()), "d"(SIGUSR2)
                         : "rbx", "r12", "rcx", "r11", "memory", "cc");
        CHECK(result == 0);
        if (i % 16 == 0)
            churn();
    }
    stop = 1;
    CHECK(pthread_join(t, NULL) == 0);
}

/* Signals that arrive right before a system call that blocks all signals. */
static void interrupted_maskers(void)
{
    uint64_t all = ~0ull, none = 0;
    struct timespec moment = {0, 1000};
    pthread_t t, me = pthread_self();
    signal(SIGUSR1, on_signal);
    CHECK(pthread_create(&t, NULL, disturbing, &me) == 0);
    for (int i = 0; i < 1000; i++) {
        register long r10 __asm__("r10") = 8;
        long result = SYS_rt_sigprocmask, how = SIG_SETMASK;
        __asm__ volatile("jmp 1f\n1: syscall"
                         : "+a"(result)
                         : "D"(how), "S"(&all), "d"(0), "r"(r10)
                         : "rcx", "r11", "memory", "cc");
        CHECK(result == 0);
        CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8) == 0);
        if (i % 4 == 0) {
            register long mask __asm__("r10") = (long)&all;
            register long bytes __asm__("r8") = 8;
            result = SYS_ppoll;
            __asm__ volatile("jmp 1f\n1: syscall"
                             : "+a"(result)
                             : "D"(0), "S"(0), "d"(&moment), "r"(mask), "r"(bytes)
                             : "rcx", "r11", "memory", "cc");
            CHECK(result == 0 || result == -EINTR);
            moment.tv_nsec = 1000;
        }
    }
    stop = 1;
    CHECK(pthread_join(t, NULL) == 0);
}

static void *load_and_unload(void *unused)
{
    while (!stop) {
        void *library = dlopen("libresolv.so.2", RTLD_NOW);
        CHECK(library && dlclose(library) == 0);
        usleep(1000);
    }
    return unused;
}

/* Code disappears while a thread whose signals are all blocked makes processes: no file can be opened then to
 * see what is left of the code. */
static void blocked_forks(void)
{
    uint64_t all = ~0ull, before;
    int status;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, load_and_unload, NULL) == 0);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8) == 0);
    for (int i = 0; i < 150; i++) {
        usleep(200);
        pid_t pid = fork();
        if (pid == 0)
            _exit(5);
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    }
    CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8) == 0);
    stop = 1;
    CHECK(pthread_join(t, NULL) == 0);
}

static void *bad_pointers[2];

static void pass_bad_pointers(int unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        errno = 0;
        CHECK(syscall(SYS_rt_sigaction, SIGUSR2, bad_pointers[i], NULL, 8) == -1 && errno == EFAULT);
        errno = 0;
        CHECK(syscall(SYS_sigaltstack, bad_pointers[i], NULL) == -1 && errno == EFAULT);
    }
}

/* Bad pointers, to no memory and to memory beyond the end of a file, while all signals are blocked, in a
 * handler and elsewhere. The agent reads what they point to. */
static void blocked_efault(void)
{
    sigset_t all;
    struct sigaction act = {.sa_handler = pass_bad_pointers};
    FILE *empty = tmpfile();
    CHECK(empty != NULL);
    bad_pointers[0] = (void *)1;
    bad_pointers[1] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(empty), 0);
    CHECK(bad_pointers[1] != MAP_FAILED);
    sigfillset(&all);
    act.sa_mask = all;
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    for (int i = 0; i < 600; i++) {
        if (i == 300)
            CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
        churn();
        if (i < 300)
            raise(SIGUSR1);
        else
            pass_bad_pointers(0);
    }
}

enum { COROUTINES = 6 };
static ucontext_t in_handler, in_coroutine[COROUTINES];
static int running;

static void switch_back(int sig)
{
    (void)sig;
    swapcontext(&in_coroutine[running], &in_handler);
}

static void ping(int me)
{
    for (;;) {
        churn();
        if (me % 2)
            raise(SIGQUIT);
        else
            switch_back(0);
    }
}

/* Contexts that are made in a handler have its signal blocked, SIGSYS here; some are left from another
 * handler. */
static void switch_contexts(int sig)
{
    static char stacks[COROUTINES][1 << 16];
    struct sigaction act = {.sa_handler = switch_back, .sa_flags = SA_NODEFER};
    (void)sig;
    CHECK(sigaction(SIGQUIT, &act, NULL) == 0);
    for (int i = 0; i < COROUTINES; i++) {
        CHECK(getcontext(&in_coroutine[i]) == 0);
        in_coroutine[i].uc_stack.ss_sp = stacks[i];
        in_coroutine[i].uc_stack.ss_size = sizeof stacks[i];
        makecontext(&in_coroutine[i], (void (*)(void))ping, 1, i);
    }
    for (int i = 0; i < 300; i++) {
        running = i % COROUTINES;
        CHECK(swapcontext(&in_handler, &in_coroutine[running]) == 0);
    }
}

static void *raise_sys(void *ignored)
{
    CHECK(raise(SIGSYS) == 0);
    return ignored;
}

static void handler_contexts(void)
{
    struct sigaction act = {.sa_handler = switch_contexts};
    pthread_t t;
    CHECK(sigaction(SIGSYS, &act, NULL) == 0);
    CHECK(pthread_create(&t, NULL, raise_sys, NULL) == 0);
    CHECK(pthread_join(t, NULL) == 0);
}

/* A mapping that grows by accesses below it, which only works while the page above can be accessed. */
static void grows_down(void)
{
    for (int round = 0; round < 60; round++) {
        volatile uint8_t *top =
            mmap((void *)0x200000000000, PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
        CHECK(top != MAP_FAILED);
        for (ptrdiff_t i = 0; i < 16; i++) {
            top[-i * PAGE] = (uint8_t)i;
            churn();
        }
        CHECK(munmap((void *)(top - 15 * PAGE), 16 * PAGE) == 0);
    }
}

static void *makes_threads(void *stop)
{
    while (!*(volatile int *)stop) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, nothing, NULL) == 0 && pthread_join(t, NULL) == 0);
    }
    return NULL;
}

static int any_module(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info;
    (void)size;
    (void)data;
    return 1;
}

/* Children, of a process in which other threads make threads, that need libc's lock of the list of libraries.
 */
static void forks_beside_makers(void)
{
    pthread_t makers[3];
    int stop = 0, status;
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&makers[i], NULL, makes_threads, &stop) == 0);
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            dl_iterate_phdr(any_module, NULL);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    *(volatile int *)&stop = 1;
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(makers[i], NULL) == 0);
}

static int own_signal(int n)
{
    static const int some[] = {SIGSEGV, SIGTRAP, SIGSYS, SIGUSR2, SIGTERM, SIGBUS, SIGINT};
    return n < (int)(sizeof some / sizeof *some) ? some[n] : 0;
}

static unsigned blocked_now(void)
{
    sigset_t now;
    unsigned bits = 0;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
    for (int n = 0; own_signal(n); n++)
        bits |= (unsigned)sigismember(&now, own_signal(n)) << n;
    return bits;
}

static void in_nested(int sig)
{
    (void)sig;
    CHECK(blocked_now() == 0x7f);
    handled++;
}

static void with_all_blocked(int sig)
{
    sigset_t one;
    (void)sig;
    CHECK(blocked_now() == 0x7f);
    sigemptyset(&one), sigaddset(&one, SIGUSR1), sigaddset(&one, SIGTRAP);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
    CHECK(raise(SIGUSR1) == 0);
    CHECK(blocked_now() == (0x7f & ~2u));
}

static void *sleeping(void *unused)
{
    while (!stop)
        usleep(1000);
    return unused;
}

static void start_ticks(int which, int sig, void (*handler)(int), long us)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct itimerval every = {{0, us}, {0, us}};
    sigfillset(&a.sa_mask);
    CHECK(sigaction(sig, &a, NULL) == 0 && setitimer(which, &every, NULL) == 0);
}

static void stop_ticks(int which)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    CHECK(setitimer(which, &never, NULL) == 0);
    stop = 1;
}

static void *with_inherited_mask(void *expected)
{
    CHECK(blocked_now() == *(const unsigned *)expected);
    return NULL;
}

/* Masks are changed while signals arrive, whose handlers have other ones. */
static void interrupted_masks(void)
{
    pthread_t t[2], made;
    unsigned dice = 1, expected = 0;
    sigset_t ticks, before;
    struct sigaction a = {.sa_handler = in_nested};
    sigfillset(&a.sa_mask);
    CHECK(sigaction(SIGUSR1, &a, NULL) == 0);
    sigemptyset(&ticks), sigaddset(&ticks, SIGPROF);
    CHECK(pthread_sigmask(SIG_BLOCK, &ticks, &before) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&t[i], NULL, sleeping, NULL) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    start_ticks(ITIMER_PROF, SIGPROF, with_all_blocked, 2988);
    for (int i = 0; i < 20000; i++) {
        sigset_t set;
        unsigned bits;
        sigemptyset(&set);
        dice = dice * 1664525u + 1013904223u;
        bits = dice >> 8 & 0x7f;
        for (int n = 0; own_signal(n); n++)
            if (bits >> n & 1)
                sigaddset(&set, own_signal(n));
        int how = (int)(dice >> 20) % 3;
        CHECK(pthread_sigmask(how, &set, NULL) == 0);
        expected = how == SIG_BLOCK ? expected | bits : how == SIG_UNBLOCK ? expected & ~bits : bits;
        if (i % 5 == 0)
            for (volatile int k = 0; k < 5000; k++)
                ;
        CHECK(blocked_now() == expected);
        if (i % 50 == 0) {
            CHECK(pthread_create(&made, NULL, with_inherited_mask, &expected) == 0);
            CHECK(pthread_join(made, NULL) == 0);
        }
    }
    stop_ticks(ITIMER_PROF);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
}

static void *on_own_altstack(void *unused)
{
    static char stacks[3][64 * 1024];
    static int taken;
    stack_t stack = {.ss_sp = stacks[__atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED)],
                     .ss_size = sizeof *stacks};
    CHECK(sigaltstack(&stack, NULL) == 0);
    while (!stop) {
        churn();
        sched_yield();
    }
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, NULL) == 0);
    return unused;
}

/* libc interrupts all threads to change their user, on the alternate stack; so do ticks. */
static void user_changes(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&t[i], NULL, on_own_altstack, NULL) == 0);
    start_ticks(ITIMER_REAL, SIGALRM, on_signal, 300);
    for (int i = 0; i < 120; i++) {
        CHECK(setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1) == 0);
        CHECK(setresgid((gid_t)-1, getegid(), (gid_t)-1) == 0);
    }
    stop_ticks(ITIMER_REAL);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
}

/* A handler on the alternate stack, installed by a system call instruction as libc's own are, and interrupted
 * there by one that libc installs. Both find what they had on their stacks. */
__asm__(".text\nraw_return:\n\tmov $15, %eax\n\tsyscall\n");
extern const char raw_return[];

static void computes(int sig)
{
    volatile int filled[512];
    for (int round = 0; round < 400; round++)
        for (int i = 0; i < 512; i++)
            filled[i] = round + i + sig;
    for (int i = 0; i < 512; i++)
        CHECK(filled[i] == 399 + i + sig);
}

static void is_interrupted(int sig)
{
    volatile int filled[512];
    for (int i = 0; i < 512; i++)
        filled[i] = i + sig;
    CHECK(raise(SIGUSR1) == 0);
    for (int i = 0; i < 512; i++)
        CHECK(filled[i] == i + sig);
}

static void raw_handlers_interrupted(void)
{
    static char memory[64 * 1024];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct {
        void (*handler)(int);
        unsigned long flags;
        const char *restorer;
        unsigned long mask;
    } raw = {is_interrupted, SA_ONSTACK | 0x04000000 /* SA_RESTORER */, raw_return, 0};
    register long r10 __asm__("r10") = 8;
    long result = SYS_rt_sigaction;
    CHECK(sigaltstack(&stack, NULL) == 0);
    CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = computes, .sa_flags = SA_ONSTACK}, NULL) == 0);
    churn();
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(SIGUSR2), "S"(&raw), "d"(NULL), "r"(r10)
                     : "rcx", "r11", "memory");
    CHECK(result == 0);
    for (int i = 0; i < 200; i++) {
        churn();
        CHECK(raise(SIGUSR2) == 0);
    }
}

static sigjmp_buf before_fetch;

static void on_fetch(int sig)
{
    siglongjmp(before_fetch, sig);
}

/* Code on a page that can be read, but not executed, while other threads run. */
static void fetch_faults(void)
{
    pthread_t t;
    long faults = 0;
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && signal(SIGSEGV, on_fetch) != SIG_ERR);
    memset(page, 0xc3, 4096); /* ret */
    CHECK(pthread_create(&t, NULL, sleeping, NULL) == 0);
    for (int i = 0; i < 3000; i++) {
        churn();
        if (sigsetjmp(before_fetch, 1))
            faults++;
        else
            ((void (*)(void))(void *)page)();
    }
    CHECK(faults == 3000);
    stop = 1;
    CHECK(pthread_join(t, NULL) == 0);
}

/* Functions that are a jump, and where it leads, each on a page of its own. */
enum { HOPS = 64 };
__asm__(".text\n.balign 4096\nhops:\n"
        ".rept 64\njmp 1f\n.balign 4096\n1: lea 1(%rdi), %eax\nret\n.balign 4096\n.endr\n");
extern uint8_t hops[];

/* The page of the jump may have changed; the other one may not. */
static void changed_jumps(void)
{
    for (int i = 0; i < 200; i++)
        churn();
    for (int i = 0; i < HOPS; i++) {
        uint8_t *page = hops + i * 2 * PAGE;
        int (*hop)(int) = (int (*)(int))(uintptr_t)page,
            (*hopped)(int) = (int (*)(int))(uintptr_t)(page + PAGE);
        CHECK(hop(i) == i + 1);
        CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
        CHECK(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
        CHECK(hopped(i) == i + 1);
        CHECK(hop(i) == i + 1);
        /* A bad pointer, which kills a process whose handler of SIGSEGV is gone. */
        CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)8, NULL, 8) == -1 && errno == EFAULT);
    }
}

/* Coroutines beside sleeping threads ask for and change dispositions, and make calls that change code. */
static void *sleeper(void *arg)
{
    (void)arg;
    for (;;)
        usleep(3000);
    return NULL;
}

static void caller(int me)
{
    static const int signals[] = {SIGSYS, SIGFPE, SIGTRAP, SIGUSR2};
    int (*hop)(int) = (int (*)(int))(uintptr_t)hops;
    for (int i = 0;; i++) {
        int sig = signals[i % 4];
        struct sigaction set = {.sa_handler = i & 4 ? on_signal : SIG_IGN, .sa_flags = SA_NODEFER}, now;
        volatile uint8_t deep[3 * PAGE];
        for (unsigned k = 0; k < sizeof deep; k += 64)
            deep[k] = (uint8_t)k;
        churn();
        CHECK(sigaction(sig, &set, NULL) == 0);
        CHECK(sigaction(sig, NULL, &now) == 0 && now.sa_handler == set.sa_handler);
        CHECK(signal(sig, SIG_DFL) == set.sa_handler);
        CHECK(hop(i) == i + 1);
        CHECK(mprotect(hops, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
        CHECK(mprotect(hops, PAGE, PROT_READ | PROT_EXEC) == 0);
        sigset_t mask;
        CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGUSR1) == 0);
        CHECK(deep[64] == 64);
        swapcontext(&coroutines[me], &outside);
    }
}

static void calls_of_coroutines(void)
{
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, sleeper, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        getcontext(&coroutines[i]);
        coroutines[i].uc_stack = (stack_t){.ss_sp = malloc(16 * PAGE), .ss_size = 16 * PAGE};
        makecontext(&coroutines[i], (void (*)(void))caller, 1, i);
    }
    for (int i = 0; i < 160; i++)
        swapcontext(&outside, &coroutines[i % 4]);
}

static void *ends(void *arg)
{
    return arg;
}

/* An exec that fails late, again and again beside a thread that has just been created, while signals arrive;
 * SIGTRAP is ignored, in the kernel too while an exec is tried. */
static void execs_beside_new_threads(void)
{
    static char path[32], text[100000], *args[13];
    struct itimerval often = {{0, 300}, {0, 300}};
    int fd = memfd_create("no program", 0);
    CHECK(fd >= 0 && write(fd, "nothing.", 8) == 8 && fchmod(fd, 0755) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 12; i++)
        args[i] = text;
    signal(SIGTRAP, SIG_IGN);
    CHECK(sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL) ==
          0);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < 600; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, ends, NULL) == 0);
        CHECK(execve(path, args, NULL) == -1 && errno == ENOEXEC);
        CHECK(pthread_join(t, NULL) == 0);
    }
}

static void in_blocked_coroutine(void)
{
    for (;;) {
        churn();
        swapcontext(&coroutines[0], &outside);
    }
}

/* All signals are blocked; a context that was saved by a call that the agent did not see is restored by one
 * that it sees, and the other way round. */
static void blocked_coroutines(void)
{
    sigset_t all, now;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    getcontext(&coroutines[0]);
    coroutines[0].uc_stack = (stack_t){.ss_sp = malloc(16 * PAGE), .ss_size = 16 * PAGE};
    makecontext(&coroutines[0], in_blocked_coroutine, 0);
    for (int i = 0; i < 1500; i++) {
        swapcontext(&outside, &coroutines[0]);
        churn();
        CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
        CHECK(sigismember(&now, SIGSEGV) == 1 && sigismember(&now, SIGTRAP) == 1 &&
              sigismember(&now, SIGSYS) == 1 && sigismember(&now, SIGUSR1) == 1);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenes[] = {{"masked-makers", masked_makers},
                  {"full-queue", full_queue},
                  {"makers-on-own-stacks", makers_on_own_stacks},
                  {"sent-faults", sent_faults},
                  {"constructor", constructor},
                  {"untouched", untouched},
                  {"strict-children", strict_children},
                  {"raw-altstacks", raw_altstacks},
                  {"raw-child-masks", raw_child_masks},
                  {"blocked-forks", blocked_forks},
                  {"forking-threads", forking_threads},
                  {"edited-entries", edited_entries},
                  {"interrupted-maskers", interrupted_maskers},
                  {"blocked-efault", blocked_efault},
                  {"grows-down", grows_down},
                  {"handler-contexts", handler_contexts},
                  {"forks-beside-makers", forks_beside_makers},
                  {"interrupted-masks", interrupted_masks},
                  {"user-changes", user_changes},
                  {"raw-handlers-interrupted", raw_handlers_interrupted},
                  {"changed-jumps", changed_jumps},
                  {"fetch-faults", fetch_faults},
                  {"forks-in-vfork", forks_in_vfork},
                  {"faults-in-vfork", faults_in_vfork},
                  {"forks-beside-loads", forks_beside_loads},
                  {"calls-of-coroutines", calls_of_coroutines},
                  {"blocked-coroutines", blocked_coroutines},
                  {"execs-beside-new-threads", execs_beside_new_threads}};
    make_pool();
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].run();
            printf("wrong %ld\n", wrong);
            return 0;
        }
    return 2;
}
