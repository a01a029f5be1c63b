/* SPDX-License-Identifier: Apache-2.0 */
/* other_memory.c - a child reads and writes the memory of its parent by process_vm_readv and
 * process_vm_writev, as MPI libraries do, while the parent works in it. With an argument: through syscall().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 128u
#define BYTES (PAGES * PAGE)

static unsigned char
    *area; /* of each line the first byte is the parent's, the rest constant, or the child's */
static int directly;

static ssize_t transfer(int writes, pid_t pid, const struct iovec *local, unsigned long n,
                        const struct iovec *remote, unsigned long m)
{
    if (directly)
        return syscall(writes ? SYS_process_vm_writev : SYS_process_vm_readv, pid, local, n, remote, m, 0ul);
    return writes ? process_vm_writev(pid, local, n, remote, m, 0)
                  : process_vm_readv(pid, local, n, remote, m, 0);
}

static void work(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        area[(i * 2654435761u) % BYTES & ~63u]++;
}

static unsigned char constant(unsigned at)
{
    return (unsigned char)(at / 64 * 7 + 3);
}

static void fill(void)
{
    for (unsigned i = 0; i < BYTES; i += 64)
        for (unsigned k = 1; k < 64; k++)
            area[i + k] = constant(i);
}

static long wrong(const unsigned char *copy)
{
    long n = 0;
    for (unsigned i = 0; i < BYTES; i += 64)
        n += copy[i + 1] != constant(i) || copy[i + 40] != constant(i);
    return n;
}

static void child(pid_t parent)
{
    static unsigned char copy[BYTES + PAGE];
    long failed = 0, bad = 0, odd = 0;
    struct timespec end, now;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 1;
    do {
        struct iovec whole = {copy, BYTES}, there = {area, BYTES};
        memset(copy, 0, sizeof copy);
        failed += transfer(0, parent, &whole, 1, &there, 1) != (ssize_t)BYTES;
        bad += wrong(copy);

        /* Parts of other sizes here and there, an empty one among them. */
        struct iovec parts[4] = {{copy, 100},
                                 {copy, 0},
                                 {copy + 100, PAGE + 5},
                                 {copy + PAGE + 105, BYTES - PAGE - 105}},
                     others[3] = {{area, 5000}, {area + 5000, 70000}, {area + 75000, BYTES - 75000}};
        memset(copy, 0, sizeof copy);
        failed += transfer(0, parent, parts, 4, others, 3) != (ssize_t)BYTES;
        bad += wrong(copy);

        /* The byte 63 of each line is the child's. */
        struct iovec lines[64], theirs[64];
        for (unsigned i = 0; i < 64; i++) {
            lines[i] = (struct iovec){copy + 64 * i + 63, 1};
            theirs[i] = (struct iovec){area + 64 * i * 128 + 63, 1};
            copy[64 * i + 63] = (unsigned char)(i + (unsigned)failed);
        }
        failed += transfer(1, parent, lines, 64, theirs, 64) != 64;
        memset(copy, 0, sizeof copy);
        failed += transfer(0, parent, lines, 64, theirs, 64) != 64;
        for (unsigned i = 0; i < 64; i++)
            bad += copy[64 * i + 63] != (unsigned char)i;

        /* What is inaccessible natively stays so: the page after the area, a page without any mapping. */
        struct iovec more = {copy, BYTES + PAGE}, beyond = {area, BYTES + PAGE}, after = {area + BYTES, 8},
                     none = {NULL, 8}, some = {copy, 8};
        odd += transfer(0, parent, &more, 1, &beyond, 1) != (ssize_t)BYTES;
        odd += transfer(0, parent, &some, 1, &after, 1) != -1 || errno != EFAULT;
        odd += transfer(1, parent, &some, 1, &after, 1) != -1 || errno != EFAULT;
        odd += transfer(0, parent, &none, 1, &there, 1) != -1 || errno != EFAULT;
        odd += transfer(0, parent, &some, 1, &none, 1) != -1 || errno != EFAULT;
        odd += transfer(0, parent, (void *)8, 1, &there, 1) != -1 || errno != EFAULT;
        odd += transfer(0, 0x3ffffff, &some, 1, &there, 1) != -1 || errno != ESRCH;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    printf("failed %ld, bad %ld, odd %ld\n", failed, bad, odd);
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    (void)argv;
    directly = argc > 1;
    area = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(area + BYTES, PAGE, PROT_NONE);
    fill();
    pid_t parent = getpid(), pid = fork();
    int status;
    if (pid == 0)
        child(parent);
    while (waitpid(pid, &status, WNOHANG) == 0)
        work(100000);
    printf("status %#x\n", status);
    return 0;
}
