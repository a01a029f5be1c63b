/* SPDX-License-Identifier: Apache-2.0 */
/* System calls: bad arguments, interruption, files; filters. */
#include "../hunt.h"

static void answer(struct run *r, const char *what, long result)
{
    note(r, "%s %ld %d\n", what, result, result == -1 ? errno : 0);
}

/* What interposed functions do with arguments that the kernel refuses: the result, and the effect. */
/* hunt: leaf not vfork,seccomp,noise */
static void bad_arguments(struct run *r, int which /* 0..11 */, int bad /* 4 -4096 1 */, int sig /* signal */)
{
    void *p = (void *)(intptr_t)bad;
    sigset_t set, before, now;
    stack_t mine = {.ss_sp = new_stack(), .ss_size = STACK}, old = {0};
    struct sigaction a = {.sa_handler = SIG_IGN}, b;
    sigemptyset(&set), sigaddset(&set, sig);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigaltstack(NULL, &old);
    work(r, 2);
    errno = 0;
    switch (which) {
    case 0:
        answer(r, "sigaltstack old", sigaltstack(NULL, p));
        break;
    case 1:
        answer(r, "sigaltstack new", sigaltstack(p, NULL));
        break;
    case 2:
        answer(r, "sigaltstack both", sigaltstack(&mine, p));
        sigaltstack(NULL, &mine);
        note(r, "size %zu flags %x\n", mine.ss_size, mine.ss_flags);
        break;
    case 3:
        mine.ss_size = 1000;
        answer(r, "small", sigaltstack(&mine, NULL));
        mine.ss_size = STACK, mine.ss_flags = 3;
        answer(r, "flags", sigaltstack(&mine, NULL));
        break;
    case 4:
        answer(r, "mask old", sigprocmask(SIG_BLOCK, NULL, p));
        break;
    case 5:
        answer(r, "mask new", syscall(SYS_rt_sigprocmask, SIG_BLOCK, p, &now, 8)); /* libc would read it */
        break;
    case 6:
        answer(r, "mask both", sigprocmask(SIG_BLOCK, &set, p));
        break;
    case 7:
        answer(r, "mask how", sigprocmask(77, &set, &now));
        break;
    case 8:
        sigaddset(&set, SIGTRAP);
        answer(r, "raw mask", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, p, 8));
        break;
    case 9:
        answer(r, "raw size", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 4));
        answer(r, "raw new", syscall(SYS_rt_sigprocmask, SIG_BLOCK, p, NULL, 8));
        break;
    case 10:
        answer(r, "action number", sigaction(SIGKILL, &a, &b));
        answer(r, "action number", sigaction(70, &a, &b));
        answer(r, "raw action", syscall(SYS_rt_sigaction, sig, p, NULL, 8));
        answer(r, "raw action", syscall(SYS_rt_sigaction, SIGTRAP, NULL, p, 8));
        break;
    default:
        answer(r, "mprotect", mprotect((void *)4096, PAGE, PROT_READ));
        answer(r, "mprotect", mprotect(p, PAGE, PROT_READ));
        answer(r, "munmap", munmap((void *)1, PAGE));
        answer(r, "mremap", (long)mremap((void *)4096, PAGE, PAGE, 0));
        answer(r, "madvise", madvise(mine.ss_sp, PAGE, 1234));
        answer(r, "prctl", prctl(PR_SET_NAME, p));
        answer(r, "prctl", prctl(98765, 1, 2, 3, 4));
        answer(r, "execve", execve(p, NULL, NULL));
        answer(r, "nothing", syscall(1999, 1, 2, 3));
    }
    work(r, 2);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    int blocked = 0;
    for (int s = 1; s < 32; s++)
        blocked = blocked * 2 % 10007 + sigismember(&now, s);
    note(r, "blocked %d\n", blocked);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigaltstack(&old, NULL);
}

/* Calls that wait, interrupted by a signal that another thread sends once they wait. */
struct interrupter {
    pid_t tid;
    int sig;
    const void *word; /* that the call waits for, if it is futex */
    volatile int go, done;
};

/* In the call itself: under full mode a thread may sleep before it, in the agent's own futex calls. */
static int is_waiting(const struct interrupter *i)
{
    char path[64], text[256] = "";
    long number;
    unsigned long word = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)i->tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0 || sscanf(text, "%ld %lx", &number, &word) < 1) /* "running" */
        return 0;
    return number >= 0 && (number != SYS_futex || word - (uintptr_t)i->word < sizeof(sem_t));
}

static void *interrupting(void *arg)
{
    struct interrupter *i = arg;
    while (!i->done) {
        if (i->go) {
            sleep_us(2000);
            if (i->go && !i->done && is_waiting(i)) {
                i->go = 0;
                syscall(SYS_tgkill, getpid(), i->tid, i->sig);
            }
        } else
            sleep_us(100);
    }
    return NULL;
}

static volatile int interruptions_;

static void on_interruption(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)info, (void)uc;
    interruptions_++;
}

/* hunt: leaf claims EINTR not vfork,blocked,noise,stops,threads,handler,noqueue */
static void interrupted(struct run *r, int sig /* signal */, int rounds /* 1..3 */, int how /* 0..11 */)
{
    struct sigaction old;
    pthread_t t;
    int fds[2], ep = epoll_create1(EPOLL_CLOEXEC), word = 1, sv[2];
    char c;
    sem_t sem;
    struct interrupter i = {.tid = gettid(), .sig = sig, .word = how == 4 ? (void *)&sem : (void *)&word};
    sigset_t set;
    struct timespec ten = {10, 0};
    fd_set bits;
    struct epoll_event event;
    sem_init(&sem, 0, 0);
    CHECK(pipe2(fds, O_CLOEXEC) == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
    interruptions_ = 0;
    handle(sig, on_interruption, 0, MASK_NONE, &old);
    sigset_t one, before;
    sigemptyset(&one), sigaddset(&one, sig);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    CHECK(pthread_create(&t, NULL, interrupting, &i) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (int k = 0; k < rounds; k++) {
        work(r, 2);
        i.go = 1;
        errno = 0;
        switch (how) {
        case 0:
            answer(r, "read", read(fds[0], &c, 1));
            break;
        case 1:
            answer(r, "poll", poll(&(struct pollfd){fds[0], POLLIN, 0}, 1, 10000));
            break;
        case 2:
            answer(r, "pause", pause());
            break;
        case 3:
            answer(r, "nanosleep", nanosleep(&ten, NULL));
            break;
        case 4:
            answer(r, "sem_wait", sem_wait(&sem));
            break;
        case 5:
            answer(r, "epoll_wait", epoll_wait(ep, &event, 1, 10000));
            break;
        case 6:
            FD_ZERO(&bits);
            FD_SET(fds[0], &bits);
            answer(r, "select", select(fds[0] + 1, &bits, NULL, NULL, &(struct timeval){10, 0}));
            break;
        case 7:
            sigemptyset(&set), sigaddset(&set, SIGWINCH);
            answer(r, "sigtimedwait", sigtimedwait(&set, NULL, &ten));
            break;
        case 8:
            answer(r, "futex", syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &ten, NULL, 0));
            break;
        case 9:
            answer(r, "recv", recv(sv[0], &c, 1, 0));
            break;
        case 10:
            answer(r, "ppoll", ppoll(&(struct pollfd){fds[0], POLLIN, 0}, 1, &ten, &before));
            break;
        default:
            answer(r, "clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &ten, NULL));
        }
        i.go = 0;
    }
    i.done = 1;
    pthread_join(t, NULL);
    sigaction(sig, &old, NULL);
    close(fds[0]), close(fds[1]), close(ep), close(sv[0]), close(sv[1]);
    note(r, "interrupted %d\n", interruptions_);
}

/* Data through a pipe between threads, larger than the pipe. */
struct pipe_end {
    int fd;
    size_t bytes;
    uint8_t *from;
};

static void *pipe_writer(void *arg)
{
    struct pipe_end *e = arg;
    for (size_t done = 0; done < e->bytes;) {
        ssize_t n = write(e->fd, e->from + done, e->bytes - done < 70000 ? e->bytes - done : 70000);
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            break;
    }
    close(e->fd);
    return NULL;
}

/* hunt: leaf not vfork */
static void pipes(struct run *r, int kilobytes /* 50..600 */, int processes /* 0..1 */)
{
    int fds[2];
    size_t bytes = (size_t)kilobytes * 1024, got = 0;
    uint8_t *data = malloc(bytes), *copy = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 7 + i / 251);
    CHECK(pipe2(fds, O_CLOEXEC) == 0);
    struct pipe_end e = {fds[1], bytes, data};
    pthread_t t;
    pid_t pid = 0;
    if (processes) {
        pid = fork();
        if (pid == 0) {
            unrecorded++;
            pipe_writer(&e);
            _exit(3);
        }
        close(fds[1]);
    } else
        CHECK(pthread_create(&t, NULL, pipe_writer, &e) == 0);
    work(r, 3);
    for (ssize_t n; (n = AGAIN(read(fds[0], copy + got, bytes - got))) > 0;) {
        got += (size_t)n;
        if (got == bytes)
            break;
    }
    if (processes)
        ended(r, pid);
    else
        pthread_join(t, NULL);
    close(fds[0]);
    note(r, "pipe %zu %d\n", got, memcmp(data, copy, bytes) == 0);
    free(data), free(copy);
}

/* Descriptors all closed, as daemons do it. */
/* hunt: leaf claims FDS not threads,maps,vfork,handler */
static void closes_all(struct run *r, int how /* 0..1 */)
{
    if (how == 0)
        for (int fd = 3; fd < 200; fd++)
            close(fd);
    else
        syscall(SYS_close_range, 3u, ~0u, 0u);
    work(r, 3);
    int fd = open("/dev/null", O_RDWR);
    note(r, "first free %d\n", fd);
    close(fd);
}

/* Large numbers of quick calls, some through libc, some by syscall(), some by instruction. */
static long by_instruction(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

/* hunt: leaf not seccomp */
static void quick_calls(struct run *r, int rounds /* 50..1500 */)
{
    long sum = 0, me = getpid();
    struct timespec *t = place(r, sizeof *t);
    for (int i = 0; i < rounds; i++) {
        sum += getpid() == me;
        sum += syscall(SYS_getpid) == me;
        sum += by_instruction(SYS_getpid, 0, 0, 0) == me;
        sum += by_instruction(SYS_clock_gettime, CLOCK_MONOTONIC, (long)t, 0) == 0;
        sum += by_instruction(SYS_clock_gettime, CLOCK_MONOTONIC, 8, 0) == -EFAULT;
        if (i % 64 == 0)
            work(r, 1);
    }
    note(r, "calls %ld\n", sum);
}

/* Filters: from here on some calls fail, or raise SIGSYS; the program's last deeds, or a child's. */
static volatile int trapped_;

static void on_trap(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    trapped_ += info->si_code == 1; /* SYS_SECCOMP */
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 4242;
}

static long install(const struct sock_filter *filter, unsigned n, int by_syscall)
{
    struct sock_fprog prog = {(unsigned short)n, (struct sock_filter *)(uintptr_t)filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog)
                      : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0);
}

/* hunt: wrapper claims FAULTS,SECCOMP not vfork,blocked,threads,maps,handler adds seccomp requires child */
static void after_filter(struct run *r, body *in, int action /* 0..3 */, int by_syscall /* 0..1 */,
                         int killed /* 0..1 */)
{
    unsigned ret = action == 0   ? SECCOMP_RET_ERRNO | EPERM
                   : action == 1 ? SECCOMP_RET_TRAP
                   : action == 2 ? SECCOMP_RET_KILL_PROCESS
                                 : SECCOMP_RET_ALLOW;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_settime, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, ret),
    };
    handle(SIGSYS, on_trap, 0, MASK_NONE, NULL);
    work(r, 3);
    CHECK(install(filter, sizeof filter / sizeof *filter, by_syscall) == 0);
    unrecorded++;
    work(r, 3);
    if (action != 2) {
        long got = syscall(SYS_getppid);
        note(r, "filtered %s\n", got == -1 ? "EPERM" : got == 4242 ? "trapped" : "allowed");
    }
    in(r);
    work(r, 3);
    note(r, "trapped %d\n", trapped_);
    if (action == 2 && killed)
        syscall(SYS_getppid);
}

/* hunt: leaf claims FAULTS,SECCOMP not vfork,blocked,threads,maps,handler,seccomp requires child */
static void strict(struct run *r, int how /* 0..1 */)
{
    work(r, 3);
    note(r, "strict\n");
    unrecorded++;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
        note(r, "not strict\n");
    work(r, 5);
    note(r, "worked\n");
    if (how == 1)
        syscall(SYS_getpid);
    syscall(SYS_exit, 5);
}
