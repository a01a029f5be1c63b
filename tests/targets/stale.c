/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/*
 * Code that changes, at the border of two pages with protection of their own: instructions of which the last
 * bytes, or of which all but the prefix lie on the second page, and blocks that go on there. Only the second
 * page changes, in all the ways that there are. Each function does LOADS loads from the page that it is
 * given, so that a profile tells whether it was run translated.
 *
 *   stale FOLDER self     the program changes its code itself
 *   stale FOLDER threads  another thread does, while this one runs other code
 *   stale FOLDER outside  a child process does
 *
 * and two more arguments: calls between changes, and the only way to be tried;
 *
 * it prints one line for each way; natively, nothing is ever wrong.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, LOADS = 30, ROUNDS = 40 };
enum { R = PROT_READ, RW = PROT_READ | PROT_WRITE, RX = PROT_READ | PROT_EXEC, RWX = RW | PROT_EXEC };

/* What of the function lies on the first page. */
static const char *const layouts[] = {"immediate", "jump", "prefix", "block", "page's end"};
enum { NLAYOUTS = sizeof layouts / sizeof layouts[0], JUMP = 1, PREFIX, BLOCK, PAGES_END };

/* Both pages of the function that returns `value`. Returns where it begins. */
static int emit(uint8_t *page, int layout, uint8_t value)
{
    uint8_t code[512], *p = code, *border = NULL;
    memset(page, 0xcc, 2 * PAGE);
    for (int i = 0; i < LOADS; i++) { /* mov ecx, [rdi + 8 * i] */
        *p++ = 0x8b, *p++ = 0x4f, *p++ = (uint8_t)(8 * i % 128);
    }
    switch (layout) {
    case JUMP: /* its whole displacement lies on the second page */
        *p++ = 0xe9;
        border = p;
        *p++ = (uint8_t)(16 * value), *p++ = (uint8_t)(value >> 4), *p++ = 0, *p++ = 0;
        for (int i = 0; i < 64; i++) {
            uint8_t *q = page + PAGE + 4 + 16 * i;
            *q++ = 0xb8, *q++ = (uint8_t)i, *q++ = 0, *q++ = 0, *q++ = 0, *q = 0xc3;
        }
        break;
    case PREFIX: /* mov eax, 0; then 66 | b8: mov ax, value */
        *p++ = 0x31, *p++ = 0xc0;
        *p++ = 0x66;
        border = p;
        *p++ = 0xb8, *p++ = value, *p++ = 0, *p++ = 0xc3;
        break;
    case PAGES_END: /* jump to the first byte of the next page */
        *p++ = 0x31, *p++ = 0xc0;
        *p++ = 0xeb, *p++ = 0;
        border = p;
        *p++ = 0xb8, *p++ = value, *p++ = 0, *p++ = 0, *p++ = 0, *p++ = 0xc3;
        break;
    case BLOCK: /* xor eax, eax; | add eax, value */
        *p++ = 0x31, *p++ = 0xc0;
        border = p;
        *p++ = 0x83, *p++ = 0xc0, *p++ = value, *p++ = 0xc3;
        break;
    default: /* b8 | value: mov eax, value */
        *p++ = 0xb8;
        border = p;
        *p++ = value, *p++ = 0, *p++ = 0, *p++ = 0, *p++ = 0xc3;
    }
    int start = PAGE - (int)(border - code);
    memcpy(page + start, code, (size_t)(p - code));
    return start;
}

/* Files with the two pages, one for each value. */
static const char *folder;
static uint8_t *base; /* the two pages of each layout, one after the other, with one in between */
static int start_of[NLAYOUTS];
static long data[32];

static int file_with(int layout, uint8_t value)
{
    static uint8_t both[2 * PAGE];
    char path[4096];
    snprintf(path, sizeof path, "%s/stale-%d", folder, getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    start_of[layout] = emit(both, layout, value);
    if (fd < 0 || write(fd, both, sizeof both) != sizeof both)
        exit(3);
    unlink(path);
    return fd;
}

static uint8_t *page_of(int layout)
{
    return base + 3 * PAGE * layout;
}

static void map_fresh(int layout, uint8_t value)
{
    int fd = file_with(layout, value);
    if (mmap(page_of(layout), 2 * PAGE, RX, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
        exit(3);
    close(fd);
}

static int call(int layout)
{
    return ((int (*)(long *))(void *)(page_of(layout) + start_of[layout]))(data);
}

/* A system call instruction of our own: no function of libc's is called. */
static long raw(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static void patch(uint8_t *second, int layout, uint8_t value)
{
    static uint8_t both[2 * PAGE];
    emit(both, layout, value);
    if (layout == JUMP)
        memcpy(second, both + PAGE, 2);
    else
        memcpy(second, both + PAGE, 5);
}

/* --- the ways: each makes the second page at `second` one that returns value --- */

static void by_mprotect(uint8_t *second, int layout, uint8_t value)
{
    mprotect(second, PAGE, RW);
    patch(second, layout, value);
    mprotect(second, PAGE, RX);
}

static void by_syscall(uint8_t *second, int layout, uint8_t value)
{
    syscall(SYS_mprotect, second, PAGE, RW);
    patch(second, layout, value);
    syscall(SYS_mprotect, second, PAGE, RX);
}

static void by_instruction(uint8_t *second, int layout, uint8_t value)
{
    raw(SYS_mprotect, (long)second, PAGE, RW);
    patch(second, layout, value);
    raw(SYS_mprotect, (long)second, PAGE, RX);
}

/* It stays writable, from the first time on. */
static void by_store(uint8_t *second, int layout, uint8_t value)
{
    static uint8_t done;
    if (!(done >> layout & 1))
        mprotect(second, PAGE, RWX);
    done |= (uint8_t)(1u << layout);
    patch(second, layout, value);
}

static void by_store_raw(uint8_t *second, int layout, uint8_t value)
{
    static uint8_t done;
    if (!(done >> layout & 1))
        raw(SYS_mprotect, (long)second, PAGE, RWX);
    done |= (uint8_t)(1u << layout);
    patch(second, layout, value);
}

/* The same memory is mapped elsewhere, to be written there. */
static void by_second_mapping(uint8_t *second, int layout, uint8_t value)
{
    static uint8_t *other[NLAYOUTS];
    if (!other[layout]) {
        int fd = memfd_create("code", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, PAGE))
            exit(3);
        other[layout] = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
        memcpy(other[layout], second, PAGE);
        mmap(second, PAGE, RX, MAP_SHARED | MAP_FIXED, fd, 0);
        close(fd);
    }
    patch(other[layout], layout, value);
}

static void by_file_write(uint8_t *second, int layout, uint8_t value)
{
    static int file[NLAYOUTS];
    uint8_t copy[PAGE];
    memcpy(copy, second, PAGE);
    if (!file[layout]) {
        file[layout] = file_with(layout, value);
        mmap(second, PAGE, RX, MAP_SHARED | MAP_FIXED, file[layout], PAGE);
    }
    patch(copy, layout, value);
    if (pwrite(file[layout], copy, 8, PAGE) != 8)
        exit(3);
}

static void by_process_vm(uint8_t *second, int layout, uint8_t value)
{
    static uint8_t done, copy[PAGE];
    if (!(done >> layout & 1))
        mprotect(second, PAGE, RWX);
    done |= (uint8_t)(1u << layout);
    memcpy(copy, second, 16);
    patch(copy, layout, value);
    struct iovec from = {copy, 16}, to = {second, 16};
    if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) != 16)
        exit(3);
}

static void write_mem(pid_t pid, uint8_t *second, int layout, uint8_t value)
{
    static uint8_t copy[PAGE];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    memcpy(copy, second, 16);
    patch(copy, layout, value);
    if (fd < 0 || pwrite(fd, copy, 16, (off_t)second) != 16)
        exit(3);
    close(fd);
}

/* The page is never writable. */
static void by_proc_mem(uint8_t *second, int layout, uint8_t value)
{
    write_mem(getpid(), second, layout, value);
}

static void by_map_fixed(uint8_t *second, int layout, uint8_t value)
{
    int fd = file_with(layout, value);
    mmap(second, PAGE, RX, MAP_PRIVATE | MAP_FIXED, fd, PAGE);
    close(fd);
}

static void by_remap(uint8_t *second, int layout, uint8_t value)
{
    int fd = file_with(layout, value);
    void *there = mmap(NULL, PAGE, RX, MAP_PRIVATE, fd, PAGE);
    mremap(there, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, second);
    close(fd);
}

static void by_unmap(uint8_t *second, int layout, uint8_t value)
{
    int fd = file_with(layout, value);
    munmap(second, PAGE);
    if (mmap(second, PAGE, RX, MAP_PRIVATE, fd, PAGE) != second)
        exit(3);
    close(fd);
}

/* Of a page that has been writable since the first time. */
static void by_child_vm(uint8_t *second, int layout, uint8_t value)
{
    static uint8_t done;
    if (!(done >> layout & 1))
        mprotect(second, PAGE, RWX);
    done |= (uint8_t)(1u << layout);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        uint8_t copy[PAGE];
        memcpy(copy, second, 16);
        patch(copy, layout, value);
        struct iovec from = {copy, 16}, to = {second, 16};
        _exit(process_vm_writev(parent, &from, 1, &to, 1, 0) != 16);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status)
        exit(3);
}

static const struct way {
    const char *name;
    void (*change)(uint8_t *second, int layout, uint8_t value);
    int outside; /* by another process */
} ways[] = {
    {"mprotect", by_mprotect, 0},
    {"syscall", by_syscall, 0},
    {"instruction", by_instruction, 0},
    {"store", by_store, 0},
    {"store after instruction", by_store_raw, 0},
    {"second mapping", by_second_mapping, 0},
    {"file", by_file_write, 0},
    {"process_vm_writev", by_process_vm, 0},
    {"/proc/self/mem", by_proc_mem, 0},
    {"MAP_FIXED", by_map_fixed, 0},
    {"mremap", by_remap, 0},
    {"munmap", by_unmap, 0},
    {"child's process_vm_writev", by_child_vm, 1},
};
enum { NWAYS = sizeof ways / sizeof ways[0] };

/* --- who changes it --- */

static atomic_int turn; /* odd: the other thread's */
static int asked_way, asked_layout, asked_value;

/* Mostly in a loop without system calls, but not for a whole time slice. */
static void await(int next)
{
    for (int i = 1; atomic_load(&turn) != next; i++)
        if (i % 2000 == 0)
            sched_yield();
}

static void *change_for_other(void *argument)
{
    for (int seen = 0;; seen += 2) {
        await(seen + 1);
        if (asked_way < 0)
            return argument;
        ways[asked_way].change(page_of(asked_layout) + PAGE, asked_layout, (uint8_t)asked_value);
        atomic_fetch_add(&turn, 1);
    }
}

static void change(int way, int layout, int value, int by_thread)
{
    if (!by_thread) {
        ways[way].change(page_of(layout) + PAGE, layout, (uint8_t)value);
        return;
    }
    asked_way = way;
    asked_layout = layout;
    asked_value = value;
    int mine = atomic_fetch_add(&turn, 1);
    if (way >= 0)
        await(mine + 2);
    /* Cross-modifying code needs a serialising instruction before what was modified is run. */
    unsigned a = 0, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[1];
    int by_thread = !strcmp(argv[2], "threads"), outside = !strcmp(argv[2], "outside");
    int each = argc > 3 ? atoi(argv[3]) : 200;
    const char *only = argc > 4 ? argv[4] : NULL;
    pthread_t other;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    base = mmap(NULL, 3 * PAGE * NLAYOUTS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (by_thread)
        pthread_create(&other, NULL, change_for_other, NULL);
    long calls = 0, all_wrong = 0;
    for (int way = 0; way < NWAYS; way++) {
        long wrong[NLAYOUTS] = {0}, sum = 0;
        if (ways[way].outside != outside || (only && strcmp(only, ways[way].name)))
            continue;
        for (int layout = 0; layout < NLAYOUTS; layout++)
            map_fresh(layout, 1);
        for (int round = 0; round < ROUNDS; round++)
            for (int layout = 0; layout < NLAYOUTS; layout++) {
                int value = 1 + round % 63;
                if (round)
                    change(way, layout, value, by_thread);
                for (int i = 0; i < each; i++) {
                    int got = call(layout);
                    wrong[layout] += got != value;
                    calls++;
                }
            }
        printf("%s:", ways[way].name);
        for (int layout = 0; layout < NLAYOUTS; layout++) {
            printf(" %s %ld", layouts[layout], wrong[layout]);
            sum += wrong[layout];
        }
        printf("\n");
        all_wrong += sum;
    }
    if (by_thread) {
        change(-1, 0, 0, 1);
        pthread_join(other, NULL);
    }
    printf("%ld calls, %d loads each\n", calls, LOADS);
    return all_wrong != 0;
}
