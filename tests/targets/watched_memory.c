/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings that change, and are looked at, while pages of them are closed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "watched.h"

enum { N = 32 };

static uint8_t *map(size_t bytes, int protection)
{
    uint8_t *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(97);
    return p;
}

/* Touches the pages now and then, so that their lines are survivors of bursts. */
static void use(uint8_t *p)
{
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < N; i++)
            (void)*(volatile uint8_t *)&p[i * PAGE + (int)(roll() % PAGE)];
        churn();
    }
}

static int is_all(const uint8_t *p, size_t bytes, int value)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != value)
            return 0;
    return 1;
}

static volatile int denied;
static uint8_t *volatile expected;

static void on_denied(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)uc;
    denied += info->si_code == SEGV_ACCERR && (uint8_t *)info->si_addr == expected;
    if (mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE) !=
        0)
        _exit(78);
}

static void change(int fd)
{
    /* Given back with a length that is not one of whole pages, and something else put there. */
    uint8_t *p = map(N * PAGE, PROT_READ | PROT_WRITE);
    memset(p, 7, N * PAGE);
    use(p);
    CHECK(munmap(p + 4 * PAGE, 3 * PAGE + 100) == 0);
    uint8_t *q =
        mmap(p + 4 * PAGE, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(q == p + 4 * PAGE && is_all(q, 4 * PAGE, 0));
    use(p);
    expected = q + 3 * PAGE + 200; /* what is read-only stays so */
    int before = denied;
    *(volatile uint8_t *)expected = 1;
    CHECK(denied == before + 1);
    /* Replaced, emptied, moved, made larger. */
    use(p);
    CHECK(mmap(p, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == p &&
          is_all(p, PAGE, 9));
    use(p);
    CHECK(madvise(p + 10 * PAGE, 5 * PAGE - 1, MADV_DONTNEED) == 0 && is_all(p + 10 * PAGE, 5 * PAGE, 0));
    use(p);
    uint8_t *moved =
        mremap(p + 16 * PAGE, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, map(8 * PAGE, PROT_READ));
    CHECK(moved != MAP_FAILED && is_all(moved, 8 * PAGE, 7));
    CHECK(munmap(moved, 8 * PAGE) == 0);
    CHECK(munmap(p, N * PAGE) == 0);
    /* Protected and used again; by libc's function and by the system call itself. */
    p = map(N * PAGE, PROT_READ | PROT_WRITE);
    memset(p, 3, N * PAGE);
    for (int round = 0; round < 4; round++) {
        use(p);
        CHECK((round & 1 ? (int)syscall(SYS_mprotect, p, N * PAGE, PROT_READ)
                         : mprotect(p, N * PAGE, PROT_READ)) == 0);
        use(p);
        expected = p + (roll() % N) * PAGE + roll() % PAGE;
        before = denied;
        *(volatile uint8_t *)expected = 3;
        CHECK(denied == before + 1);
        CHECK(mprotect(p, N * PAGE, PROT_READ | PROT_WRITE) == 0);
        CHECK(is_all(p, N * PAGE, 3));
    }
    munmap(p, N * PAGE);
}

static void look(void)
{
    unsigned char seen[N];
    uint8_t *p = map(N * PAGE, PROT_READ | PROT_WRITE), *file;
    memset(p, 5, N * PAGE);
    use(p);
    CHECK(mincore(p, N * PAGE, seen) == 0);
    for (int i = 0; i < N; i++)
        CHECK(seen[i] & 1);
    use(p);
    CHECK(mlock(p, N * PAGE) == 0);
    use(p);
    CHECK(munlock(p, N * PAGE) == 0);
    munmap(p, N * PAGE);
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    CHECK(ftruncate(fd, N * PAGE) == 0);
    file = mmap(NULL, N * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(file, 6, N * PAGE);
    use(file);
    CHECK(msync(file, N * PAGE, MS_SYNC) == 0);
    uint8_t back[PAGE];
    CHECK(pread(fd, back, PAGE, 5 * PAGE) == PAGE && is_all(back, PAGE, 6));
    munmap(file, N * PAGE);
    close(fd);
}

/* The program's own list of its mappings: the pool is one piece in it, and nothing in it is closed. */
static void own_maps(const char *path, int how)
{
    static char text[1 << 20]; /* smaps has half a kilobyte for each mapping */
    size_t used = 0;
    churn();
    int fd = open(path, O_RDONLY);
    for (;;) {
        struct iovec v = {text + used, sizeof text - 1 - used};
        ssize_t got = how == 0   ? read(fd, v.iov_base, v.iov_len)
                      : how == 1 ? readv(fd, &v, 1)
                                 : pread(fd, v.iov_base, v.iov_len, (off_t)used);
        if (got <= 0)
            break;
        used += (size_t)got;
        churn();
    }
    close(fd);
    text[used] = '\0';
    int found = 0;
    for (char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL) {
        unsigned long start, end;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && start <= (uintptr_t)pool &&
            end >= (uintptr_t)pool + PAGES * PAGE)
            found += strcmp(rights, "rw-p") == 0;
    }
    CHECK(found == 1);
}

/* The heap grows and shrinks; what comes back is what malloc promises. */
static void heap(void)
{
    enum { BLOCKS = 400 };
    static uint8_t *block[BLOCKS];
    static size_t size[BLOCKS];
    for (int i = 0; i < 6000; i++) {
        unsigned k = roll() % BLOCKS;
        if (block[k] != NULL)
            CHECK(is_all(block[k], size[k], (int)(k & 255)));
        if (roll() & 1) {
            free(block[k]);
            size[k] = roll() % (roll() % 20 == 0 ? 300000 : 5000);
            block[k] = calloc(1, size[k] + 1);
            CHECK(is_all(block[k], size[k], 0));
        } else {
            size_t larger = size[k] + roll() % 3000;
            uint8_t *p = realloc(block[k], larger + 1);
            block[k] = p;
            size[k] = larger;
        }
        memset(block[k], (int)(k & 255), size[k]);
        if (i % 16 == 0)
            churn();
        if (i % 500 == 0)
            malloc_trim(0);
    }
    void *top = sbrk(64 * PAGE);
    memset(top, 1, 64 * PAGE);
    for (int i = 0; i < 20; i++)
        churn();
    CHECK(brk(top) == 0 && sbrk(0) == top);
    CHECK(sbrk(64 * PAGE) == top && is_all(top, 64 * PAGE, 0));
    brk(top);
}

int main(int argc, char **argv)
{
    struct sigaction a = {.sa_sigaction = on_denied, .sa_flags = SA_SIGINFO};
    const char *what = argc > 1 ? argv[1] : "";
    make_pool();
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    uint8_t nine[2 * PAGE];
    memset(nine, 9, sizeof nine);
    if (write(fd, nine, sizeof nine) != sizeof nine)
        return 1;
    sigaction(SIGSEGV, &a, NULL);
    for (int i = 0; i < 30; i++) {
        if (strcmp(what, "change") == 0)
            change(fd);
        else if (strcmp(what, "look") == 0)
            look();
        else if (strcmp(what, "maps") == 0)
            own_maps(i & 1 ? "/proc/self/maps" : "/proc/self/smaps", i % 3);
        else if (i == 0)
            heap();
    }
    printf("wrong %ld\n", wrong);
    return wrong != 0;
}
