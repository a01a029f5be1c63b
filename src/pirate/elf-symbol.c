/* SPDX-License-Identifier: Apache-2.0 */
#include "pirate/elf-symbol.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION_HIDDEN 0x8000 /* not the version that programs are linked with by default */

/* The file, mapped. Every offset in it is checked against `size` before use. */
struct file {
    const unsigned char *bytes;
    uint64_t size;
};

static const void *at(const struct file *f, uint64_t offset, uint64_t size)
{
    return offset <= f->size && size <= f->size - offset ? f->bytes + offset : NULL;
}

static const Elf64_Shdr *section(const struct file *f, const Elf64_Ehdr *elf, unsigned i)
{
    return elf->e_shentsize == sizeof(Elf64_Shdr) && i < elf->e_shnum
               ? at(f, elf->e_shoff + i * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr))
               : NULL;
}

/* The versions of a table's symbols, an Elf64_Half each; NULL: none. *n: their number. */
static const unsigned char *versions_of(const struct file *f, const Elf64_Ehdr *elf, unsigned table,
                                        uint64_t *n)
{
    for (unsigned i = 0; i < elf->e_shnum; i++) {
        const Elf64_Shdr *s = section(f, elf, i);
        if (s && s->sh_type == SHT_GNU_versym && s->sh_link == table) {
            *n = s->sh_size / sizeof(Elf64_Half);
            return at(f, s->sh_offset, s->sh_size);
        }
    }
    return NULL;
}

/* 1: found, and `symbol` is set. */
static int search(const struct file *f, const Elf64_Ehdr *elf, uint32_t type, const char *name,
                  struct elf_symbol *symbol)
{
    size_t length = strlen(name) + 1;
    int found = 0;
    for (unsigned i = 0; i < elf->e_shnum; i++) {
        const Elf64_Shdr *table = section(f, elf, i);
        const Elf64_Shdr *names = table && table->sh_type == type ? section(f, elf, table->sh_link) : NULL;
        const char *text = names ? at(f, names->sh_offset, names->sh_size) : NULL;
        const unsigned char *symbols = text ? at(f, table->sh_offset, table->sh_size) : NULL;
        uint64_t nversions = 0;
        const unsigned char *versions = symbols ? versions_of(f, elf, i, &nversions) : NULL;
        for (uint64_t k = 0; symbols && k < table->sh_size / sizeof(Elf64_Sym); k++) {
            Elf64_Sym s;
            Elf64_Half version = 0;
            memcpy(&s, symbols + k * sizeof s, sizeof s);
            unsigned kind = ELF64_ST_TYPE(s.st_info);
            if (s.st_shndx == SHN_UNDEF ||
                (kind != STT_OBJECT && kind != STT_FUNC && kind != STT_GNU_IFUNC && kind != STT_NOTYPE) ||
                s.st_name >= names->sh_size || names->sh_size - s.st_name < length ||
                memcmp(text + s.st_name, name, length) != 0)
                continue;
            *symbol = (struct elf_symbol){.value = s.st_value,
                                          .size = s.st_size,
                                          .is_function = kind == STT_FUNC || kind == STT_GNU_IFUNC,
                                          .is_chosen = kind == STT_GNU_IFUNC};
            if (versions && k < nversions)
                memcpy(&version, versions + k * sizeof version, sizeof version);
            if (!(version & VERSION_HIDDEN))
                return 1;
            found = 1; /* an old version; there may be a newer one */
        }
    }
    return found;
}

static int look_up(const char *path, const char *name, struct elf_symbol *symbol, struct error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC), code = 0;
    if (fd < 0 || fstat(fd, &st) != 0) {
        code = -errno;
        if (fd >= 0)
            close(fd);
        return error_set(err, code, "cannot read the program %s: %s", path, strerror(-code));
    }
    struct file f = {NULL, (uint64_t)st.st_size};
    void *map = f.size ? mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (map == MAP_FAILED)
        return error_set(err, -EINVAL, "cannot read the program %s", path);
    f.bytes = map;
    const Elf64_Ehdr *elf = at(&f, 0, sizeof *elf);
    if (!elf || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_ident[EI_CLASS] != ELFCLASS64) {
        code =
            error_set(err, -EINVAL, "%s is not a 64-bit ELF program, so it has no symbol '%s'", path, name);
    } else if (!search(&f, elf, SHT_SYMTAB, name, symbol) && !search(&f, elf, SHT_DYNSYM, name, symbol)) {
        code = error_set(err, -ENOENT, "%s has no symbol '%s' of its own (stripped, or in a library?)", path,
                         name);
    } else {
        symbol->base = UINT64_MAX;
        for (unsigned i = 0; i < elf->e_phnum; i++) {
            const Elf64_Phdr *p = at(&f, elf->e_phoff + i * sizeof *p, sizeof *p);
            if (p && p->p_type == PT_LOAD && p->p_vaddr < symbol->base)
                symbol->base = p->p_vaddr;
        }
        symbol->base &= ~UINT64_C(4095);
    }
    munmap(map, f.size);
    return code;
}

int elf_symbol_find(const char *path, const char *name, struct elf_symbol *symbol, struct error *err)
{
    struct elf_symbol found;
    int code = look_up(path, name, &found, err);
    if (code == 0)
        *symbol = found;
    return code;
}

int elf_symbol_address(pid_t pid, const char *name, uint64_t *address, struct error *err)
{
    char link[64], exe[PATH_MAX], maps[64], line[PATH_MAX + 128];
    struct elf_symbol symbol;
    uint64_t start = 0;
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    snprintf(maps, sizeof maps, "/proc/%d/maps", pid);
    ssize_t n = readlink(link, exe, sizeof exe - 1);
    if (n < 0)
        return error_set(err, -errno, "cannot find the program of process %d: %s", pid, strerror(errno));
    exe[n] = '\0';
    int code = look_up(link, name, &symbol, err);
    if (code != 0)
        return code;
    FILE *f = fopen(maps, "re");
    while (f && start == 0 && fgets(line, sizeof line, f)) {
        unsigned long from, offset;
        int path_at = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%lx-%*x %*4s %lx %*x:%*x %*u %n", &from, &offset, &path_at) == 2 && path_at > 0 &&
            offset == 0 && strcmp(line + path_at, exe) == 0)
            start = from;
    }
    if (f)
        fclose(f);
    if (start == 0)
        return error_set(err, -ESRCH, "process %d has not mapped %s (yet)", pid, exe);
    *address = start - symbol.base + symbol.value;
    return 0;
}
