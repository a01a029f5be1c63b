/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/data.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

struct segment {
    uint64_t offset, address, file_bytes, bytes;
};

struct variable {
    uint64_t low, high;
    char *name;
    int rank; /* of two at the same place the lower one is shown */
};

struct section {
    uint64_t low, high;
    char *name;
};

struct symbols_data {
    char *path;
    struct segment *segments;
    size_t nsegments;
    int loaded;
    struct variable *variables; /* by low, without overlap */
    size_t nvariables;
    struct section *sections;
    size_t nsections;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

static int read_segments(struct symbols_data *d, Elf *elf)
{
    size_t n = 0;
    if (elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &n) != 0 || n == 0 ||
        (d->segments = calloc(n, sizeof *d->segments)) == NULL)
        return -1;
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr h;
        if (gelf_getphdr(elf, (int)i, &h) != NULL && h.p_type == PT_LOAD &&
            h.p_vaddr + h.p_memsz >= h.p_vaddr)
            d->segments[d->nsegments++] = (struct segment){h.p_offset, h.p_vaddr, h.p_filesz, h.p_memsz};
    }
    return d->nsegments > 0 ? 0 : -1;
}

struct symbols_data *symbols_data_open(const char *path)
{
    struct symbols_data *d = path[0] == '/' ? calloc(1, sizeof *d) : NULL;
    if (d == NULL)
        return NULL;
    elf_version(EV_CURRENT);
    d->path = strdup(path);
    int fd = d->path != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    int failed = elf == NULL || read_segments(d, elf) != 0;
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    if (!failed)
        return d;
    symbols_data_close(d);
    return NULL;
}

void symbols_data_close(struct symbols_data *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->nvariables; i++)
        free(d->variables[i].name);
    for (size_t i = 0; i < d->nsections; i++)
        free(d->sections[i].name);
    free(d->variables);
    free(d->sections);
    free(d->segments);
    free(d->path);
    free(d);
}

void symbols_data_span(const struct symbols_data *d, uint64_t *low, uint64_t *high)
{
    *low = UINT64_MAX;
    *high = 0;
    for (size_t i = 0; i < d->nsegments; i++) {
        const struct segment *s = &d->segments[i];
        *low = s->address < *low ? s->address : *low;
        *high = s->address + s->bytes > *high ? s->address + s->bytes : *high;
    }
}

int symbols_data_address(const struct symbols_data *d, uint64_t offset, uint64_t *address)
{
    /* Mappings are of whole pages: the offset may lie before the segment. */
    const uint64_t page = 4096;
    for (size_t i = 0; i < d->nsegments; i++) {
        const struct segment *s = &d->segments[i];
        if (offset >= s->offset / page * page && offset < s->offset + s->file_bytes) {
            *address = s->address + (offset - s->offset);
            return 0;
        }
    }
    return -1;
}

/* --- symbols --- */

static int compare_variables(const void *a, const void *b)
{
    const struct variable *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high) /* the larger one first */
        return x->high < y->high ? 1 : -1;
    return x->rank - y->rank;
}

static int compare_sections(const void *a, const void *b)
{
    const struct section *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

static void read_variables(struct symbols_data *d, Dwfl_Module *module, GElf_Addr bias)
{
    /* No debuginfod: the program runs, and the recorder must not wait for a server. */
    char *servers = getenv("DEBUGINFOD_URLS");
    servers = servers != NULL ? strdup(servers) : NULL;
    unsetenv("DEBUGINFOD_URLS");
    int n = dwfl_module_getsymtab(module);
    if (servers != NULL)
        setenv("DEBUGINFOD_URLS", servers, 1);
    free(servers);
    if (n <= 0 || (d->variables = calloc((size_t)n, sizeof *d->variables)) == NULL)
        return;
    for (int i = 0; i < n; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        int type = GELF_ST_TYPE(symbol.st_info), binding = GELF_ST_BIND(symbol.st_info);
        if (name == NULL || *name == '\0' || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS ||
            symbol.st_size == 0 || (type != STT_OBJECT && type != STT_COMMON))
            continue;
        address -= bias;
        if (address + symbol.st_size < address)
            continue;
        int rank = 4 * (binding == STB_LOCAL) + 2 * (name[0] == '_') + (binding == STB_WEAK);
        char *kept = strndup(name, strcspn(name, "@")); /* without a version, as in stdout@GLIBC_2.2.5 */
        if (kept == NULL)
            return;
        d->variables[d->nvariables++] = (struct variable){address, address + symbol.st_size, kept, rank};
    }
}

/* Sorted; of those that overlap the first one is kept. */
static void order_variables(struct symbols_data *d)
{
    size_t used = 0;
    if (d->nvariables > 0)
        qsort(d->variables, d->nvariables, sizeof *d->variables, compare_variables);
    for (size_t i = 0; i < d->nvariables; i++) {
        struct variable *v = &d->variables[i];
        if (used > 0 && v->low < d->variables[used - 1].high)
            free(v->name);
        else
            d->variables[used++] = *v;
    }
    d->nvariables = used;
}

static void read_sections(struct symbols_data *d, Elf *elf)
{
    size_t n = 0, names = 0;
    if (elf_getshdrnum(elf, &n) != 0 || elf_getshdrstrndx(elf, &names) != 0 ||
        (d->sections = calloc(n + 1, sizeof *d->sections)) == NULL)
        return;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL && d->nsections < n;) {
        GElf_Shdr h;
        if (gelf_getshdr(scn, &h) == NULL || (h.sh_flags & SHF_ALLOC) == 0 || (h.sh_flags & SHF_TLS) != 0 ||
            h.sh_size == 0 || h.sh_addr + h.sh_size < h.sh_addr)
            continue;
        const char *name = elf_strptr(elf, names, h.sh_name);
        char *kept = strdup(name != NULL ? name : "");
        if (kept == NULL)
            return;
        d->sections[d->nsections++] = (struct section){h.sh_addr, h.sh_addr + h.sh_size, kept};
    }
    if (d->nsections > 0)
        qsort(d->sections, d->nsections, sizeof *d->sections, compare_sections);
}

static void load(struct symbols_data *d)
{
    GElf_Addr bias = 0;
    d->loaded = 1;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    Dwfl_Module *module = dwfl != NULL ? dwfl_report_offline(dwfl, "", d->path, -1) : NULL;
    if (dwfl != NULL)
        dwfl_report_end(dwfl, NULL, NULL);
    Elf *elf = module != NULL ? dwfl_module_getelf(module, &bias) : NULL;
    if (elf != NULL) {
        read_variables(d, module, bias);
        order_variables(d);
        read_sections(d, elf);
    }
    if (dwfl != NULL)
        dwfl_end(dwfl);
}

void symbols_data_find(struct symbols_data *d, uint64_t address, struct symbols_variable *found)
{
    if (!d->loaded)
        load(d);
    *found = (struct symbols_variable){.low = 0, .high = UINT64_MAX, .section = ""};
    size_t end = ARRAY_UP_TO(d->variables, d->nvariables, low, address);
    if (end > 0 && address < d->variables[end - 1].high) {
        const struct variable *v = &d->variables[end - 1];
        *found = (struct symbols_variable){.low = v->low, .high = v->high, .name = v->name, .section = ""};
        return;
    }
    found->low = end > 0 ? d->variables[end - 1].high : 0;
    found->high = end < d->nvariables ? d->variables[end].low : UINT64_MAX;
    for (size_t i = 0; i < d->nsections; i++) {
        const struct section *s = &d->sections[i];
        if (address >= s->low && address < s->high) {
            found->section = s->name;
            found->section_low = s->low;
            found->low = s->low > found->low ? s->low : found->low;
            found->high = s->high < found->high ? s->high : found->high;
            return;
        }
        /* Between sections. */
        if (s->high <= address)
            found->low = s->high > found->low ? s->high : found->low;
        else
            found->high = s->low < found->high ? s->low : found->high;
    }
}
