/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "collect/launch/session.h"
#include "collect/tunables.h"

static uint64_t pages(uint64_t bytes)
{
    return (bytes + WIRE_PAGE - 1) / WIRE_PAGE * WIRE_PAGE;
}

/*
 * Sets the size of the file. It is memory, but the limit on file sizes applies nevertheless: a soft limit is
 * lifted meanwhile. 0, or -1 with errno set, and *limit if that is EFBIG. The caller must ignore SIGXFSZ.
 */
static int set_file_size(int fd, uint64_t bytes, rlim_t *limit)
{
    struct rlimit old, lifted;
    if (getrlimit(RLIMIT_FSIZE, &old) != 0)
        return -1;
    lifted = (struct rlimit){old.rlim_max, old.rlim_max};
    *limit = old.rlim_max;
    if (old.rlim_cur != old.rlim_max && setrlimit(RLIMIT_FSIZE, &lifted) != 0)
        *limit = old.rlim_cur;
    int status = ftruncate(fd, (off_t)bytes), code = errno;
    setrlimit(RLIMIT_FSIZE, &old);
    errno = code;
    return status;
}

static_assert(sizeof(struct wire_session) <= WIRE_SESSION_BYTES, "the session page must hold its struct");

/* Whether process ids in /proc are those of our PID namespace. */
static int proc_is_ours(void)
{
    char self[16] = "";
    return readlink("/proc/self", self, sizeof(self) - 1) > 0 && atol(self) == (long)getpid();
}

static uint64_t pid_namespace(void)
{
    struct stat own;
    return stat(PID_NAMESPACE, &own) == 0 ? (uint64_t)own.st_ino : 0;
}

/* Room for the records of so many references, 1.2 words each. */
static uint64_t bytes_of(uint64_t refs)
{
    return pages((refs + refs / 5) * sizeof(uint64_t));
}

static struct wire_session lay_out(const struct session_setting *o)
{
    int any_full = o->mode == WIRE_MODE_FULL, full = any_full && !o->begins_full;
    struct wire_session w = {
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .mode = o->mode,
        .begins_full = o->begins_full != 0,
        .nslots = COLLECT_SLOTS,
        .nbuffers = full             ? COLLECT_FULL_BUFFERS
                    : o->begins_full ? COLLECT_FULL_FIRST_BUFFERS
                                     : COLLECT_BURST_BUFFERS,
        .slot_offset = WIRE_SESSION_BYTES,
        .template_offset = pages(sizeof(struct wire_proc)),
        .template_bytes = any_full ? COLLECT_FULL_TEMPLATE_BYTES : COLLECT_BURST_TEMPLATE_BYTES,
        .gap_ns = o->gap_us * 1000,
        .seed = o->seed,
        .follow = o->follow != 0,
        .collector_pid = (uint32_t)getpid(),
        .pid_namespace = pid_namespace(),
    };
    w.buffer_offset = w.template_offset + w.template_bytes;
    w.full_bytes = full ? COLLECT_FULL_BUFFER_BYTES : bytes_of(o->burst_refs);
    w.buffer_bytes = full ? w.full_bytes : w.full_bytes + bytes_of(o->tail_refs);
    w.long_bytes = w.full_bytes + bytes_of(o->long_tail_refs);
    w.long_bytes = w.long_bytes > w.buffer_bytes ? w.long_bytes : w.buffer_bytes;
    w.buffer_stride = w.buffer_bytes + WIRE_PAGE;
    w.slot_bytes = w.buffer_offset + (w.nbuffers - 1) * w.buffer_stride + w.long_bytes + WIRE_PAGE;
    w.session_bytes = w.slot_offset + w.nslots * w.slot_bytes;
    return w;
}

/* Sizes the file, seals and maps it. */
static int make_memory(struct session *s, struct error *err)
{
    uint64_t bytes = s->layout.session_bytes;
    rlim_t limit = RLIM_INFINITY;
    /* Sealed, so that nobody can shrink it below our mappings, which would kill us with SIGBUS. */
    if (set_file_size(s->fd, bytes, &limit) != 0)
        return errno == EFBIG
                   ? error_set(err, -EFBIG,
                               "the limit on the size of files (ulimit -f, %llu KB) is below the size of the "
                               "memory shared with the program (%llu KB): raise it",
                               (unsigned long long)limit >> 10, (unsigned long long)bytes >> 10)
                   : error_set(err, -errno, "cannot set up the memory shared with the program (%llu MB): %s",
                               (unsigned long long)bytes >> 20, strerror(errno));
    if (fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return error_set(err, -errno, "cannot seal the memory shared with the program: %s", strerror(errno));
    void *map = mmap(NULL, WIRE_SESSION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (map == MAP_FAILED)
        return error_set(err, -errno, "cannot map the memory shared with the program: %s", strerror(errno));
    s->map = map;
    memcpy(s->map, &s->layout, sizeof(s->layout));
    return 0;
}

int session_init(struct session *s, const struct session_setting *setting, struct error *err)
{
    *s = (struct session){.fd = -1};
    if (!proc_is_ours())
        return error_set(err, -ENOENT,
                         "/proc is missing, or belongs to another PID namespace, but is needed to find the "
                         "program: mount it (mount -t proc proc /proc)");
    s->layout = lay_out(setting);
    s->fd = memfd_create("cachegram", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (s->fd < 0)
        return error_set(err, -errno, "cannot create the memory shared with the program: %s",
                         strerror(errno));
    int status = make_memory(s, err);
    if (status < 0)
        session_clear(s);
    return status;
}

void session_clear(struct session *s)
{
    if (s->map != NULL)
        munmap(s->map, WIRE_SESSION_BYTES);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct session){.fd = -1};
}

static off_t slot_at(const struct session *s, uint32_t i)
{
    assert(i < s->layout.nslots);
    return (off_t)(s->layout.slot_offset + i * s->layout.slot_bytes);
}

struct wire_proc *session_map_slot(const struct session *s, uint32_t i)
{
    void *map = mmap(NULL, s->layout.slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd,
                     slot_at(s, i));
    return map != MAP_FAILED ? map : NULL;
}

uint32_t session_slot_state(const struct session *s, uint32_t i)
{
    if ((__atomic_load_n(&s->map->slots_taken[i / 64], __ATOMIC_SEQ_CST) >> i % 64 & 1) == 0)
        return WIRE_PROC_FREE;
    uint32_t state = WIRE_PROC_FREE;
    off_t at = slot_at(s, i) + (off_t)offsetof(struct wire_proc, state);
    return pread(s->fd, &state, sizeof(state), at) == sizeof(state) ? state : WIRE_PROC_FREE;
}

void session_release_slot(const struct session *s, uint32_t i)
{
    __atomic_fetch_and(&s->map->slots_taken[i / 64], ~(UINT64_C(1) << i % 64), __ATOMIC_SEQ_CST);
    /* The state last: only then may another process take the slot. */
    off_t page = (off_t)WIRE_PAGE, bytes = (off_t)s->layout.slot_bytes;
    fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, slot_at(s, i) + page, bytes - page);
    fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, slot_at(s, i), page);
}

void session_ring(struct wire_session *session)
{
    __atomic_fetch_add(&session->doorbell, 1, __ATOMIC_SEQ_CST);
}
