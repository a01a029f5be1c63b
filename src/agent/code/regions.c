/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions.c - the executable mappings. Code is either fixed (mapped from a file, or the vDSO; executable, not
 * writable), or it may change at any time and its translations check their source (check.h). Reading
 * /proc/self/maps costs 70-250 us, so a list is kept. At the start of every burst some bytes at a few places
 * of each fixed region are compared, which detects a library that was unloaded or replaced.
 */
#include <errno.h>
#include <string.h>
#include "agent/code/code.h"
#include "agent/sys/files.h"
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/tunables.h"
#include "base/procmap.h"

#define PROBES 8
#define PROBE_BYTES 64

struct region {
    uint64_t start, end;
    uint32_t module;
    int used;
    uint64_t used_start, used_end; /* range of what was translated */
    uint64_t inode, file_at;       /* the file mapped at `start`, and the offset in it; see find_remapped */
    int is_file;                   /* not the vDSO */
    int may_change; /* made at run time, or writable: blocks check their own source, nothing is compared */
    uint8_t probe[PROBES][PROBE_BYTES];
};

static struct region *regions; /* room for MAX_REGIONS; NULL: no memory */
static int nregions, changed;

/* Pages whose mapping changed, or was about to, after they were known as fixed code. From then on they
 * permanently count as code that may change. So it does not matter at which moment the change takes effect,
 * or what is translated meanwhile. */
static struct {
    uint64_t start, end;
} unstable[MAX_UNSTABLE];
static int nunstable;
static int nforgotten;  /* regions that were forgotten, while the list was not read again */
static uint32_t misses; /* failed lookups since the list was last read */

static uint64_t probe_address(const struct region *r, int i)
{
    return r->start + ((r->end - r->start - PROBE_BYTES) / (PROBES - 1) * (uint64_t)i & ~7ull);
}

static struct region *lookup(uint64_t pc)
{
    for (int i = 0; i < nregions; i++)
        if (pc >= regions[i].start && pc < regions[i].end)
            return &regions[i];
    return NULL;
}

/* Where unstable code begins, from pc on; `end` at the latest. */
static uint64_t stable_end(uint64_t pc, uint64_t end)
{
    int n = __atomic_load_n(&nunstable, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++) {
        if (pc >= unstable[i].start && pc < unstable[i].end)
            return pc;
        if (unstable[i].start > pc && unstable[i].start < end)
            end = unstable[i].start;
    }
    return end;
}

/* The caller holds the translator's lock. */
static void add_unstable(uint64_t start, uint64_t end)
{
    int i = 0;
    while (i < nunstable && (end < unstable[i].start || start > unstable[i].end))
        i++;
    if (i == MAX_UNSTABLE) /* no room: extends the last entry, with all that lies in between */
        i = MAX_UNSTABLE - 1;
    else if (i == nunstable)
        unstable[i].start = start, unstable[i].end = end;
    if (start < unstable[i].start)
        unstable[i].start = start;
    if (end > unstable[i].end)
        unstable[i].end = end;
    if (i == nunstable)
        __atomic_store_n(&nunstable, i + 1, __ATOMIC_RELEASE);
}

static int is_path(const char *known, const char *path, size_t length)
{
    const size_t most = sizeof proc->module[0].path - 1;
    if (length > most)
        length = most;
    return memcmp(known, path, length) == 0 && known[length] == 0;
}

/* Of several entries that contain an address, the last one is valid. So a file that is mapped again, after
 * another one was mapped at its place, gets a new entry, unless the table is half full. */
static uint32_t add_module(uint64_t start, uint64_t end, uint64_t offset, const char *path, size_t length)
{
    int replaced = 0;
    for (uint32_t i = proc->nmodules; i > 0; i--) {
        const struct wire_module *m = &proc->module[i - 1];
        if (m->start == start && m->end == end && m->file_offset == offset &&
            is_path(m->path, path, length)) {
            if (!replaced || proc->nmodules >= WIRE_MAX_MODULES / 2)
                return i - 1;
            break;
        }
        replaced |= m->start < end && m->end > start && m->path[0] == '/';
    }
    if (proc->nmodules >= WIRE_MAX_MODULES)
        return UINT32_MAX;
    struct wire_module *m = &proc->module[proc->nmodules];
    m->start = start;
    m->end = end;
    m->file_offset = offset;
    if (length >= sizeof m->path)
        length = sizeof m->path - 1;
    memcpy(m->path, path, length);
    m->path[length] = 0;
    __atomic_store_n(&proc->nmodules, proc->nmodules + 1, __ATOMIC_RELEASE);
    return proc->nmodules - 1;
}

/* The entry for a new region; `old`: a known one that overlaps it. Regions of code made at run time grow and
 * shrink, and are simply replaced. What was translated from a file is only forgotten by a flush. */
static struct region *slot_for(struct region *old)
{
    if (old)
        return old->may_change ? old : NULL;
    for (int i = 0; i < nregions; i++)
        if (regions[i].start == regions[i].end)
            return &regions[i];
    return regions && nregions < MAX_REGIONS ? &regions[nregions++] : NULL;
}

static void add_line(const char *line, size_t length)
{
    uint64_t number[3] = {0, 0, 0};
    size_t i = 0;
    int writable = 0;
    for (int n = 0; n < 3; n++) {
        for (; i < length; i++) {
            char c = line[i];
            if (c >= '0' && c <= '9')
                number[n] = number[n] * 16 + (uint64_t)(c - '0');
            else if (c >= 'a' && c <= 'f')
                number[n] = number[n] * 16 + (uint64_t)(c - 'a' + 10);
            else
                break;
        }
        i++;
        if (n == 1) {
            if (i + 5 > length || line[i + 2] != 'x' || line[i] != 'r')
                return;
            /* A shared mapping may be written through another one. */
            writable = line[i + 1] == 'w' || line[i + 3] == 's';
            i += 5;
        }
    }
    while (i < length && line[i] != '/' && line[i] != '[')
        i++;
    if (i + 10 <= length && memcmp(line + i, "[vsyscall]", 10) == 0)
        return;
    int fixed = !writable && i < length && (line[i] == '/' || memcmp(line + i, "[vdso]", 6) == 0) &&
                memcmp(line + i, "/memfd:", 7) != 0;
    struct region *r = lookup(number[0]);
    if (r && r->start == number[0] && r->end == number[1] && r->may_change == !fixed)
        return;
    if (number[1] - number[0] < 2 * PROBE_BYTES || !(r = slot_for(r)))
        return;
    *r = (struct region){
        .start = number[0], .end = number[1], .may_change = !fixed, .is_file = line[i] == '/'};
    for (int p = 0; p < PROBES && fixed; p++)
        if (safe_copy(r->probe[p], (const void *)probe_address(r, p), PROBE_BYTES)) {
            r->start = r->end; /* covers nothing */
            return;
        }
    if (!fixed) {
        line = WIRE_JIT_MODULE;
        i = 0;
        length = sizeof WIRE_JIT_MODULE - 1;
    }
    r->module = add_module(number[0], number[1], number[2], line + i, length - i);
    if (r->module != UINT32_MAX && line[i] == '/')
        rseq_module(proc->module[r->module].path, number[0], number[2]);
}

/* The list cannot be read any more: the process has no /proc since a chroot, or may not open files. Where the
 * compared bytes are the same, what was known still holds; other code counts as code that may change. */
static void revalidate_known(void)
{
    int n = nforgotten;
    nforgotten = 0;
    for (int i = 0; i < n; i++) {
        struct region *r = &regions[i];
        uint8_t now[PROBE_BYTES];
        r->used = 0;
        for (int p = 0; p < PROBES && r->start < r->end; p++)
            if (safe_copy(now, (const void *)probe_address(r, p), PROBE_BYTES))
                r->end = r->start; /* covers nothing */
            else if (!r->may_change && memcmp(now, r->probe[p], PROBE_BYTES) != 0)
                r->may_change = 1;
    }
    nregions = n;
}

static void read_maps(void)
{
    static char text[8192];
    long fd =
        own_open("/proc/thread-self/maps"); /* that of "self" is empty once the first thread has ended */
    if (sys_failed(fd)) {
        revalidate_known();
        return;
    }
    nforgotten = 0;
    size_t have = 0;
    for (;;) {
        long got = sys3(SYS_read, fd, text + have, sizeof text - have);
        if (got <= 0)
            break;
        have += (size_t)got;
        size_t from = 0;
        for (size_t i = 0; i < have; i++)
            if (text[i] == '\n') {
                add_line(text + from, i - from);
                from = i + 1;
            }
        memmove(text, text + from, have - from);
        have -= from;
        if (have == sizeof text)
            break;
    }
    own_close(fd);
}

/* Compares the region at its sampled places. */
static int is_unchanged(const struct region *r)
{
    uint8_t now[PROBE_BYTES];
    for (int p = 0; p < PROBES && !r->may_change && r->start < r->end; p++) {
        uint64_t at = probe_address(r, p);
        if (stable_end(at, at + PROBE_BYTES) == at + PROBE_BYTES &&
            (safe_copy(now, (const void *)at, PROBE_BYTES) || memcmp(now, r->probe[p], PROBE_BYTES) != 0))
            return 0;
    }
    return 1;
}

/* The caller holds the translator's lock. */
int region_may_translate(uint64_t pc)
{
    struct region *r = lookup(pc);
    if (!r) {
        /* Code made at run time fails again and again: the list is read ever more rarely. */
        misses++;
        if (misses & (misses - 1) && misses % 256)
            return 0;
        read_maps();
        r = lookup(pc);
        if (!r)
            return 0;
        misses = 0;
    }
    if (!r->used && !is_unchanged(r)) { /* the list may have been read long ago */
        changed = 1;
        return 0;
    }
    if (!r->used || pc < r->used_start)
        r->used_start = pc;
    if (!r->used || pc + BLOCK_SOURCE_MAX > r->used_end)
        r->used_end = pc + BLOCK_SOURCE_MAX < r->end ? pc + BLOCK_SOURCE_MAX : r->end;
    r->used = 1;
    return 1;
}

int region_is_known(uint64_t pc)
{
    return lookup(pc) != NULL;
}

int region_may_change(uint64_t pc, uint64_t bytes)
{
    return region_fixed_end(pc) < pc + bytes;
}

uint64_t region_fixed_end(uint64_t pc)
{
    const struct region *r;
    while ((r = lookup(pc)) && !r->may_change) {
        uint64_t end = stable_end(pc, r->end);
        if (end < r->end)
            return end;
        pc = end;
    }
    return pc;
}

extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

int region_is_agent(uint64_t pc)
{
    return pc >= (uint64_t)__ehdr_start && pc < (uint64_t)etext;
}

uint32_t region_module(uint64_t pc)
{
    struct region *r = lookup(pc);
    return r ? r->module : UINT32_MAX;
}

/* A region of which some part is mapped differently than when the list was read. */
static const struct region *find_remapped(void)
{
    static const uint64_t rights = PROCMAP_READABLE | PROCMAP_WRITABLE | PROCMAP_EXECUTABLE | PROCMAP_SHARED;
    static int unknown; /* the kernel does not know the query */
    long fd = unknown ? -1 : own_open("/proc/thread-self/maps");
    const struct region *moved = NULL;
    if (sys_failed(fd))
        return NULL;
    for (int i = 0; i < nregions && !moved; i++) {
        struct region *r = &regions[i];
        struct procmap_query q = {.size = sizeof q, .query_addr = r->start};
        if (!r->used || r->may_change || r->start == r->end)
            continue;
        long error = sys3(SYS_ioctl, fd, PROCMAP_QUERY, &q);
        if (error == -ENOTTY || error == -EINVAL) {
            unknown = 1;
            break;
        }
        uint64_t file_at = q.vma_offset + r->start - q.vma_start;
        if (error || q.vma_start > r->start || q.vma_end < r->end ||
            (q.vma_flags & rights) != (PROCMAP_READABLE | PROCMAP_EXECUTABLE) ||
            (r->inode && (r->inode != q.inode || r->file_at != file_at)))
            moved = r;
        r->inode = q.inode;
        r->file_at = file_at;
    }
    own_close(fd);
    return moved;
}

/* Finds pages that are private copies of a file's pages, in code that was translated as fixed. The first
 * write to a page makes that copy, whoever writes and by whatever means: its bytes are no longer the file's.
 */
#define PAGE_PRESENT (3ull << 62) /* or swapped out */
#define PAGE_OF_FILE (1ull << 61)
static int find_written(uint64_t *start, uint64_t *end)
{
    uint64_t page[256];
    int found = 0;
    long fd = own_open("/proc/thread-self/pagemap");
    if (sys_failed(fd))
        return 0;
    for (int i = 0; i < nregions && !found; i++) {
        const struct region *r = &regions[i];
        if (!r->used || r->may_change || r->start == r->end || !r->is_file)
            continue;
        uint64_t at = r->used_start & ~(uint64_t)(WIRE_PAGE - 1);
        while (at < r->used_end && !found) {
            uint64_t most = (r->used_end - at + WIRE_PAGE - 1) / WIRE_PAGE;
            long got = sys4(SYS_pread64, fd, page, (most < 256 ? most : 256) * sizeof *page,
                            at / WIRE_PAGE * sizeof *page);
            if (got < (long)sizeof *page)
                break;
            for (long n = got / (long)sizeof *page, p = 0; p < n && !found; p++, at += WIRE_PAGE)
                if (page[p] & PAGE_PRESENT && !(page[p] & PAGE_OF_FILE) &&
                    stable_end(at, at + WIRE_PAGE) != at) {
                    found = 1;
                    *start = at;
                    *end = at + WIRE_PAGE;
                }
        }
    }
    own_close(fd);
    return found;
}

int regions_find_changed(uint64_t *start, uint64_t *end)
{
    const struct region *r = find_remapped();
    if (!r)
        return find_written(start, end);
    *start = r->start;
    *end = r->end;
    return 1;
}

int regions_check(void)
{
    for (int i = 0; i < nregions && !changed; i++)
        changed = regions[i].used && !is_unchanged(&regions[i]);
    return changed;
}

int regions_are_stale(void)
{
    return changed;
}

void regions_mark_stale(void)
{
    changed = 1;
}

void regions_read(void)
{
    regions = own_map(NULL, MAX_REGIONS * sizeof *regions, OWN_DATA);
    read_maps();
}

void regions_forked(const struct wire_proc *parent)
{
    for (int i = 0; i < nregions; i++)
        if (regions[i].module != UINT32_MAX) {
            const struct wire_module *m = &parent->module[regions[i].module];
            regions[i].module = add_module(m->start, m->end, m->file_offset, m->path, strlen(m->path));
        }
    regions_forget();
}

void regions_forget(void)
{
    if (nregions)
        nforgotten = nregions;
    nregions = 0;
    changed = 0;
    misses = 0;
}

int regions_overlap_code(uint64_t address, uint64_t bytes)
{
    for (int i = 0; i < nregions; i++)
        if (!regions[i].may_change && address < regions[i].end && address + bytes > regions[i].start)
            return 1;
    return 0;
}

int regions_mark_unstable(uint64_t start, uint64_t end)
{
    int concerned = 0;
    for (int i = 0; i < nregions; i++) {
        struct region *r = &regions[i];
        if (r->may_change || start >= r->end || end <= r->start)
            continue;
        add_unstable(start > r->start ? start : r->start, end < r->end ? end : r->end);
        r->end = r->start; /* covers nothing: the list is read again */
        concerned = 1;
    }
    return concerned;
}
