/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - whether a program's file, or a separate file, has names of functions and lines. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "machine/offers.h"

/* Bytes [at, at + n) of the file; NULL if it is too short. */
static const void *part(const unsigned char *file, size_t size, uint64_t at, uint64_t n)
{
    return at <= size && n <= size - at ? file + at : NULL;
}

/* /usr/lib/debug/.build-id/xx/yyyy.debug, where Debian's -dbgsym packages install it. */
static void look_for_separate(const unsigned char *note, size_t size, char *path, size_t capacity)
{
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= size;) {
        Elf64_Nhdr n;
        memcpy(&n, note + at, sizeof(n));
        size_t name = at + sizeof(n), desc = name + ((n.n_namesz + 3u) & ~3u),
               next = desc + ((n.n_descsz + 3u) & ~3u);
        if (next > size || next <= at)
            return;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(note + name, "GNU", 4) == 0 &&
            n.n_descsz > 1 && n.n_descsz <= 64) {
            size_t used = (size_t)snprintf(path, capacity, "/usr/lib/debug/.build-id/%02x/", note[desc]);
            for (size_t i = 1; i < n.n_descsz; i++)
                used += (size_t)snprintf(path + used, capacity - used, "%02x", note[desc + i]);
            snprintf(path + used, capacity - used, ".debug");
            if (access(path, R_OK) != 0)
                path[0] = '\0';
            return;
        }
        at = next;
    }
}

static void look_at(const unsigned char *file, size_t size, struct program_names *names)
{
    const Elf64_Ehdr *h = part(file, size, 0, sizeof(*h));
    if (h == NULL || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64)
        return;
    names->is_elf = 1;
    const Elf64_Shdr *s = part(file, size, h->e_shoff, (uint64_t)h->e_shnum * sizeof(*s));
    if (s == NULL || h->e_shentsize != sizeof(*s) || h->e_shstrndx >= h->e_shnum || h->e_shoff % 8 != 0)
        return;
    const char *strings = part(file, size, s[h->e_shstrndx].sh_offset, s[h->e_shstrndx].sh_size);
    for (unsigned i = 0; i < h->e_shnum && strings != NULL; i++) {
        uint64_t left = s[i].sh_name < s[h->e_shstrndx].sh_size ? s[h->e_shstrndx].sh_size - s[i].sh_name : 0;
        const char *name = strings + s[i].sh_name;
        names->has_symbols |= s[i].sh_type == SHT_SYMTAB;
        names->has_debug |= left > 11 && (memcmp(name, ".debug_info", 11) == 0 ||
                                          (left > 12 && memcmp(name, ".zdebug_info", 12) == 0));
        const unsigned char *note = part(file, size, s[i].sh_offset, s[i].sh_size);
        if (s[i].sh_type == SHT_NOTE && note != NULL && names->separate[0] == '\0')
            look_for_separate(note, s[i].sh_size, names->separate, sizeof(names->separate));
    }
}

void program_names_find(const char *path, struct program_names *names)
{
    struct stat st;
    *names = (struct program_names){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            look_at(file, (size_t)st.st_size, names);
            munmap(file, (size_t)st.st_size);
        }
    }
    close(fd);
}
