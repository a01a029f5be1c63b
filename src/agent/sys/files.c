/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - descriptors of the agent, which no child of the target may inherit; see files.h. */
#include "agent/sys/files.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include <fcntl.h>
#include <string.h>

#define MAX_OPEN 8
#define BUSY -1
#define DEFERRED -2

static struct {
    /* 0: free. BUSY: being opened or closed. fd + 1: open. DEFERRED - fd: to be closed when the fork is over.
     */
    int state;
    const char *path;
} opened[MAX_OPEN];
static unsigned forking; /* threads between files_fork_begins and files_fork_ends */

static long open_listed(const char *path, int flags)
{
    for (int i = 0; i < MAX_OPEN; i++) {
        int expected = 0;
        if (!__atomic_compare_exchange_n(&opened[i].state, &expected, BUSY, 0, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED))
            continue;
        opened[i].path = path;
        long fd = -1;
        /* The forking thread may be this one: waiting would deadlock. */
        if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST))
            fd = sys3(SYS_open, path, flags | O_CLOEXEC, 0);
        __atomic_store_n(&opened[i].state, sys_failed(fd) ? 0 : (int)fd + 1, __ATOMIC_SEQ_CST);
        return fd;
    }
    return -1;
}

long own_open(const char *path)
{
    return open_listed(path, O_RDONLY);
}

long own_open_to_write(const char *path)
{
    return open_listed(path, O_RDWR);
}

/* Closes it, or leaves that to files_fork_ends. */
static void close_entry(int i, int fd)
{
    __atomic_store_n(&opened[i].state, BUSY, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&forking, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&opened[i].state, DEFERRED - fd, __ATOMIC_SEQ_CST);
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

void files_fork_begins(void)
{
    __atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < MAX_OPEN; i++)
        for (unsigned n = 0; __atomic_load_n(&opened[i].state, __ATOMIC_SEQ_CST) == BUSY; n++)
            sys_wait_moment(n);
}

void files_fork_ends(void)
{
    if (__atomic_sub_fetch(&forking, 1, __ATOMIC_SEQ_CST))
        return;
    for (int i = 0; i < MAX_OPEN; i++) {
        int state = __atomic_load_n(&opened[i].state, __ATOMIC_SEQ_CST);
        if (state <= DEFERRED && __atomic_compare_exchange_n(&opened[i].state, &state, BUSY, 0,
                                                             __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            close_entry(i, DEFERRED - state);
    }
}

long files_name(int fd, char *name, size_t size)
{
    char link[32] = "/proc/thread-self/fd/";
    size_t n = strlen(link);
    for (int unit = 1000000000; unit; unit /= 10)
        if (fd >= unit || unit == 1)
            link[n++] = (char)('0' + fd / unit % 10);
    link[n] = 0;
    return sys3(SYS_readlink, link, name, size);
}

/* Whether the descriptor refers to a file whose name is the last part of the path. */
static int still_refers_to(int fd, const char *path)
{
    char name[256];
    size_t length = strlen(path), tail = length;
    long got = files_name(fd, name, sizeof name);
    while (tail && path[tail - 1] != '/')
        tail--;
    length -= tail;
    return got > (long)length && memcmp(name + (size_t)got - length, path + tail, length) == 0;
}

void files_close_inherited(int sure)
{
    forking = 0;
    for (int i = 0; i < MAX_OPEN; i++) {
        int state = opened[i].state, fd = state > 0 ? state - 1 : DEFERRED - state;
        if (state != 0 && state != BUSY && (sure || still_refers_to(fd, opened[i].path)))
            sys1(SYS_close, fd);
        opened[i].state = 0;
    }
}
