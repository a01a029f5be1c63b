/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rivals.c - each measurement listens at the first free one of sixteen names and then connects once to all
 * others: so it sees them, and they see it. The kernel tells each the other's process id. Since listening
 * comes first, at least one of two that begin at the same time connects to the other.
 */
#include "pirate/rivals.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME "cachegram-pirate-%u"

/* The address of a name: its first byte is 0 (abstract). */
static socklen_t name_of(unsigned i, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, NAME, i);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void add_rival(struct rivals *r, int fd)
{
    struct ucred other = {0};
    socklen_t size = sizeof other;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size);
    for (size_t i = 0; i < r->n; i++)
        if (r->pid[i] == other.pid)
            return;
    if (r->n < RIVALS)
        r->pid[r->n++] = other.pid;
}

void rivals_enter(struct rivals *r)
{
    struct sockaddr_un address;
    unsigned own = RIVALS;
    *r = (struct rivals){.fd = new_socket()};
    for (unsigned i = 0; i < RIVALS && r->fd >= 0 && own == RIVALS; i++) {
        socklen_t size = name_of(i, &address);
        if (bind(r->fd, (struct sockaddr *)&address, size) == 0 && listen(r->fd, RIVALS) == 0)
            own = i;
    }
    for (unsigned i = 0; i < RIVALS; i++) {
        int fd = i == own ? -1 : new_socket();
        socklen_t size = name_of(i, &address);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, size) == 0)
            add_rival(r, fd);
        if (fd >= 0)
            close(fd);
    }
}

size_t rivals_count(struct rivals *r)
{
    int fd;
    while (r->fd >= 0 && (fd = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        add_rival(r, fd);
        close(fd);
    }
    return r->n;
}

void rivals_leave(struct rivals *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}
