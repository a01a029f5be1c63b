/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings and rights that change, system calls that meet them, and programs that read all of their memory.
 */
#include "../hunt.h"

static uint64_t digest(const uint8_t *p, size_t n)
{
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ p[i]) * 1099511628211u;
    return sum;
}

/* hunt: leaf not vfork */
static void mappings(struct run *r, int rounds /* 3..20 */, int pages /* 2..40 */, int shared_too /* 0..1 */)
{
    uint64_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        size_t n = (size_t)pages * PAGE;
        uint8_t *p = mmap(NULL, 2 * n, PROT_READ | PROT_WRITE,
                          MAP_ANONYMOUS | (shared_too && round % 2 ? MAP_SHARED : MAP_PRIVATE), -1, 0);
        memset(p, round + 1, 2 * n);
        work(r, 1);
        munmap(p + n, n);
        work(r, 1);
        uint8_t *q = mremap(p, n, 3 * n, MREMAP_MAYMOVE);
        CHECK(q != MAP_FAILED);
        if (q == MAP_FAILED)
            return;
        sum += digest(q, n) + (uint64_t)round;
        CHECK(shared_too || q[2 * n] == 0);
        /* A new mapping in the middle of the old one. */
        CHECK(mmap(q + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              q + PAGE);
        sum = sum * 31 + digest(q, n);
        mprotect(q, PAGE, PROT_READ);
        work(r, 1);
        sum = sum * 31 + digest(q, n);
        munmap(q, 3 * n);
    }
    note(r, "mappings %llx\n", (unsigned long long)sum);
}

/* The pool itself, where lines are watched, is moved, emptied, replaced. */
/* hunt: leaf not vfork */
static void move_pool(struct run *r, int rounds /* 3..25 */, int how /* 0..5 */)
{
    struct memory *m = &memories[r->id];
    uint8_t *before = m->pool;
    size_t n = POOL_PAGES * PAGE;
    uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, before, n);
    m->pool = p;
    uint64_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        work(r, 3);
        uint8_t *q;
        switch (how) {
        case 0: /* to another place */
            q = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            q = mremap(m->pool, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, q);
            CHECK(q != MAP_FAILED);
            m->pool = q;
            break;
        case 1:
            CHECK(madvise(m->pool + 4 * PAGE, 8 * PAGE, MADV_DONTNEED) == 0);
            break;
        case 2: /* new memory in its place */
            CHECK(mmap(m->pool + 3 * PAGE, 5 * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
            break;
        case 3: /* rights there and back */
            CHECK(mprotect(m->pool, n, PROT_READ) == 0);
            sum = sum * 31 + digest(m->pool, n);
            CHECK(mprotect(m->pool + 2 * PAGE, 4 * PAGE, PROT_NONE) == 0);
            CHECK(mprotect(m->pool, n, PROT_READ | PROT_WRITE) == 0);
            break;
        case 4: /* pieces of it swapped */
            q = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(mremap(m->pool + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
            CHECK(mremap(m->pool + 7 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, m->pool + PAGE) !=
                  MAP_FAILED);
            CHECK(mremap(q, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, m->pool + 7 * PAGE) != MAP_FAILED);
            break;
        default:
            CHECK(madvise(m->pool, n, round % 2 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
            CHECK(mlock(m->pool + PAGE, PAGE) == 0 && munlock(m->pool + PAGE, PAGE) == 0);
            CHECK(msync(m->pool, n, MS_ASYNC) == 0);
        }
        sum = sum * 31 + digest(m->pool, n);
    }
    memcpy(before, m->pool, n);
    uint8_t *last = m->pool;
    m->pool = before;
    munmap(last, n);
    note(r, "moved %llx\n", (unsigned long long)sum);
}

/* System calls whose memory may not be read or written: the kernel's answer, and what was transferred. */
/* hunt: leaf not vfork,seccomp */
static void efault(struct run *r, int rounds /* 3..20 */)
{
    uint8_t *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t sum = 0;
    int fds[2], zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    mprotect(p + PAGE, PAGE, PROT_NONE);
    for (int round = 0; round < rounds; round++) {
        long answers[12];
        int n = 0;
        work(r, 1);
#define ANSWER(call) (answers[n++] = (call) == -1 ? -errno : 1)
        ANSWER(read(zero, p + PAGE, 10));
        ANSWER(read(zero, p + PAGE - 10, 20));
        ANSWER(write(fds[1], p + PAGE - 5, 10));
        ANSWER(write(fds[1], p + PAGE, 10));
        ANSWER(read(fds[0], p + PAGE, 10));
        ANSWER(read(fds[0], p, 10));
        ANSWER(clock_gettime(12345, (void *)(p + PAGE)));
        ANSWER(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, p + PAGE - 8));
        ANSWER(syscall(SYS_nanosleep, p + PAGE, NULL));
        ANSWER(syscall(SYS_getcwd, p + PAGE, 100));
        ANSWER(open((char *)p + PAGE, O_RDONLY));
        ANSWER(syscall(SYS_rt_sigpending, p + PAGE, 8));
        for (int i = 0; i < n; i++)
            sum = sum * 31 + (uint64_t)answers[i];
        if (round == 0)
            for (int i = 0; i < n; i++)
                note(r, "%ld%c", answers[i], i == n - 1 ? '\n' : ' ');
    }
    close(fds[0]), close(fds[1]), close(zero);
    munmap(p, 3 * PAGE);
    note(r, "answers %llx\n", (unsigned long long)sum);
}

/* Many kinds of calls with buffers on pages of the pool. */
/* hunt: leaf not vfork,seccomp */
static void buffers(struct run *r, int rounds /* 5..40 */)
{
    int fds[2], sv[2];
    uint64_t sum = 0;
    CHECK(pipe2(fds, O_CLOEXEC) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
    for (int round = 0; round < rounds; round++) {
        work(r, 2);
        char *a = place(r, 600), *b = place(r, 600);
        for (int i = 0; i < 600; i++)
            a[i] = (char)(i * round);
        CHECK(AGAIN(write(fds[1], a, 500)) == 500);
        CHECK(AGAIN(read(fds[0], b, 500)) == 500);
        sum = sum * 31 + digest((uint8_t *)b, 500);
        struct iovec *v = place(r, sizeof *v * 2);
        v[0] = (struct iovec){a, 100}, v[1] = (struct iovec){b, 200};
        CHECK(AGAIN(writev(sv[0], v, 2)) == 300);
        struct msghdr *h = place(r, sizeof *h);
        struct iovec *w = place(r, sizeof *w);
        char *c = place(r, 400);
        *w = (struct iovec){c, 300};
        *h = (struct msghdr){.msg_iov = w, .msg_iovlen = 1};
        CHECK(AGAIN(recvmsg(sv[1], h, MSG_WAITALL)) == 300);
        sum = sum * 31 + digest((uint8_t *)c, 300);
        struct pollfd *q = place(r, sizeof *q);
        *q = (struct pollfd){sv[1], POLLIN | POLLOUT, 0};
        CHECK(AGAIN(poll(q, 1, 0)) == 1 && q->revents == POLLOUT);
        struct stat *s = place(r, sizeof *s);
        CHECK(stat("/proc", s) == 0 && S_ISDIR(s->st_mode));
        struct timespec *t = place(r, sizeof *t);
        *t = (struct timespec){0, 1000};
        CHECK(AGAIN(nanosleep(t, NULL)) == 0);
        struct rlimit *l = place(r, sizeof *l);
        CHECK(getrlimit(RLIMIT_CORE, l) == 0);
        fd_set *set = place(r, sizeof *set);
        struct timeval *tv = place(r, sizeof *tv);
        FD_ZERO(set);
        FD_SET(sv[1], set);
        *tv = (struct timeval){0, 0};
        CHECK(AGAIN(select(sv[1] + 1, set, NULL, NULL, tv)) == 0);
        char *name = place(r, 64);
        strcpy(name, "/proc/self/comm");
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0 && read(fd, c, 16) > 0);
        close(fd);
    }
    close(fds[0]), close(fds[1]), close(sv[0]), close(sv[1]);
    note(r, "buffers %llx\n", (unsigned long long)sum);
}

/* What a conservative collector does: it reads the writable data of every loaded library. */
static struct {
    volatile uint64_t *at;
    size_t words;
} roots_[400];
static int roots_n_;

static int add_roots(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_W && roots_n_ < 400) {
            roots_[roots_n_].at = (void *)((info->dlpi_addr + p->p_vaddr + 7) & ~7ul);
            roots_[roots_n_++].words = p->p_memsz / 8 - 1;
        }
    }
    return 0;
}

/* hunt: leaf claims ROOTS not maps,vfork */
static void read_roots(struct run *r, int rounds /* 20..400 */)
{
    uint64_t sum = 0;
    roots_n_ = 0;
    dl_iterate_phdr(add_roots, NULL);
    for (int round = 0; round < rounds; round++) {
        for (int k = 0; k < roots_n_; k++)
            for (size_t i = 0; i < roots_[k].words && i < 20000; i++)
                sum += roots_[k].at[i];
        if (round % 16 == 0)
            work(r, 1);
    }
    note(r, "roots %d\n", sum != 0);
}

/* hunt: leaf claims ROOTS not maps,vfork,threads */
static void read_all(struct run *r, int rounds /* 1..6 */, int step /* 64 512 4096 */)
{
    static char maps[1 << 18];
    uint64_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
        size_t n = 0;
        for (ssize_t got; n < sizeof maps - 1 && (got = AGAIN(read(fd, maps + n, sizeof maps - 1 - n))) > 0;)
            n += (size_t)got;
        maps[n] = 0;
        close(fd);
        for (char *line = maps, *next; line != NULL && *line; line = next) {
            next = strchr(line, '\n');
            if (next != NULL)
                *next++ = 0;
            unsigned long from, to;
            char rights[8];
            if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || rights[0] != 'r' ||
                strstr(line, "[v") != NULL)
                continue;
            unsigned long stride = (unsigned long)step;
            while ((to - from) / stride > 20000)
                stride *= 2;
            for (unsigned long at = from; at < to; at += stride)
                sum += *(volatile uint8_t *)at;
        }
        work(r, 4);
    }
    note(r, "all %d\n", sum != 0);
}

/* The process' own memory read and written through other doors. */
/* hunt: leaf not vfork,seccomp */
static void other_doors(struct run *r, int rounds /* 3..25 */, int how /* 0..2 */)
{
    uint64_t sum = 0;
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    for (int round = 0; round < rounds; round++) {
        work(r, 2);
        char *a = place(r, 500), *b = place(r, 500);
        for (int i = 0; i < 500; i++)
            a[i] = (char)(i + round);
        struct iovec v = {b, 500}, w = {a, 500};
        if (how == 0)
            CHECK(process_vm_readv(getpid(), &v, 1, &w, 1, 0) == 500);
        else if (how == 1)
            CHECK(process_vm_writev(getpid(), &w, 1, &v, 1, 0) == 500);
        else {
            CHECK(pwrite(fd, a, 500, (off_t)(uintptr_t)b) == 500);
            CHECK(pread(fd, a, 500, (off_t)(uintptr_t)b) == 500);
        }
        sum = sum * 31 + digest((uint8_t *)b, 500);
    }
    close(fd);
    note(r, "doors %llx\n", (unsigned long long)sum);
}

/* hunt: leaf claims BRK not vfork,threads */
static void program_break(struct run *r, int rounds /* 3..20 */)
{
    uint64_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        uint8_t *p = sbrk(6 * PAGE);
        memset(p, round, 6 * PAGE);
        work(r, 1);
        sum = sum * 31 + digest(p, 6 * PAGE);
        work(r, 1);
        if (sbrk(0) == p + 6 * PAGE)
            sbrk(-6 * PAGE);
    }
    note(r, "break %llx\n", (unsigned long long)sum);
}

/* A file that shrinks below its mapping and grows again. */
/* hunt: leaf not vfork */
static void files(struct run *r, int rounds /* 3..15 */, int private /* 0..1 */)
{
    uint64_t sum = 0;
    int fd = memfd_create("hunt", MFD_CLOEXEC);
    CHECK(ftruncate(fd, 8 * PAGE) == 0);
    uint8_t *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, private ? MAP_PRIVATE : MAP_SHARED, fd, 0);
    for (int round = 0; round < rounds; round++) {
        memset(p, round + 1, 8 * PAGE);
        work(r, 1);
        CHECK(ftruncate(fd, 4 * PAGE) == 0 && ftruncate(fd, 8 * PAGE) == 0);
        CHECK(pwrite(fd, "hello", 5, 6 * PAGE) == 5);
        sum = sum * 31 + digest(p, 8 * PAGE);
        work(r, 1);
        sum = sum * 31 + digest(p, 8 * PAGE);
        if (private)
            madvise(p, 8 * PAGE, MADV_DONTNEED);
    }
    munmap(p, 8 * PAGE);
    close(fd);
    note(r, "file %llx\n", (unsigned long long)sum);
}

/* Memory that another process sees, or does not. */
/* hunt: leaf not vfork */
static void inherited(struct run *r, int advice /* MADV_NORMAL MADV_DONTFORK MADV_WIPEONFORK */)
{
    struct memory *m = &memories[r->id];
    uint8_t *before = m->pool;
    size_t n = POOL_PAGES * PAGE;
    m->pool = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(m->pool, 3, n);
    CHECK(madvise(m->pool + 8 * PAGE, 8 * PAGE, advice) == 0);
    work(r, 5);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct sigaction deadly = {.sa_handler = SIG_DFL};
        sigaction(SIGSEGV, &deadly, NULL);
        sigset_t none;
        sigemptyset(&none), sigaddset(&none, SIGSEGV);
        sigprocmask(SIG_UNBLOCK, &none, NULL);
        unsigned char seen = m->pool[8 * PAGE + 100];
        _exit(seen == 0 ? 1 : 2);
    }
    work(r, 5);
    ended(r, pid);
    munmap(m->pool, n);
    m->pool = before;
}

/* A mapping that grows down as its guard page is touched: at an address where no one else maps anything. */
/* hunt: leaf claims GROWS not vfork,maps */
static void grows_down(struct run *r, int pages /* 4..60 */)
{
    uint8_t *top = mmap((void *)0x200000000000, PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(top != MAP_FAILED);
    for (int i = 0; i < pages; i++) {
        top[-(ptrdiff_t)i * PAGE] = (uint8_t)i;
        if (i % 4 == 0)
            work(r, 1);
    }
    note(r, "grown\n");
    munmap(top - (ptrdiff_t)(pages - 1) * PAGE, (size_t)pages * PAGE);
}
