/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory a system call touches (agent/intercept/call-memory.c), with the kernel as the judge: each call
 * is made with its memory at the very end of a mapping. If the kernel touched more than call_memory says, the
 * call would fail with EFAULT; if a struct is not as long as it says, it would not fail one byte further on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The agent is no library that could be linked. */
#include "agent/intercept/call-memory.c"

#define PAGE 4096u
#define ARGUMENTS 6

/* The agent's recovers from the fault; here the kernel does. */
size_t safe_copy(void *to, const void *from, size_t bytes)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    ssize_t done = write(ends[1], from, bytes);
    if (done > 0)
        done = read(ends[0], to, (size_t)done);
    close(ends[0]);
    close(ends[1]);
    return done < 0 ? bytes : bytes - (size_t)done;
}

/* --- the kernel as the judge --- */

/* Argument i points to memory. No mapping is there: call_memory only tells the address on. */
#define P(i) (0x100000u * (1 + (i)))

struct
try {
    long number;
    uint64_t args[ARGUMENTS];
    unsigned whole; /* arguments whose memory is touched to its last byte, as bits */
    int child;      /* one that has ended is needed */
};

enum { ZERO = 100, NULLS, FILE_READ, FOLDER, PIPE_OUT, EPOLL, EVENT, TIMER, SOCKET, LISTENER };

static const struct try tries[] = {
    {SYS_read, {ZERO, P(1), 100}, 0, 0},
    {SYS_write, {PIPE_OUT, P(1), 100}, 0, 0},
    {SYS_pread64, {FILE_READ, P(1), 100, 0}, 0, 0},
    {SYS_pwrite64, {FILE_READ, P(1), 100, 0}, 0, 0},
    {SYS_sendto, {SOCKET, P(1), 10, MSG_DONTWAIT, P(4), 100}, 0, 0},
    {SYS_recvfrom, {SOCKET, P(1), 10, MSG_DONTWAIT, P(4), P(5)}, 0, 0},
    {SYS_getrandom, {P(0), 33, 0}, 0, 0},
    {SYS_getdents64, {FOLDER, P(1), 1000}, 0, 0},
    {SYS_getcwd, {P(0), 1000}, 0, 0},
    {SYS_readlink, {P(0), P(1), 100}, 0, 0},
    {SYS_readlinkat, {(uint64_t)AT_FDCWD, P(1), P(2), 100}, 0, 0},
    {SYS_open, {P(0), O_RDONLY}, 0, 0},
    {SYS_openat, {(uint64_t)AT_FDCWD, P(1), O_RDONLY}, 0, 0},
    {SYS_creat, {P(0), 0600}, 0, 0},
    {SYS_access, {P(0), R_OK}, 0, 0},
    {SYS_faccessat, {(uint64_t)AT_FDCWD, P(1), R_OK}, 0, 0},
    {SYS_faccessat2, {(uint64_t)AT_FDCWD, P(1), R_OK, 0}, 0, 0},
    {SYS_stat, {P(0), P(1)}, 2, 0},
    {SYS_lstat, {P(0), P(1)}, 2, 0},
    {SYS_fstat, {ZERO, P(1)}, 2, 0},
    {SYS_newfstatat, {(uint64_t)AT_FDCWD, P(1), P(2), 0}, 4, 0},
    {SYS_statx, {(uint64_t)AT_FDCWD, P(1), 0, 0xfff, P(4)}, 16, 0},
    {SYS_statfs, {P(0), P(1)}, 2, 0},
    {SYS_fstatfs, {ZERO, P(1)}, 2, 0},
    {SYS_chdir, {P(0)}, 0, 0},
    {SYS_mkdir, {P(0), 0700}, 0, 0},
    {SYS_rmdir, {P(0)}, 0, 0},
    {SYS_unlink, {P(0)}, 0, 0},
    {SYS_unlinkat, {(uint64_t)AT_FDCWD, P(1), 0}, 0, 0},
    {SYS_rename, {P(0), P(1)}, 0, 0},
    {SYS_truncate, {P(0), 0}, 0, 0},
    {SYS_chmod, {P(0), 0700}, 0, 0},
    {SYS_pipe, {P(0)}, 1, 0},
    {SYS_pipe2, {P(0), 0}, 1, 0},
    {SYS_poll, {P(0), 3, 0}, 1, 0},
    {SYS_ppoll, {P(0), 3, P(2), P(3), 8}, 1 | 4 | 8, 0},
    {SYS_epoll_wait, {EPOLL, P(1), 1, 0}, 2, 0},
    {SYS_epoll_pwait, {EPOLL, P(1), 1, 0, P(4), 8}, 2 | 16, 0},
    {SYS_epoll_ctl, {EPOLL, EPOLL_CTL_MOD, EVENT, P(3)}, 8, 0},
    {SYS_futex, {P(0), 0 /* wait */, 1, P(3), P(4)}, 8, 0}, /* zero is not 1 */
    {SYS_nanosleep, {P(0), P(1)}, 1, 0},
    {SYS_clock_nanosleep, {CLOCK_MONOTONIC, 0, P(2), P(3)}, 4, 0},
    {SYS_clock_gettime, {CLOCK_MONOTONIC, P(1)}, 2, 0},
    {SYS_clock_getres, {CLOCK_MONOTONIC, P(1)}, 2, 0},
    {SYS_gettimeofday, {P(0), P(1)}, 1 | 2, 0},
    {SYS_time, {P(0)}, 1, 0},
    {SYS_times, {P(0)}, 1, 0},
    {SYS_getrusage, {0, P(1)}, 2, 0},
    {SYS_setitimer, {ITIMER_VIRTUAL, P(1), P(2)}, 2 | 4, 0},
    {SYS_uname, {P(0)}, 1, 0},
    {SYS_sysinfo, {P(0)}, 1, 0},
    {SYS_wait4, {(uint64_t)-1, P(1), 0, P(3)}, 2 | 8, 1},
    {SYS_connect, {SOCKET, P(1), 100}, 0, 0},
    {SYS_bind, {SOCKET, P(1), 100}, 0, 0},
    {SYS_accept, {LISTENER, P(1), P(2)}, 0, 0},
    {SYS_accept4, {LISTENER, P(1), P(2), 0}, 0, 0},
    {SYS_getsockname, {SOCKET, P(1), P(2)}, 4, 0},
    {SYS_getpeername, {SOCKET, P(1), P(2)}, 0, 0},
    {SYS_setsockopt, {SOCKET, SOL_SOCKET, SO_SNDBUF, P(3), 4}, 8, 0},
    {SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, P(3)}, 8, 0},
    {SYS_sched_getaffinity, {0, 1024, P(2)}, 0, 0},
    {SYS_prlimit64, {0, 4 /* core */, P(2), P(3)}, 4 | 8, 0},
    {SYS_getrlimit, {4, P(1)}, 2, 0},
    {SYS_rt_sigpending, {P(0), 8}, 1, 0},
    {SYS_rt_sigaction, {10, P(1), P(2), 8}, 2 | 4, 0},
    {SYS_sigaltstack, {P(0), 0}, 1, 0},
    {SYS_sigaltstack, {0, P(1)}, 2, 0},
    {SYS_waitid, {P_ALL, 0, P(2), WEXITED, P(4)}, 16, 1},
    {SYS_rt_sigtimedwait, {P(0), P(1), P(2), 8}, 1 | 4, 0},
    {SYS_sendfile, {PIPE_OUT, FILE_READ, P(2), 1}, 4, 0},
    {SYS_sched_setaffinity, {0, 8, P(2)}, 0, 0},
    {SYS_sched_getparam, {0, P(1)}, 2, 0},
    {SYS_sched_setparam, {0, P(1)}, 2, 0},
    {SYS_sched_setscheduler, {0, 0, P(2)}, 4, 0},
    {SYS_timerfd_settime, {TIMER, 0, P(2), P(3)}, 4 | 8, 0},
    {SYS_timerfd_gettime, {TIMER, P(1)}, 2, 0},
    {SYS_getcpu, {P(0), P(1), 0}, 1 | 2, 0},
    {SYS_select, {60, P(1), P(2), P(3), P(4)}, 2 | 4 | 8 | 16, 0},
    {SYS_fcntl, {FILE_READ, F_GETLK, P(2)}, 4, 0},
};

static const long not_tried[] = {SYS_rt_sigsuspend}; /* it waits */

/* Each `bytes` long, zeros, and then nothing that can be read; paths are ".". */
static char *at_the_end(uint64_t bytes)
{
    size_t capacity = (bytes + PAGE - 1) / PAGE * PAGE;
    char *block = mmap(NULL, capacity + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    assert_int_equal(mprotect(block + capacity, PAGE, PROT_NONE), 0);
    if (bytes == PATH_BYTES)
        *block = '.';
    return block + capacity - bytes;
}

/* The call with its memory, of which argument `later` (-1: none) is a byte further on. Returns errno. */
static int make_call(const struct try *t, const struct memory *m, const int *fds, int later)
{
    uint64_t args[ARGUMENTS];

    for (int i = 0; i < ARGUMENTS; i++) {
        args[i] = t->args[i];
        if (args[i] >= ZERO && args[i] <= LISTENER && (i == 0 || args[i] == EVENT || args[i] == FILE_READ))
            args[i] = (uint64_t)fds[args[i] - ZERO];
        for (unsigned p = 0; p < m->n; p++)
            if (m->part[p].address == t->args[i])
                args[i] = (uint64_t)at_the_end(m->part[p].bytes) + (later == i);
    }
    if (t->child) {
        pid_t child = fork();
        if (child == 0)
            _exit(3);
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    }
    errno = 0;
    long result = syscall(t->number, args[0], args[1], args[2], args[3], args[4], args[5]);
    int error = result < 0 ? errno : 0;
    if (t->child)
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    return error;
}

static void open_all(int *fds)
{
    char folder[] = "/tmp/call-memory-XXXXXX";
    struct epoll_event event = {.events = EPOLLOUT};
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "listener"};
    FILE *file = tmpfile();
    int ends[2];

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), 10000), 0);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    fds[ZERO - ZERO] = open("/dev/zero", O_RDONLY);
    fds[NULLS - ZERO] = open("/dev/null", O_WRONLY);
    fds[FILE_READ - ZERO] = fileno(file);
    fds[FOLDER - ZERO] = open("/proc", O_RDONLY);
    fds[PIPE_OUT - ZERO] = ends[1];
    fds[EPOLL - ZERO] = epoll_create1(0);
    fds[EVENT - ZERO] = eventfd(0, 0);
    fds[TIMER - ZERO] = timerfd_create(CLOCK_MONOTONIC, 0);
    fds[SOCKET - ZERO] = socket(AF_UNIX, SOCK_DGRAM, 0);
    fds[LISTENER - ZERO] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(epoll_ctl(fds[EPOLL - ZERO], EPOLL_CTL_ADD, fds[EVENT - ZERO], &event), 0);
    assert_int_equal(bind(fds[LISTENER - ZERO], (void *)&address, sizeof address), 0);
    assert_int_equal(listen(fds[LISTENER - ZERO], 1), 0);
    unlink("listener");
    assert_int_equal(rmdir(folder), 0); /* "." stays a folder, which is nowhere */
}

static void test_kernel(void **state)
{
    (void)state;
    int fds[LISTENER - ZERO + 1];

    open_all(fds);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        const struct try *t = &tries[i];
        struct memory m;
        assert_int_equal(call_memory(t->number, t->args, &m), 0);
        /* epoll_ctl takes the events away: each time again. */
        struct epoll_event event = {.events = EPOLLOUT};
        epoll_ctl(fds[EPOLL - ZERO], EPOLL_CTL_MOD, fds[EVENT - ZERO], &event);
        int error = make_call(t, &m, fds, -1);
        if (error == EFAULT || error == ENOSYS)
            fail_msg("call %ld: %s, so it touches more", t->number, strerror(error));
        for (int a = 0; a < ARGUMENTS; a++) {
            if (!(t->whole >> a & 1))
                continue;
            epoll_ctl(fds[EPOLL - ZERO], EPOLL_CTL_MOD, fds[EVENT - ZERO], &event);
            error = make_call(t, &m, fds, a);
            if (error != EFAULT)
                fail_msg("call %ld: %s, so argument %d is shorter", t->number, strerror(error), a);
        }
    }
}

/* No entry that says that it touches memory is left out above. */
static void test_all_are_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        int found = calls[i].part[0].length == END;
        for (size_t k = 0; k < sizeof tries / sizeof tries[0]; k++)
            found |= tries[k].number == calls[i].number;
        for (size_t k = 0; k < sizeof not_tried / sizeof not_tried[0]; k++)
            found |= not_tried[k] == calls[i].number;
        if (!found)
            fail_msg("call %d is not tried", calls[i].number);
    }
}

/* --- buffers named in memory --- */

static int has(const struct memory *m, const void *address, uint64_t bytes)
{
    for (unsigned i = 0; i < m->n; i++)
        if (m->part[i].address == (uint64_t)address && m->part[i].bytes == bytes)
            return 1;
    return 0;
}

static void test_vectors(void **state)
{
    (void)state;
    char a[10], b[20], name[30], control[40];
    struct iovec v[CALL_PARTS + 1] = {{a, sizeof a}, {NULL, 5}, {b, sizeof b}};
    uint64_t args[ARGUMENTS] = {0, (uint64_t)v, 3};
    struct memory m;

    for (const long *number = (const long[]){SYS_readv, SYS_writev, SYS_preadv, SYS_pwritev, 0}; *number;
         number++) {
        assert_int_equal(call_memory(*number, args, &m), 0);
        assert_int_equal(m.n, 3); /* where nothing is, nothing is touched */
        assert_true(has(&m, v, 3 * sizeof v[0]) && has(&m, a, 10) && has(&m, b, 20));
    }
    struct msghdr h = {.msg_name = name,
                       .msg_namelen = sizeof name,
                       .msg_iov = v,
                       .msg_iovlen = 3,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    uint64_t message[ARGUMENTS] = {0, (uint64_t)&h};
    assert_int_equal(call_memory(SYS_sendmsg, message, &m), 0);
    assert_int_equal(m.n, 6);
    assert_true(has(&m, &h, sizeof h) && has(&m, name, 30) && has(&m, control, 40) &&
                has(&m, v, 3 * sizeof v[0]));
    assert_true(has(&m, a, 10) && has(&m, b, 20));

    /* More than can be noted: it may touch anything. */
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        v[i] = (struct iovec){a, 1};
    args[2] = CALL_PARTS - 1;
    assert_int_equal(call_memory(SYS_readv, args, &m), 0);
    args[2] = CALL_PARTS;
    assert_true(call_memory(SYS_readv, args, &m) < 0);
    args[2] = CALL_PARTS + 1;
    assert_true(call_memory(SYS_readv, args, &m) < 0);

    /* What cannot be read, the kernel refuses: only the attempt counts. */
    args[1] = P(1);
    args[2] = 2;
    assert_int_equal(call_memory(SYS_readv, args, &m), 0);
    assert_true(m.n == 1 && m.part[0].address == P(1));
}

static void test_unknown(void **state)
{
    (void)state;
    uint64_t args[ARGUMENTS] = {0};
    struct memory m;

    assert_true(call_memory(SYS_ioctl, args, &m) < 0);
    assert_true(call_memory(SYS_io_uring_enter, args, &m) < 0);
    assert_true(call_memory(100000, args, &m) < 0);
    assert_true(call_memory(-1, args, &m) < 0);
    assert_int_equal(call_memory(SYS_getpid, args, &m), 0);
    assert_int_equal(m.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel),
        cmocka_unit_test(test_all_are_tried),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
