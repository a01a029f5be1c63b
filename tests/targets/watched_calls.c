/* SPDX-License-Identifier: Apache-2.0 */
/* System calls with all they point to in pages that may be closed: none may fail, none may be cut short. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "watched.h"

enum { ROUNDS = 25 };
static volatile int alarms;
static volatile int third_alarm_to = -1; /* the descriptor that gets a byte at it */
static char *name;                       /* of a file, in the pool */

static void on_alarm(int sig)
{
    (void)sig;
    if (++alarms == 3 && third_alarm_to >= 0 && write(third_alarm_to, "x", 1) != 1)
        _exit(97);
}

/* Not through libc's syscall(), around which all pages are open. */
static long call(long number, long a, long b, long c)
{
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return number;
}

static void files(int fd)
{
    enum { N = 3000 };
    uint8_t *from = place(N), *to = place(N);
    memset(from, (int)roll(), N);
    churn();
    CHECK(pwrite(fd, from, N, 0) == N);
    CHECK(pread(fd, to, N, 0) == N);
    CHECK(memcmp(from, to, N) == 0);
    churn();
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && write(fd, from, N) == N);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, to, N) == N);
    /* Over many pages in one call, and a vector that lies in a page itself. */
    struct iovec *v = place(8 * sizeof *v);
    for (int i = 0; i < 8; i++)
        v[i] = (struct iovec){pool + (8 * i + 1) * PAGE + 256, 100u + (unsigned)i};
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    churn();
    CHECK(readv(fd, v, 8) == 828);
    churn();
    CHECK(preadv(fd, v, 8, 0) == 828);
    churn();
    CHECK(pwritev(fd, v, 8, 0) == 828);
    churn();
    CHECK(pwrite(fd, pool, PAGES * PAGE, 0) == PAGES * PAGE);
    churn();
    CHECK(pread(fd, pool, PAGES * PAGE, 0) == PAGES * PAGE);
    struct stat *st = place(sizeof *st);
    struct statfs *sf = place(sizeof *sf);
    strcpy(name = place(64), "/proc/self/exe");
    churn();
    CHECK(stat(name, st) == 0 && S_ISREG(st->st_mode));
    CHECK(statfs(name, sf) == 0);
    CHECK(access(name, R_OK) == 0);
    char *link = place(256);
    churn();
    CHECK(readlink(name, link, 256) > 0 && link[0] == '/');
    struct flock *lock = place(sizeof *lock);
    *lock = (struct flock){.l_type = F_WRLCK};
    churn();
    CHECK(fcntl(fd, F_SETLK, lock) == 0);
    CHECK(fcntl(fd, F_GETLK, lock) == 0 && lock->l_type == F_UNLCK);
    void *entries = place(2048);
    int dir = open("/proc/self", O_RDONLY | O_DIRECTORY);
    churn();
    CHECK(syscall(SYS_getdents64, dir, entries, 2048ul) > 0);
    close(dir);
    DIR *d = opendir("/usr");
    int entries_seen = 0;
    for (; d != NULL && readdir(d) != NULL; entries_seen++)
        ;
    CHECK(entries_seen > 4);
    closedir(d);
}

static void sockets(void)
{
    int *pair = place(sizeof(int[2]));
    churn();
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    int a = pair[0], b = pair[1];
    struct msghdr *out = place(sizeof *out), *in = place(sizeof *in);
    struct iovec *v = place(4 * sizeof *v);
    for (int i = 0; i < 4; i++)
        v[i] = (struct iovec){pool + (16 * i + 3) * PAGE + 512, 300};
    memset(out, 0, sizeof *out);
    out->msg_iov = v;
    out->msg_iovlen = 4;
    *in = *out;
    churn();
    CHECK(sendmsg(a, out, 0) == 1200);
    churn();
    CHECK(recvmsg(b, in, 0) == 1200);
    int *value = place(sizeof *value);
    socklen_t *length = place(sizeof *length);
    *length = sizeof *value;
    churn();
    CHECK(getsockopt(a, SOL_SOCKET, SO_TYPE, value, length) == 0 && *value == SOCK_DGRAM);
    *value = 1 << 16;
    churn();
    CHECK(setsockopt(a, SOL_SOCKET, SO_SNDBUF, value, sizeof *value) == 0);
    char *text = place(1000);
    churn();
    CHECK(send(a, text, 1000, 0) == 1000);
    churn();
    CHECK(ioctl(b, FIONREAD, value) == 0 && *value == 1000);
    churn();
    CHECK(recv(b, text, 1000, 0) == 1000);
    close(a), close(b);

    struct sockaddr_in *address = place(sizeof *address);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int u = socket(AF_INET, SOCK_DGRAM, 0);
    churn();
    /* The kernel takes the lower half of an int. */
    CHECK(call(SYS_bind, u, (long)address, (long)(0xffffffff00000000ull | sizeof *address)) == 0);
    *length = sizeof *address;
    churn();
    CHECK(getsockname(u, (struct sockaddr *)address, length) == 0 && address->sin_port != 0);
    CHECK(sendto(u, text, 500, 0, (struct sockaddr *)address, sizeof *address) == 500);
    churn();
    *length = sizeof *address;
    CHECK(recvfrom(u, text, 1000, 0, (struct sockaddr *)address, length) == 500);
    /* A struct that points to another one. */
    struct sock_filter *code = place(sizeof *code);
    struct sock_fprog *program = place(sizeof *program);
    *code = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 1000);
    *program = (struct sock_fprog){1, code};
    churn();
    CHECK(setsockopt(u, SOL_SOCKET, SO_ATTACH_FILTER, program, sizeof *program) == 0);
    close(u);
}

static void waiting(void)
{
    int *pipes = place(sizeof(int[2]));
    churn();
    CHECK(pipe(pipes) == 0);
    int in = pipes[0], out = pipes[1];
    struct pollfd *p = place(sizeof *p);
    *p = (struct pollfd){in, POLLIN, 0};
    churn();
    CHECK(poll(p, 1, 1) == 0);
    CHECK(write(out, p, sizeof *p) == sizeof *p);
    churn();
    CHECK(poll(p, 1, 1000) == 1 && p->revents == POLLIN);
    fd_set *set = place(sizeof *set);
    struct timeval *limit = place(sizeof *limit);
    struct timespec *limit_ns = place(sizeof *limit_ns);
    FD_ZERO(set);
    FD_SET(in, set);
    *limit = (struct timeval){1, 0};
    *limit_ns = (struct timespec){1, 0};
    churn();
    CHECK(select(in + 1, set, NULL, NULL, limit) == 1 && FD_ISSET(in, set));
    churn();
    CHECK(pselect(in + 1, set, NULL, NULL, limit_ns, NULL) == 1);
    churn();
    CHECK(ppoll(p, 1, limit_ns, NULL) == 1);
    int e = epoll_create1(0);
    struct epoll_event *event = place(4 * sizeof *event);
    *event = (struct epoll_event){.events = EPOLLIN, .data.fd = 77};
    churn();
    CHECK(epoll_ctl(e, EPOLL_CTL_ADD, in, event) == 0);
    memset(event, 0, sizeof *event);
    churn();
    CHECK(epoll_wait(e, event, 4, 1000) == 1 && event->data.fd == 77);
    close(e), close(in), close(out);

    uint32_t *word = place(sizeof *word);
    *word = 5;
    *limit_ns = (struct timespec){0, 1000000};
    churn();
    CHECK(syscall(SYS_futex, word, FUTEX_WAIT, 5, limit_ns) == -1 && errno == ETIMEDOUT);
    churn();
    CHECK(syscall(SYS_futex, word, FUTEX_WAIT, 6, limit_ns) == -1 && errno == EAGAIN);
    churn();
    CHECK(syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL) == 0);
}

static void interrupted(void)
{
    struct itimerval *timer = place(sizeof *timer);
    struct timespec *wish = place(sizeof *wish), *rest = place(sizeof *rest);
    struct sigaction a = {.sa_handler = on_alarm};
    char *byte = place(16);
    int pipes[2];
    if (pipe(pipes) != 0)
        exit(98);
    sigaction(SIGALRM, &a, NULL);
    for (int how = 0; how < 4; how++) {
        int before = alarms;
        *wish = (struct timespec){5, 0};
        *rest = (struct timespec){0, 0};
        churn();
        *timer = (struct itimerval){.it_value = {0, 8000}};
        CHECK(setitimer(ITIMER_REAL, timer, NULL) == 0);
        if (how == 0)
            CHECK(nanosleep(wish, rest) == -1 && errno == EINTR && rest->tv_sec == 4);
        else if (how == 1)
            CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, wish, rest) == EINTR && rest->tv_sec == 4);
        else if (how == 2)
            CHECK(read(pipes[0], byte, 1) == -1 && errno == EINTR);
        else
            CHECK(pause() == -1 && errno == EINTR);
        CHECK(alarms == before + 1);
    }
    /* Restarted until there is a byte. */
    a.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &a, NULL);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        _exit(7);
    }
    alarms = 0;
    third_alarm_to = pipes[1];
    churn();
    *timer = (struct itimerval){.it_interval = {0, 5000}, .it_value = {0, 5000}};
    setitimer(ITIMER_REAL, timer, NULL);
    CHECK(read(pipes[0], byte, 1) == 1 && *byte == 'x');
    CHECK(alarms >= 3);
    int *status = place(sizeof *status);
    struct rusage *usage = place(sizeof *usage);
    churn();
    CHECK(wait4(child, status, 0, usage) == child && WEXITSTATUS(*status) == 7);
    memset(timer, 0, sizeof *timer);
    setitimer(ITIMER_REAL, timer, NULL);
    close(pipes[0]), close(pipes[1]);
}

static void telling(void)
{
    struct utsname *u = place(sizeof *u);
    struct sysinfo *s = place(sizeof *s);
    struct rusage *r = place(sizeof *r);
    struct rlimit *limit = place(sizeof *limit);
    struct timespec *t = place(sizeof *t);
    cpu_set_t *set = place(sizeof *set);
    char *text = place(512);
    churn();
    CHECK(uname(u) == 0 && u->sysname[0] == 'L');
    CHECK(sysinfo(s) == 0 && s->procs > 0);
    churn();
    CHECK(getrusage(RUSAGE_SELF, r) == 0);
    CHECK(getrlimit(RLIMIT_NOFILE, limit) == 0 && limit->rlim_cur > 0);
    churn();
    CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, t) == 0 && t->tv_sec > 1000000);
    CHECK(sched_getaffinity(0, sizeof *set, set) == 0 && CPU_COUNT(set) > 0);
    churn();
    CHECK(getcwd(text, 512) == text);
    CHECK(syscall(SYS_getrandom, text, 512ul, 0ul) == 512);
    struct iovec *v = place(2 * sizeof *v);
    v[0] = (struct iovec){place(64), 64};
    v[1] = (struct iovec){place(64), 64};
    churn();
    CHECK(process_vm_readv(getpid(), &v[0], 1, &v[1], 1, 0) == 64);
    sigset_t *mask = place(sizeof *mask);
    churn();
    CHECK(sigpending(mask) == 0 && !sigismember(mask, SIGINT));
}

/* What must fail goes on to fail, in the same way. */
static void bad(int fd)
{
    void *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    churn();
    CHECK(pread(fd, hole, 10, 0) == -1 && errno == EFAULT);
    CHECK(stat(hole, place(sizeof(struct stat))) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_pread64, fd, place(16), -1l, 0l) == -1 && errno == EFAULT);
    munmap(hole, PAGE);
}

int main(void)
{
    char path[] = "/tmp/watched-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    unlink(path);
    make_pool();
    for (int i = 0; i < ROUNDS; i++) {
        files(fd);
        sockets();
        waiting();
        telling();
        bad(fd);
        if (i % 4 == 0)
            interrupted();
    }
    printf("checks %ld wrong %ld\n", checks, wrong);
    return wrong != 0;
}
