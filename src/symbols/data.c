/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/data.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "symbols/servers.h"

struct segment {
    uint64_t offset, address, file_bytes, bytes;
};

struct variable {
    uint64_t low, high;
    char *name;
    int rank; /* of two at the same place the lower one is shown */
};

/* By low, without overlap. */
struct variables {
    struct variable *list;
    size_t n;
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
    struct variables globals, tls, functions; /* the latter of C++ and Rust only */
    uint64_t tls_bytes, tls_below;            /* symbols_data_tls */
    struct section *sections;
    size_t nsections;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

/* Whether it is marked as a program that can be loaded anywhere; otherwise it is a library. */
static int is_pie(Elf *elf, const GElf_Phdr *dynamic)
{
    Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)dynamic->p_offset, dynamic->p_filesz, ELF_T_DYN);
    GElf_Dyn entry;
    for (int i = 0; data != NULL && gelf_getdyn(data, i, &entry) != NULL && entry.d_tag != DT_NULL; i++)
        if (entry.d_tag == DT_FLAGS_1)
            return (entry.d_un.d_val & DF_1_PIE) != 0;
    return 0;
}

/* The place of a program's thread-local variables in the x86-64 ABI (variant II; glibc's
 * _dl_determine_tlsoffset, where the program comes first). */
static void place_tls(struct symbols_data *d, const GElf_Phdr *tls)
{
    uint64_t align = tls->p_align > 1 ? tls->p_align : 1, first = -tls->p_vaddr & (align - 1);
    if ((align & (align - 1)) != 0 || tls->p_memsz < first || tls->p_memsz + align < tls->p_memsz)
        return;
    d->tls_bytes = tls->p_memsz;
    d->tls_below = ((tls->p_memsz - first + align - 1) & ~(align - 1)) + first;
}

static int read_segments(struct symbols_data *d, Elf *elf)
{
    size_t n = 0;
    GElf_Ehdr head;
    GElf_Phdr tls = {.p_type = PT_NULL};
    int is_program = gelf_getehdr(elf, &head) != NULL && head.e_type == ET_EXEC;
    if (elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &n) != 0 || n == 0 ||
        (d->segments = calloc(n, sizeof *d->segments)) == NULL)
        return -1;
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr h;
        if (gelf_getphdr(elf, (int)i, &h) == NULL)
            continue;
        if (h.p_type == PT_LOAD && h.p_vaddr + h.p_memsz >= h.p_vaddr)
            d->segments[d->nsegments++] = (struct segment){h.p_offset, h.p_vaddr, h.p_filesz, h.p_memsz};
        else if (h.p_type == PT_TLS)
            tls = h;
        else if (h.p_type == PT_DYNAMIC)
            is_program |= is_pie(elf, &h);
    }
    if (is_program && tls.p_type == PT_TLS)
        place_tls(d, &tls);
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

static void free_variables(struct variables *v)
{
    for (size_t i = 0; i < v->n; i++)
        free(v->list[i].name);
    free(v->list);
}

void symbols_data_close(struct symbols_data *d)
{
    if (d == NULL)
        return;
    free_variables(&d->globals);
    free_variables(&d->tls);
    free_variables(&d->functions);
    for (size_t i = 0; i < d->nsections; i++)
        free(d->sections[i].name);
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
    char *servers = symbols_servers_forbid();
    int n = dwfl_module_getsymtab(module);
    symbols_servers_allow(servers);
    if (n <= 0 || (d->globals.list = calloc((size_t)n, sizeof *d->globals.list)) == NULL ||
        (d->functions.list = calloc((size_t)n, sizeof *d->functions.list)) == NULL ||
        (d->tls_bytes > 0 && (d->tls.list = calloc((size_t)n, sizeof *d->tls.list)) == NULL))
        return;
    for (int i = 0; i < n; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        int type = GELF_ST_TYPE(symbol.st_info), binding = GELF_ST_BIND(symbol.st_info);
        int is_function =
            type == STT_FUNC && name != NULL && (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0);
        if (name == NULL || *name == '\0' || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS ||
            symbol.st_size == 0 ||
            (type != STT_OBJECT && type != STT_COMMON && type != STT_TLS && !is_function))
            continue;
        if (type == STT_TLS && d->tls_bytes == 0)
            continue;
        address = type == STT_TLS ? symbol.st_value : address - bias; /* the former: within the block */
        if (address + symbol.st_size < address)
            continue;
        int rank = 4 * (binding == STB_LOCAL) + 2 * (name[0] == '_') + (binding == STB_WEAK);
        char *kept = strndup(name, strcspn(name, "@")); /* without a version, as in stdout@GLIBC_2.2.5 */
        if (kept == NULL)
            return;
        struct variables *v = is_function ? &d->functions : type == STT_TLS ? &d->tls : &d->globals;
        v->list[v->n++] = (struct variable){address, address + symbol.st_size, kept, rank};
    }
}

/* Sorted; of those that overlap the first one is kept. */
static void order_variables(struct variables *all)
{
    size_t used = 0;
    if (all->n > 0)
        qsort(all->list, all->n, sizeof *all->list, compare_variables);
    for (size_t i = 0; i < all->n; i++) {
        struct variable *v = &all->list[i];
        if (used > 0 && v->low < all->list[used - 1].high)
            free(v->name);
        else
            all->list[used++] = *v;
    }
    all->n = used;
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
        order_variables(&d->globals);
        order_variables(&d->tls);
        order_variables(&d->functions);
        read_sections(d, elf);
    }
    if (dwfl != NULL)
        dwfl_end(dwfl);
}

/* The variable, or the gap between two. */
static void find_variable(const struct variables *all, uint64_t address, struct symbols_variable *found)
{
    size_t end = ARRAY_UP_TO(all->list, all->n, low, address);
    const struct variable *v = end > 0 ? &all->list[end - 1] : NULL;
    *found = (struct symbols_variable){.section = ""};
    if (v != NULL && address < v->high) {
        found->low = v->low;
        found->high = v->high;
        found->name = v->name;
        return;
    }
    found->low = v != NULL ? v->high : 0;
    found->high = end < all->n ? all->list[end].low : UINT64_MAX;
}

uint64_t symbols_data_tls(const struct symbols_data *d, uint64_t *below)
{
    *below = d->tls_below;
    return d->tls_bytes;
}

void symbols_data_find_tls(struct symbols_data *d, uint64_t offset, struct symbols_variable *found)
{
    if (!d->loaded)
        load(d);
    find_variable(&d->tls, offset, found);
}

void symbols_data_find(struct symbols_data *d, uint64_t address, struct symbols_variable *found)
{
    if (!d->loaded)
        load(d);
    find_variable(&d->globals, address, found);
    if (found->name != NULL)
        return;
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

const char *symbols_data_function(struct symbols_data *d, uint64_t address)
{
    struct symbols_variable found;
    if (!d->loaded)
        load(d);
    find_variable(&d->functions, address, &found);
    return found.name;
}
