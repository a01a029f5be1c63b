/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rseq.c - restartable sequences (rseq(2)), which must never run from the code cache.
 *
 * The kernel restarts such a sequence if it preempts a thread whose instruction pointer lies in it. In the
 * code cache the pointer never does, so the sequence would be neither restarted nor atomic. Therefore its
 * address ranges are not translated. They are learned from three places:
 *
 *  - the section __rseq_cs of a module, where librseq and tcmalloc list their descriptors;
 *  - instructions that refer to what looks like the descriptor of a sequence near them, which they are about
 *    to install;
 *  - the thread's own rseq area: a program stores a descriptor's address there right before the sequence. If
 *    new code is reached while one is installed, its range is learned. If that code is already inside it, the
 *    thread continues where the kernel would send an interrupted sequence, which is always allowed.
 */
#include <dlfcn.h>
#include <elf.h>
#include <string.h>
#include "agent/code/code.h"
#include "agent/sys/files.h"
#include "agent/sys/sys.h"

#define MAX_SEQUENCES 256
#define MAX_SECTIONS 128
#define MAX_NAMES 4096u /* bytes of section names that are searched; 300 are usual */
#define SECTION "__rseq_cs"
/* The word before the abort address, which libc registers with the kernel. */
#define SIGNATURE 0x53053053u
#define NEAR_BYTES 4096u
#define MODULE_BYTES (64ull << 20) /* the descriptor is data of the same module */

struct descriptor {
    uint32_t version, flags;
    uint64_t start, post_commit_offset, abort;
};

static struct {
    uint64_t start, end, abort;
} sequences[MAX_SEQUENCES];
static uint32_t nsequences;
/* Pages with descriptors. The kernel reads them when it preempts a thread, and kills if it cannot. */
static uint64_t pages[MAX_SEQUENCES];
static uint32_t npages;
/* libc registers an rseq area for each thread, at this offset from the thread pointer. The offset is copied,
 * since the page of libc's variable may be protected. */
static int has_area;
static ptrdiff_t area_offset;

void rseq_init(void)
{
    const unsigned *size = (const unsigned *)dlsym(RTLD_DEFAULT, "__rseq_size");
    const ptrdiff_t *offset = (const ptrdiff_t *)dlsym(RTLD_DEFAULT, "__rseq_offset");
    if (size && *size && offset) {
        has_area = 1;
        area_offset = *offset;
    }
}

static int lock; /* of pages[] */

/* Has its own lock. Readers need none: npages is incremented when the entry is complete. */
static void add_page(uint64_t address)
{
    spin_lock(&lock);
    if (!rseq_has_descriptor(address) && npages < MAX_SEQUENCES) {
        pages[npages] = address & ~(uint64_t)(WIRE_PAGE - 1);
        __atomic_store_n(&npages, npages + 1, __ATOMIC_RELEASE);
    }
    spin_unlock(&lock);
}

void rseq_forked(void)
{
    lock = 0; /* another thread of the parent may have held it */
}

int rseq_has_descriptor(uint64_t address)
{
    for (uint32_t i = 0, n = __atomic_load_n(&npages, __ATOMIC_ACQUIRE); i < n; i++)
        if (pages[i] == (address & ~(uint64_t)(WIRE_PAGE - 1)))
            return 1;
    return 0;
}

/* Adds the sequence of the descriptor at that address. Nonzero: it was not known. */
static int add(const struct descriptor *d, uint64_t address)
{
    if (!d->start || !d->post_commit_offset || d->post_commit_offset > 1u << 20)
        return 0;
    add_page(address);
    for (uint32_t i = 0; i < nsequences; i++)
        if (sequences[i].start == d->start)
            return 0;
    if (nsequences >= MAX_SEQUENCES)
        return 0;
    sequences[nsequences].start = d->start;
    sequences[nsequences].end = d->start + d->post_commit_offset;
    sequences[nsequences].abort = d->abort;
    nsequences++;
    return 1;
}

/* Finds a module's section __rseq_cs in memory. Returns its size; 0: there is none. */
static uint64_t find_section(int fd, uint64_t start, uint64_t file_offset, uint64_t *address)
{
    static Elf64_Ehdr header;
    static Elf64_Phdr segments[64];
    static Elf64_Shdr sections[MAX_SECTIONS];
    static char names[MAX_NAMES];
    uint64_t bias = 0;
    int found = 0;
    if (sys4(SYS_pread64, fd, &header, sizeof header, 0) != sizeof header || header.e_shnum > MAX_SECTIONS ||
        header.e_shstrndx >= header.e_shnum || header.e_phnum > 64 ||
        header.e_shentsize != sizeof(Elf64_Shdr) || header.e_phentsize != sizeof(Elf64_Phdr))
        return 0;
    long want = (long)(header.e_shnum * sizeof(Elf64_Shdr));
    if (sys4(SYS_pread64, fd, sections, want, header.e_shoff) != want)
        return 0;
    want = (long)(header.e_phnum * sizeof(Elf64_Phdr));
    if (sys4(SYS_pread64, fd, segments, want, header.e_phoff) != want)
        return 0;
    /* All names are read at once, since this is done for every library of every process that starts. */
    const Elf64_Shdr *table = &sections[header.e_shstrndx];
    want = (long)(table->sh_size < MAX_NAMES ? table->sh_size : MAX_NAMES);
    if (sys4(SYS_pread64, fd, names, want, table->sh_offset) != want)
        return 0;
    for (int i = 0; i < header.e_phnum && !found; i++)
        if (segments[i].p_type == PT_LOAD && (segments[i].p_offset & ~4095ull) == file_offset) {
            bias = start - (segments[i].p_vaddr & ~4095ull);
            found = 1;
        }
    for (int i = 0; i < header.e_shnum && found; i++) {
        if (sections[i].sh_flags & SHF_ALLOC && sections[i].sh_name + sizeof SECTION <= (uint64_t)want &&
            memcmp(names + sections[i].sh_name, SECTION, sizeof SECTION) == 0) {
            *address = bias + sections[i].sh_addr;
            return sections[i].sh_size;
        }
    }
    return 0;
}

void rseq_module(const char *path, uint64_t start, uint64_t file_offset)
{
    uint64_t address = 0;
    long fd = own_open(path);
    if (sys_failed(fd))
        return;
    uint64_t bytes = find_section((int)fd, start, file_offset, &address);
    own_close(fd);
    for (uint64_t i = 0; i + sizeof(struct descriptor) <= bytes; i += sizeof(struct descriptor)) {
        struct descriptor d;
        if (safe_copy(&d, (const void *)(address + i), sizeof d) == 0)
            add(&d, address + i);
    }
}

void rseq_note_descriptor(uint64_t fs_base)
{
    uint64_t at;
    if (has_area && safe_copy(&at, (const char *)(fs_base + (uint64_t)area_offset) + 8, sizeof at) == 0 && at)
        add_page(at);
}

int rseq_learn(uint64_t fs_base)
{
    uint64_t at;
    struct descriptor d;
    if (!has_area)
        return 0;
    const char *area = (const char *)(fs_base + (uint64_t)area_offset);
    return safe_copy(&at, area + 8, sizeof at) == 0 && at && safe_copy(&d, (const void *)at, sizeof d) == 0 &&
           add(&d, at);
}

int rseq_hint(uint64_t pc, uint64_t address)
{
    struct descriptor d;
    uint32_t signature;
    return has_area && !(address % sizeof d) && address - pc + MODULE_BYTES < 2 * MODULE_BYTES &&
           safe_copy(&d, (const void *)address, sizeof d) == 0 && d.version == 0 &&
           d.start - pc < NEAR_BYTES && d.post_commit_offset < NEAR_BYTES &&
           safe_copy(&signature, (const void *)(d.abort - sizeof signature), sizeof signature) == 0 &&
           signature == SIGNATURE && add(&d, address);
}

int rseq_inside(uint64_t pc, uint64_t *abort)
{
    for (uint32_t i = 0; i < nsequences; i++)
        if (pc >= sequences[i].start && pc < sequences[i].end) {
            *abort = sequences[i].abort;
            return 1;
        }
    return 0;
}

uint64_t rseq_next(uint64_t pc)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < nsequences; i++)
        if (sequences[i].start > pc && sequences[i].start < next)
            next = sequences[i].start;
    return next;
}
