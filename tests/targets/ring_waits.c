/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits in io_uring_enter for what another thread sends in pieces: the call copies each, and waits again.
 * Prints how many calls failed with EINTR, though no signal comes, by how the number of the call gets to eax:
 * it is loaded right before the call, copied from another register, or given to syscall().
 *
 * usage: ring_waits ROUNDS [async]: async: a thread of the kernel's copies, and the call only waits
 */
/* build: -pthread */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };
static int data[2], go[2];

static long enter_loaded(long fd, long submit, long complete)
{
    register long r10 __asm__("r10") = IORING_ENTER_GETEVENTS, r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;
    long result;
    __asm__ volatile("mov $426, %%eax; syscall"
                     : "=a"(result)
                     : "D"(fd), "S"(submit), "d"(complete), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static long enter_copied(long fd, long submit, long complete)
{
    register long r10 __asm__("r10") = IORING_ENTER_GETEVENTS, r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;
    register long r15 __asm__("r15") = SYS_io_uring_enter;
    long result;
    __asm__ volatile("mov %%r15d, %%eax; syscall"
                     : "=a"(result)
                     : "D"(fd), "S"(submit), "d"(complete), "r"(r10), "r"(r8), "r"(r9), "r"(r15)
                     : "rcx", "r11", "memory");
    return result;
}

static long enter_by_libc(long fd, long submit, long complete)
{
    long result = syscall(SYS_io_uring_enter, fd, submit, complete, IORING_ENTER_GETEVENTS, NULL, 0);
    return result < 0 ? -errno : result;
}

static void *fill(void *unused)
{
    static char bytes[SIZE];
    char c;
    while (read(go[0], &c, 1) == 1)
        if (send(data[1], bytes, SIZE, 0) != SIZE)
            abort();
    return unused;
}

int main(int argc, char **argv)
{
    static long (*const ways[3])(long, long, long) = {enter_loaded, enter_copied, enter_by_libc};
    static char received[SIZE];
    struct io_uring_params p = {0};
    long rounds = argc > 1 ? atol(argv[1]) : 1, interrupted[3] = {0}, failed = 0;
    int ring = (int)syscall(SYS_io_uring_setup, 4, &p);
    if (ring < 0 || !(p.features & IORING_FEAT_SINGLE_MMAP))
        return 77;
    size_t bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *rings =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    unsigned *tail = (unsigned *)(rings + p.sq_off.tail), *mask = (unsigned *)(rings + p.sq_off.ring_mask),
             *array = (unsigned *)(rings + p.sq_off.array), *head = (unsigned *)(rings + p.cq_off.head),
             *cq_tail = (unsigned *)(rings + p.cq_off.tail);
    pthread_t thread;
    if (rings == MAP_FAILED || (void *)sqe == MAP_FAILED || pipe(go) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, data) != 0)
        return 77;
    pthread_create(&thread, NULL, fill, NULL);
    for (long i = 0; i < rounds; i++) {
        unsigned at = *tail; /* only one request at a time */
        sqe[at & *mask] = (struct io_uring_sqe){.opcode = IORING_OP_RECV,
                                                .flags = argc > 2 ? IOSQE_ASYNC : 0,
                                                .fd = data[0],
                                                .addr = (uint64_t)received,
                                                .len = SIZE,
                                                .msg_flags = MSG_WAITALL};
        array[at & *mask] = at & *mask;
        __atomic_store_n(tail, at + 1, __ATOMIC_RELEASE);
        if (enter_loaded(ring, 1, 0) != 1 || write(go[1], "", 1) != 1)
            failed++;
        while (failed == 0 && __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE) == *head) {
            long result = ways[i % 3](ring, 0, 1);
            interrupted[i % 3] += result == -EINTR;
            failed += result < 0 && result != -EINTR;
        }
        __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    }
    printf("interrupted %ld %ld %ld, failed %ld\n", interrupted[0], interrupted[1], interrupted[2], failed);
    return 0;
}
