/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children.c - processes in which the agent finds itself without having been told: those made by vfork, by
 * clone, by _Fork or by a system call of the program's own. Nothing in them is followed.
 *
 * Who has a copy of the memory sets everything right for itself: what the target has asked for its signals
 * becomes the kernel's, as in a child of libc's fork that is not followed. Who shares the memory with its
 * parent must leave it as it is, and change the kernel's books only, which are its own.
 *
 * Descriptors of the agent's are open for moments only, but another thread may fork in such a moment: no fork
 * of libc's begins while one is opened or closed, and the child closes those that are open.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include "agent/signals/signals.h"

#define WIPE_ON_FORK 18 /* MADV_, which older headers do not name */
#define SAME_HANDLERS 4 /* KCMP_SIGHAND */

/* 0 where the memory is a copy that we do not know of; NULL: that is not to be told. */
static volatile uint32_t *mark;

#define MAX_OPEN 8
#define BUSY -1
#define UNWANTED -2

static struct {
    int state; /* 0: free, BUSY: it is being opened or closed, UNWANTED - fd: to be closed by who forks; fd +
                  1 */
    const char *path;
} opened[MAX_OPEN];
static unsigned forking; /* threads that are about to, or did */

long own_open(const char *path)
{
    for (int i = 0; i < MAX_OPEN; i++) {
        int expected = 0;
        if (!__atomic_compare_exchange_n(&opened[i].state, &expected, BUSY, 0, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED))
            continue;
        opened[i].path = path;
        long fd = -1;
        if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST)) /* who forks may be this thread: no waiting */
            fd = sys3(SYS_open, path, O_RDONLY | O_CLOEXEC, 0);
        __atomic_store_n(&opened[i].state, sys_failed(fd) ? 0 : (int)fd + 1, __ATOMIC_SEQ_CST);
        return fd;
    }
    return -1;
}

/* Closes it, or leaves that to fork_ends. */
static void close_entry(int i, int fd)
{
    __atomic_store_n(&opened[i].state, BUSY, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&forking, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&opened[i].state, UNWANTED - fd, __ATOMIC_SEQ_CST);
        return;
    }
    sys1(SYS_close, fd);
    __atomic_store_n(&opened[i].state, 0, __ATOMIC_SEQ_CST);
}

void own_close(long fd)
{
    for (int i = 0; i < MAX_OPEN; i++)
        if (__atomic_load_n(&opened[i].state, __ATOMIC_RELAXED) == (int)fd + 1) {
            close_entry(i, (int)fd);
            return;
        }
}

void fork_begins(void)
{
    __atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < MAX_OPEN; i++)
        while (__atomic_load_n(&opened[i].state, __ATOMIC_SEQ_CST) == BUSY)
            sys0(SYS_sched_yield);
}

void fork_ends(void)
{
    if (__atomic_sub_fetch(&forking, 1, __ATOMIC_SEQ_CST))
        return;
    for (int i = 0; i < MAX_OPEN; i++) {
        int state = __atomic_load_n(&opened[i].state, __ATOMIC_SEQ_CST);
        if (state <= UNWANTED && __atomic_compare_exchange_n(&opened[i].state, &state, BUSY, 0,
                                                             __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            close_entry(i, UNWANTED - state);
    }
}

/* The last part of a path, and of what a descriptor is of, are the same. */
static int is_still(int fd, const char *path)
{
    char link[32] = "/proc/self/fd/", name[256];
    size_t n = strlen(link), length = strlen(path), tail = length;
    for (int unit = 1000000000; unit; unit /= 10)
        if (fd >= unit || unit == 1)
            link[n++] = (char)('0' + fd / unit % 10);
    link[n] = 0;
    long got = sys3(SYS_readlink, link, name, sizeof name);
    while (tail && path[tail - 1] != '/')
        tail--;
    length -= tail;
    return got > (long)length && memcmp(name + (size_t)got - length, path + tail, length) == 0;
}

/* In a child: sure that nothing of the target's can have the numbers by now, or not. */
static void close_inherited(int sure)
{
    forking = 0;
    for (int i = 0; i < MAX_OPEN; i++) {
        int state = opened[i].state, fd = state > 0 ? state - 1 : UNWANTED - state;
        if (state != 0 && state != BUSY && (sure || is_still(fd, opened[i].path)))
            sys1(SYS_close, fd);
        opened[i].state = 0;
    }
}

void children_init(void)
{
    mark = sys_map(NULL, WIRE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (mark && sys_failed(sys3(SYS_madvise, mark, WIRE_PAGE, WIPE_ON_FORK)))
        mark = NULL;
    if (mark)
        *mark = 1;
}

void fork_made(void)
{
    close_inherited(1);
}

void child_is_followed(void)
{
    if (mark)
        *mark = 1;
}

void child_is_left(void)
{
    stack_t now;
    agent_lives = 0;
    if (!agent_off)
        agent_off = WIRE_OFF_SLOTS;
    if (mark)
        *mark = 1;
    if (agent_off != WIRE_OFF_SECCOMP) /* which may kill for that; deliver() does what it can */
        signals_hand_back(sys_failed(sys2(SYS_sigaltstack, 0, &now)) ? NULL : thread_of_stack(now.ss_sp), 1);
}

static int is_another(long *pid)
{
    if (!session || !process_id || agent_off == WIRE_OFF_SECCOMP) /* which may kill for asking */
        return 0;
    *pid = sys0(SYS_getpid);
    return *pid != process_id;
}

int child_is_strange(void)
{
    long pid;
    /* If it was made by clone so that it has its parent's handlers, too, what holds there holds here. */
    return is_another(&pid) && sys6(SYS_kcmp, pid, process_id, SAME_HANDLERS, 0, 0, 0) != 0;
}

void child_settles(void)
{
    long pid;
    if (mark && *mark == 0 && is_another(&pid)) {
        close_inherited(0);
        child_is_left();
    }
}
