/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call-memory.c - the memory that a system call reads or writes, as far as its arguments show.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "agent/memory.h"
#include "agent/intercept/intercept.h"
#include "agent/sys/sys.h"

#define PATH_BYTES 4096
#define SOCKADDR_BYTES 128

/* Number of bytes that argument `pointer` points to. */
enum length {
    END = 0,
    BYTES, /* `n` of them */
    TIMES, /* argument `n` of them, `size` bytes each */
};
struct part {
    uint8_t pointer;
    uint8_t length; /* enum length; END: no more parts */
    uint16_t n, size;
};
struct call {
    int16_t number;
    struct part part[3];
};

#define PATH(argument)                 \
    {                                  \
        argument, BYTES, PATH_BYTES, 0 \
    }
#define FIXED(argument, bytes)    \
    {                             \
        argument, BYTES, bytes, 0 \
    }
#define ARRAY(argument, count, bytes) \
    {                                 \
        argument, TIMES, count, bytes \
    }

static const struct call calls[] = {
    {SYS_read, {ARRAY(1, 2, 1)}},
    {SYS_write, {ARRAY(1, 2, 1)}},
    {SYS_pread64, {ARRAY(1, 2, 1)}},
    {SYS_pwrite64, {ARRAY(1, 2, 1)}},
    {SYS_sendto, {ARRAY(1, 2, 1), FIXED(4, SOCKADDR_BYTES)}},
    {SYS_recvfrom, {ARRAY(1, 2, 1), FIXED(4, SOCKADDR_BYTES), FIXED(5, 4)}},
    {SYS_getrandom, {ARRAY(0, 1, 1)}},
    {SYS_getdents64, {ARRAY(1, 2, 1)}},
    {SYS_getcwd, {ARRAY(0, 1, 1)}},
    {SYS_readlink, {PATH(0), ARRAY(1, 2, 1)}},
    {SYS_readlinkat, {PATH(1), ARRAY(2, 3, 1)}},
    {SYS_open, {PATH(0)}},
    {SYS_openat, {PATH(1)}},
    {SYS_creat, {PATH(0)}},
    {SYS_access, {PATH(0)}},
    {SYS_faccessat, {PATH(1)}},
    {SYS_faccessat2, {PATH(1)}},
    {SYS_stat, {PATH(0), FIXED(1, 144)}},
    {SYS_lstat, {PATH(0), FIXED(1, 144)}},
    {SYS_fstat, {FIXED(1, 144)}},
    {SYS_newfstatat, {PATH(1), FIXED(2, 144)}},
    {SYS_statx, {PATH(1), FIXED(4, 256)}},
    {SYS_statfs, {PATH(0), FIXED(1, 120)}},
    {SYS_fstatfs, {FIXED(1, 120)}},
    {SYS_chdir, {PATH(0)}},
    {SYS_mkdir, {PATH(0)}},
    {SYS_rmdir, {PATH(0)}},
    {SYS_unlink, {PATH(0)}},
    {SYS_unlinkat, {PATH(1)}},
    {SYS_rename, {PATH(0), PATH(1)}},
    {SYS_truncate, {PATH(0)}},
    {SYS_chmod, {PATH(0)}},
    {SYS_pipe, {FIXED(0, 8)}},
    {SYS_pipe2, {FIXED(0, 8)}},
    {SYS_poll, {ARRAY(0, 1, 8)}},
    {SYS_ppoll, {ARRAY(0, 1, 8), FIXED(2, 16), FIXED(3, 8)}},
    {SYS_epoll_wait, {ARRAY(1, 2, 12)}},
    {SYS_epoll_pwait, {ARRAY(1, 2, 12), FIXED(4, 8)}},
    {SYS_epoll_ctl, {FIXED(3, 12)}},
    {SYS_futex, {FIXED(0, 4), FIXED(3, 16), FIXED(4, 4)}},
    {SYS_nanosleep, {FIXED(0, 16), FIXED(1, 16)}},
    {SYS_clock_nanosleep, {FIXED(2, 16), FIXED(3, 16)}},
    {SYS_clock_gettime, {FIXED(1, 16)}},
    {SYS_clock_getres, {FIXED(1, 16)}},
    {SYS_gettimeofday, {FIXED(0, 16), FIXED(1, 8)}},
    {SYS_time, {FIXED(0, 8)}},
    {SYS_times, {FIXED(0, 32)}},
    {SYS_getrusage, {FIXED(1, 144)}},
    {SYS_setitimer, {FIXED(1, 32), FIXED(2, 32)}},
    {SYS_uname, {FIXED(0, 390)}},
    {SYS_sysinfo, {FIXED(0, 112)}},
    {SYS_wait4, {FIXED(1, 4), FIXED(3, 144)}},
    {SYS_connect, {ARRAY(1, 2, 1)}},
    {SYS_bind, {ARRAY(1, 2, 1)}},
    {SYS_accept, {FIXED(1, SOCKADDR_BYTES), FIXED(2, 4)}},
    {SYS_accept4, {FIXED(1, SOCKADDR_BYTES), FIXED(2, 4)}},
    {SYS_getsockname, {FIXED(1, SOCKADDR_BYTES), FIXED(2, 4)}},
    {SYS_getpeername, {FIXED(1, SOCKADDR_BYTES), FIXED(2, 4)}},
    {SYS_socketpair, {FIXED(3, 8)}},
    {SYS_sched_getaffinity, {ARRAY(2, 1, 1)}},
    {SYS_prlimit64, {FIXED(2, 16), FIXED(3, 16)}},
    {SYS_getrlimit, {FIXED(1, 16)}},
    {SYS_rt_sigpending, {ARRAY(0, 1, 1)}},
    {SYS_rt_sigaction, {FIXED(1, 32), FIXED(2, 32)}},
    {SYS_sigaltstack, {FIXED(0, 24), FIXED(1, 24)}},
    {SYS_waitid, {FIXED(2, 128), FIXED(4, 144)}},
    {SYS_rt_sigtimedwait, {FIXED(0, 8), FIXED(1, 128), FIXED(2, 16)}},
    {SYS_rt_sigsuspend, {FIXED(0, 8)}},
    {SYS_sendfile, {FIXED(2, 8)}},
    {SYS_sched_setaffinity, {ARRAY(2, 1, 1)}},
    {SYS_sched_getparam, {FIXED(1, 4)}},
    {SYS_sched_setparam, {FIXED(1, 4)}},
    {SYS_sched_setscheduler, {FIXED(2, 4)}},
    {SYS_timerfd_settime, {FIXED(2, 32), FIXED(3, 32)}},
    {SYS_timerfd_gettime, {FIXED(1, 32)}},
    {SYS_getcpu, {FIXED(0, 4), FIXED(1, 4)}},
    {SYS_sched_getscheduler, {{0}}},
    {SYS_timerfd_create, {{0}}},
    {SYS_membarrier, {{0}}},
    {SYS_getpriority, {{0}}},
    {SYS_setpriority, {{0}}},
    {SYS_fallocate, {{0}}},
    {SYS_close, {{0}}},
    {SYS_lseek, {{0}}},
    {SYS_dup, {{0}}},
    {SYS_dup2, {{0}}},
    {SYS_dup3, {{0}}},
    {SYS_socket, {{0}}},
    {SYS_listen, {{0}}},
    {SYS_shutdown, {{0}}},
    {SYS_fsync, {{0}}},
    {SYS_fdatasync, {{0}}},
    {SYS_ftruncate, {{0}}},
    {SYS_flock, {{0}}},
    {SYS_fchmod, {{0}}},
    {SYS_fchdir, {{0}}},
    {SYS_umask, {{0}}},
    {SYS_getpid, {{0}}},
    {SYS_gettid, {{0}}},
    {SYS_getppid, {{0}}},
    {SYS_getuid, {{0}}},
    {SYS_geteuid, {{0}}},
    {SYS_getgid, {{0}}},
    {SYS_getegid, {{0}}},
    {SYS_getpgrp, {{0}}},
    {SYS_getsid, {{0}}},
    {SYS_sched_yield, {{0}}},
    {SYS_pause, {{0}}},
    {SYS_alarm, {{0}}},
    {SYS_kill, {{0}}},
    {SYS_tgkill, {{0}}},
    {SYS_tkill, {{0}}},
    {SYS_fadvise64, {{0}}},
    {SYS_epoll_create1, {{0}}},
    {SYS_eventfd2, {{0}}},
};

static int add(struct memory *m, uint64_t address, uint64_t bytes)
{
    if (!address || !bytes)
        return 0;
    if (m->n == CALL_PARTS)
        return -1;
    m->part[m->n++] = (struct span){address, bytes};
    return 0;
}

/* An array of struct iovec, and the buffers. */
static int add_vector(struct memory *m, uint64_t vector, uint64_t count)
{
    if (count > CALL_PARTS)
        return -1;
    add(m, vector, count * sizeof(struct iovec));
    for (uint64_t i = 0; i < count; i++) {
        struct iovec v;
        /* If it cannot be read here, the kernel will fail, too. */
        if (safe_copy(&v, (const struct iovec *)vector + i, sizeof v))
            return 0;
        if (add(m, (uint64_t)v.iov_base, v.iov_len))
            return -1;
    }
    return 0;
}

/* A struct msghdr, and the address, buffers and control data that it points to. */
static int add_message(struct memory *m, uint64_t header)
{
    struct msghdr h;
    add(m, header, sizeof h);
    if (safe_copy(&h, (const void *)header, sizeof h))
        return 0;
    if (add(m, (uint64_t)h.msg_name, h.msg_namelen) || add(m, (uint64_t)h.msg_control, h.msg_controllen))
        return -1;
    return add_vector(m, (uint64_t)h.msg_iov, h.msg_iovlen);
}

/* The options of some protocols, and filters, point to more than the buffer. */
static int add_option(struct memory *m, const uint64_t *args)
{
    int level = (int)args[1], name = (int)args[2];
    int filters = level == SOL_SOCKET && (name == SO_ATTACH_FILTER || name == SO_ATTACH_REUSEPORT_CBPF);
    if (filters || (level != SOL_SOCKET && level != IPPROTO_TCP))
        return -1;
    return add(m, args[3], args[4]);
}

int call_memory(long number, const uint64_t *args, struct memory *m)
{
    m->n = 0;
    switch (number) {
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
        return add_vector(m, args[1], args[2]);
    case SYS_select:
        for (int i = 1; i <= 3; i++)
            add(m, args[i], (args[0] + 63) / 64 * 8);
        return add(m, args[4], 16);
    case SYS_sendmsg:
    case SYS_recvmsg:
        return add_message(m, args[1]);
    case SYS_setsockopt:
        return add_option(m, args);
    case SYS_fcntl: /* the third argument is a number or a struct flock */
        return add(m, args[2], 32);
    default:
        break;
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].number != number)
            continue;
        for (int p = 0; p < 3 && calls[i].part[p].length != END; p++) {
            const struct part *part = &calls[i].part[p];
            add(m, args[part->pointer], part->length == BYTES ? part->n : args[part->n] * part->size);
        }
        return 0;
    }
    return -1;
}

int syscall_never_blocks(long number)
{
    switch (number) {
    case SYS_brk:
    case SYS_fstat:
    case SYS_lseek:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getppid:
    case SYS_getuid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getegid:
    case SYS_clock_gettime:
    case SYS_gettimeofday:
    case SYS_time:
    case SYS_madvise:
    case SYS_getrusage:
    case SYS_times:
    case SYS_sched_yield:
    case SYS_getrandom:
    case SYS_uname:
    case SYS_set_robust_list:
    case SYS_set_tid_address:
        return 1;
    default:
        return 0;
    }
}
