/* SPDX-License-Identifier: Apache-2.0 */
/*
 * other-memory.c - process_vm_readv and process_vm_writev on the memory of another process. MPI libraries
 * send large messages that way.
 *
 * The other process may be watched: for its protected pages the kernel reports EFAULT, or transfers less than
 * was requested. Which pages may be protected is in the slot of that process. They are transferred through
 * /proc/PID/mem, to which the protection does not apply, and the rest by further calls. Other pages fail as
 * they do natively.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include "agent/interpose/interpose.h"
#include "agent/life/life.h"
#include "agent/sys/files.h"
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"

#define SLOT_BYTES (offsetof(struct wire_proc, block_offset) / WIRE_PAGE * WIRE_PAGE + WIRE_PAGE)

/* What is left of an array of struct iovec. */
struct rest {
    const struct iovec *next;
    unsigned long n;
    struct iovec now;
};

struct transfer {
    call_maker make;
    long number;
    const struct wire_proc *other;
    struct rest local, remote;
    long mem; /* descriptor of /proc/PID/mem; negative: not open */
    char path[32];
    uint32_t pid;
};

/* Skips empty parts. 0: nothing is left, or the array cannot be read. */
static int has_more(struct rest *r)
{
    while (r->now.iov_len == 0) {
        if (r->n == 0 || target_read(&r->now, r->next, sizeof r->now))
            return 0;
        r->next++;
        r->n--;
    }
    return 1;
}

static void advance(struct rest *r, size_t bytes)
{
    r->now.iov_base = (char *)r->now.iov_base + bytes;
    r->now.iov_len -= bytes;
}

/* Skips what the first call has transferred. 0: that was all. */
static int skip(struct rest *r, uint64_t bytes)
{
    while (has_more(r)) {
        size_t part = r->now.iov_len < bytes ? r->now.iov_len : (size_t)bytes;
        if (part == 0)
            return 1;
        advance(r, part);
        bytes -= part;
    }
    return 0;
}

/* NULL: it is not profiled. To be unmapped. */
static const struct wire_proc *map_slot_of(uint32_t pid)
{
    for (uint32_t i = 0; i < session->nslots; i++) {
        if (!(__atomic_load_n(&session->slots_taken[i / 64], __ATOMIC_ACQUIRE) >> i % 64 & 1))
            continue;
        struct wire_proc *p =
            own_map_session_again(session->slot_offset + i * session->slot_bytes, SLOT_BYTES);
        if (!p)
            return NULL;
        if (__atomic_load_n(&p->pid, __ATOMIC_ACQUIRE) == pid)
            return p;
        sys2(SYS_munmap, p, SLOT_BYTES);
    }
    return NULL;
}

/* Whether the page at that address may be protected by the agent in the other process, and would be
 * accessible without it. A line keeps its entry for a while after its page was unprotected. */
static int may_be_protected(const struct transfer *t, uint64_t address)
{
    uint32_t needed = t->number == SYS_process_vm_writev ? PROT_WRITE : PROT_READ;
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++) {
        const struct wire_watch *w = &t->other->watching.watch[i];
        if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) != WIRE_WATCH_FREE &&
            w->line / WIRE_PAGE == address / WIRE_PAGE && w->protection & needed)
            return 1;
    }
    return 0;
}

static void open_mem(struct transfer *t)
{
    size_t n = strlen("/proc/");
    memcpy(t->path, "/proc/", n);
    for (uint32_t unit = 1000000000; unit; unit /= 10)
        if (t->pid >= unit)
            t->path[n++] = (char)('0' + t->pid / unit % 10);
    memcpy(t->path + n, "/mem", sizeof "/mem");
    t->mem = t->number == SYS_process_vm_writev ? own_open_to_write(t->path) : own_open(t->path);
}

static long transfer_through_file(struct transfer *t, size_t bytes)
{
    if (t->mem < 0)
        open_mem(t);
    if (t->mem < 0)
        return -EFAULT;
    long number = t->number == SYS_process_vm_writev ? SYS_pwrite64 : SYS_pread64;
    return t->make(number, (long[6]){t->mem, (long)t->local.now.iov_base, (long)bytes,
                                     (long)t->remote.now.iov_base, 0, 0});
}

/* A part that is one piece in both processes. Bytes transferred; 0 or an error: none. */
static long transfer_piece(struct transfer *t)
{
    struct iovec local = t->local.now, remote = t->remote.now;
    size_t bytes = local.iov_len < remote.iov_len ? local.iov_len : remote.iov_len;
    uint64_t address = (uint64_t)remote.iov_base, page_rest = WIRE_PAGE - address % WIRE_PAGE;
    long got = -EFAULT;
    local.iov_len = remote.iov_len = bytes;
    /* Twice: the page may be unprotected right after the first call. */
    for (int i = 0; i < 2; i++) {
        got = t->make(t->number, (long[6]){t->pid, (long)&local, 1, (long)&remote, 1, 0});
        if (got != -EFAULT)
            return got;
        if (may_be_protected(t, address))
            return transfer_through_file(t, bytes < page_rest ? bytes : page_rest);
    }
    return got;
}

long other_memory_call(call_maker make, long number, const long *a)
{
    long result = make(number, a);
    uint64_t done = result > 0 ? (uint64_t)result : 0;
    if ((result < 0 && result != -EFAULT) || !session || !session->watch || agent_gone ||
        (uint32_t)a[0] == (uint32_t)sys0(SYS_getpid))
        return result;
    struct transfer t = {.make = make,
                         .number = number,
                         .local = {.next = (const struct iovec *)a[1], .n = (unsigned long)a[2]},
                         .remote = {.next = (const struct iovec *)a[3], .n = (unsigned long)a[4]},
                         .pid = (uint32_t)a[0],
                         .mem = -1};
    if (!skip(&t.local, done) || !skip(&t.remote, done) || !(t.other = map_slot_of(t.pid)))
        return result;
    while (has_more(&t.local) && has_more(&t.remote)) {
        long got = transfer_piece(&t);
        if (got <= 0)
            break;
        advance(&t.local, (size_t)got);
        advance(&t.remote, (size_t)got);
        done += (uint64_t)got;
    }
    if (t.mem >= 0)
        own_close(t.mem);
    sys2(SYS_munmap, t.other, SLOT_BYTES);
    return done ? (long)done : result;
}
