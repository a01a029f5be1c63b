/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - one ELF file and its debug information, through libdwfl.
 *
 * An offset in the file becomes an address by the program headers; libdwfl moves addresses of shared objects
 * by a bias of its own. Which unit an address is in is looked up in a table of all units' ranges, made at
 * first: compilers other than gcc write no .debug_aranges. Which functions, inlined ones included, is looked
 * up in a table of the unit's scopes (scopes.h), made at the first lookup in that unit.
 */
#include "symbols/image.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/base-name.h"
#include "symbols/definitions.h"
#include "symbols/demangle.h"
#include "symbols/jit-map.h"
#include "symbols/line-rows.h"
#include "symbols/mangled.h"
#include "symbols/plt.h"
#include "symbols/scopes.h"

struct unit {
    Dwarf_Die die, skeleton; /* skeleton: of split debug information; the same otherwise */
    struct scopes *scopes;   /* NULL: not made yet */
    Dwarf_Line **rows;
    size_t nrows;
    Dwarf_Files *files;
    int loaded;
};

struct unit_range {
    Dwarf_Addr low, high; /* without bias */
    uint32_t unit;
};

/* Names that were made here, kept until the image is closed. */
struct name {
    char *text;
    struct name *next;
};

struct symbol {
    GElf_Addr low, high; /* with libdwfl's bias */
    GElf_Addr reach;     /* the largest high up to there in the list */
    const char *name;    /* mangled */
    int rank;            /* of two at the same place the lower one is shown */
    const char *shown;   /* demangled; NULL: not asked for yet */
};

struct symbols_image {
    Dwfl *dwfl;
    Dwfl_Module *module;
    struct jit_entries *jit; /* instead of all that follows, if offsets are addresses of JIT code */
    Elf *elf;                /* of the vDSO; else libdwfl's */
    GElf_Addr bias;          /* of symbols, and of addresses that libdwfl is asked about */
    Dwarf_Addr debug_bias;   /* of debug information */
    char build_id[2 * 64 + 1];
    char base[256]; /* file name without folders */
    struct definitions *definitions;
    struct unit *units;
    size_t nunits, units_capacity;
    struct unit_range *ranges;
    size_t nranges, ranges_capacity;
    struct name *names;
    struct symbol *symbols; /* by low */
    size_t nsymbols;
    struct mangled mangled;         /* names of symbols */
    int units_tried, symbols_tried; /* each is read when it is needed: much of it may be compressed */
};

static char *debuginfo_path; /* NULL: the default */

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debuginfo_path,
};

/* Keeps the text; NULL when memory is short. */
static const char *keep(struct symbols_image *image, char *text)
{
    struct name *name = text != NULL ? malloc(sizeof *name) : NULL;
    if (name == NULL) {
        free(text);
        return NULL;
    }
    *name = (struct name){text, image->names};
    image->names = name;
    return text;
}

static int add_range(struct symbols_image *image, Dwarf_Addr low, Dwarf_Addr high)
{
    if (ARRAY_GROW(image->ranges, image->nranges, image->ranges_capacity) < 0)
        return -1;
    image->ranges[image->nranges++] = (struct unit_range){low, high, (uint32_t)image->nunits - 1};
    return 0;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct unit_range *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

static int no_debug_info;

void symbols_image_no_debug_info(void)
{
    no_debug_info = 1;
}

static void find_units(struct symbols_image *image)
{
    Dwarf_Addr bias;
    if (image->units_tried || image->module == NULL || no_debug_info)
        return;
    image->units_tried = 1;
    if (dwfl_module_getdwarf(image->module, &image->debug_bias) == NULL)
        return;
    image->definitions = definitions_new(image->module);
    for (Dwarf_Die *die = NULL; (die = dwfl_module_nextcu(image->module, die, &bias)) != NULL;) {
        Dwarf_Addr base, low, high;
        if (ARRAY_GROW(image->units, image->nunits, image->units_capacity) < 0)
            return;
        image->units[image->nunits++] = (struct unit){.die = scopes_whole_unit(die), .skeleton = *die};
        for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;)
            if (low != SCOPES_LEFT_OUT && low < high && add_range(image, low, high) < 0)
                return;
    }
    if (image->nranges > 0)
        qsort(image->ranges, image->nranges, sizeof *image->ranges, compare_ranges);
}

static int compare_symbols(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return y->rank - x->rank; /* the last one is found */
}

/* Functions of the symbol table, and of the dynamic one. libdwfl's own look-up walks through all of them. */
static void find_symbols(struct symbols_image *image)
{
    if (image->symbols_tried || image->module == NULL)
        return;
    image->symbols_tried = 1;
    int n = dwfl_module_getsymtab(image->module);
    if (n <= 0 || (image->symbols = calloc((size_t)n, sizeof *image->symbols)) == NULL)
        return;
    for (int i = 0; i < n; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(image->module, i, &symbol, &address, NULL, NULL, NULL);
        int type = GELF_ST_TYPE(symbol.st_info);
        if (name == NULL || *name == '\0' || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0 ||
            (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
            continue;
        int rank = 4 * (GELF_ST_BIND(symbol.st_info) == STB_LOCAL) + 2 * (name[0] == '_') +
                   (GELF_ST_BIND(symbol.st_info) == STB_WEAK);
        image->symbols[image->nsymbols++] =
            (struct symbol){.low = address, .high = address + symbol.st_size, .name = name, .rank = rank};
    }
    if (image->nsymbols > 0)
        qsort(image->symbols, image->nsymbols, sizeof *image->symbols, compare_symbols);
    GElf_Addr reach = 0;
    for (size_t i = 0; i < image->nsymbols; i++) {
        struct symbol *s = &image->symbols[i];
        s->reach = reach = s->high > reach ? s->high : reach;
        mangled_add(&image->mangled, s->name);
    }
    mangled_sort(&image->mangled);
}

/* As it is shown: with parameters if functions of the image differ in nothing else. */
static const char *demangle(struct symbols_image *image, const char *name)
{
    find_symbols(image);
    char *overload = mangled_has_overload(&image->mangled, name) ? symbols_demangle_overload(name) : NULL;
    return keep(image, overload != NULL ? overload : symbols_demangle(name));
}

static struct symbols_image *open_vdso(struct symbols_image *image)
{
    /* Ours is the same as the target's: both are the kernel's. Its size is that of its mapping, two pages at
     * least; the section headers, at its end, say where that is. */
    const char *start = (const char *)getauxval(AT_SYSINFO_EHDR);
    Elf64_Ehdr header;
    if (start == NULL)
        return NULL;
    memcpy(&header, start, sizeof header);
    size_t size = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
    image->elf = elf_memory((char *)(uintptr_t)start, size);
    return image->elf != NULL ? image : NULL;
}

static void note_build_id(struct symbols_image *image)
{
    const unsigned char *bits;
    GElf_Addr address;
    int n = dwfl_module_build_id(image->module, &bits, &address);
    for (int i = 0; i < n && i < 64; i++)
        snprintf(image->build_id + 2 * i, 3, "%02x", bits[i]);
}

/* To open a named pipe would wait for its writer. */
static int is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

struct symbols_image *symbols_image_open(const char *path)
{
    return symbols_image_open_grown(path, NULL, 0);
}

struct symbols_image *symbols_image_open_grown(const char *path, const struct symbols_growth *growth,
                                               size_t n)
{
    struct symbols_image *image = calloc(1, sizeof *image);
    if (image == NULL)
        return NULL;
    snprintf(image->base, sizeof image->base, "%s", base_name(path));
    uint32_t pid;
    if (symbols_jit_map_is(path) || symbols_jit_dump_is(path, &pid)) {
        if ((image->jit = symbols_jit_map_open(path, growth, n)) != NULL)
            return image;
        symbols_image_close(image);
        return NULL;
    }
    elf_version(EV_CURRENT);
    if (strcmp(path, "[vdso]") == 0) {
        if (open_vdso(image) != NULL)
            return image;
        symbols_image_close(image);
        return NULL;
    }
    if (path[0] == '/' && is_regular(path) && (image->dwfl = dwfl_begin(&callbacks)) != NULL) {
        image->module = dwfl_report_offline(image->dwfl, image->base, path, -1);
        dwfl_report_end(image->dwfl, NULL, NULL);
    }
    if (image->module == NULL || dwfl_module_getelf(image->module, &image->bias) == NULL) {
        symbols_image_close(image);
        return NULL;
    }
    note_build_id(image);
    return image;
}

void symbols_image_close(struct symbols_image *image)
{
    if (image == NULL)
        return;
    for (size_t i = 0; i < image->nunits; i++) {
        scopes_free(image->units[i].scopes);
        free(image->units[i].rows);
    }
    free(image->units);
    free(image->ranges);
    free(image->symbols);
    definitions_free(image->definitions);
    mangled_clear(&image->mangled);
    for (struct name *name = image->names, *next; name != NULL; name = next) {
        next = name->next;
        free(name->text);
        free(name);
    }
    jit_entries_free(image->jit);
    if (image->dwfl == NULL)
        elf_end(image->elf);
    else
        dwfl_end(image->dwfl);
    free(image);
}

const char *symbols_image_build_id(const struct symbols_image *image)
{
    return image->build_id;
}

/* Nonzero if no segment of the file has that offset. */
static int address_of(Elf *elf, uint64_t offset, uint64_t *address)
{
    size_t n = 0;
    if (elf_getphdrnum(elf, &n) != 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) == NULL || header.p_type != PT_LOAD)
            continue;
        /* A mapping begins at a page, and may have a little more than the segment, at both ends. */
        if (offset >= header.p_offset && offset - header.p_offset < header.p_filesz) {
            *address = header.p_vaddr + (offset - header.p_offset);
            return 0;
        }
    }
    return -1;
}

/* --- debug information --- */

static struct unit *find_unit(struct symbols_image *image, Dwarf_Addr address)
{
    size_t end = ARRAY_UP_TO(image->ranges, image->nranges, low, address);
    if (end == 0 || address >= image->ranges[end - 1].high)
        return NULL;
    struct unit *unit = &image->units[image->ranges[end - 1].unit];
    if (!unit->loaded) {
        unit->loaded = 1;
        unit->rows = line_rows_new(&unit->skeleton, &unit->nrows);
        if (dwarf_getsrcfiles(&unit->die, &unit->files, NULL) != 0)
            unit->files = NULL;
        unit->scopes = scopes_new(&unit->die, image->definitions);
    }
    return unit;
}

/* The row of the line table that holds the address; a row of line 0 gives way to the nearest one before. */
static void find_line(const struct unit *unit, Dwarf_Addr address, struct symbols_frame *frame)
{
    size_t low = 0, high = unit->nrows;
    Dwarf_Addr at;
    int line = 0, column = 0;
    bool ends;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (dwarf_lineaddr(unit->rows[middle], &at) == 0 && at <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low > 0; low--) {
        Dwarf_Line *row = unit->rows[low - 1];
        if (dwarf_lineendsequence(row, &ends) != 0 || ends || dwarf_lineno(row, &line) != 0)
            return;
        if (line != 0) {
            frame->file = dwarf_linesrc(row, NULL, NULL);
            frame->line = frame->file != NULL ? (uint32_t)line : 0;
            if (frame->line != 0 && dwarf_linecol(row, &column) == 0)
                frame->column = (uint32_t)column;
            return;
        }
        frame->guessed = 1;
    }
}

/* *simple: it is the name in the source code, without the scopes around it. */
static const char *name_of(struct symbols_image *image, Dwarf_Die *die, int *simple)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;
    *simple = 0;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) != NULL ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute) != NULL)
        name = dwarf_formstring(&attribute);
    if (name != NULL)
        return demangle(image, name);
    if (dwarf_attr_integrate(die, DW_AT_name, &attribute) != NULL)
        name = dwarf_formstring(&attribute);
    *simple = name != NULL;
    return name;
}

/* Where the inlined function was called. */
static void find_call(const struct unit *unit, Dwarf_Die *die, struct symbols_frame *frame)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file, line, column;
    if (dwarf_attr(die, DW_AT_call_line, &attribute) == NULL || dwarf_formudata(&attribute, &line) != 0 ||
        dwarf_attr(die, DW_AT_call_file, &attribute) == NULL || dwarf_formudata(&attribute, &file) != 0 ||
        unit->files == NULL)
        return;
    frame->file = dwarf_filesrc(unit->files, (size_t)file, NULL, NULL);
    frame->line = frame->file != NULL ? (uint32_t)line : 0;
    if (frame->line != 0 && dwarf_attr(die, DW_AT_call_column, &attribute) != NULL &&
        dwarf_formudata(&attribute, &column) == 0)
        frame->column = (uint32_t)column;
}

/* *simple: of the last frame, see name_of. */
static unsigned debug_frames(struct symbols_image *image, Dwarf_Addr address, int *simple,
                             struct symbols_frame frames[SYMBOLS_MOST_FRAMES])
{
    struct unit *unit = find_unit(image, address);
    if (unit == NULL)
        return 0;
    struct symbols_frame place = {0};
    find_line(unit, address, &place);
    unsigned n = 0;
    for (const struct scope *scope = scopes_find(unit->scopes, address);
         scope != NULL && n < SYMBOLS_MOST_FRAMES;) {
        Dwarf_Die die = scope->die;
        const struct scope *outer = scopes_outer(unit->scopes, scope);
        place.function = name_of(image, &die, simple);
        if (place.function == NULL && outer != NULL)
            place.function = "(inlined)";
        if (place.function == NULL)
            break;
        frames[n++] = place;
        place = (struct symbols_frame){0};
        if (dwarf_tag(&die) != DW_TAG_inlined_subroutine)
            return n;
        find_call(unit, &die, &place);
        scope = outer;
    }
    /* No function, or one without a name: what is left is the place. */
    if (n == SYMBOLS_MOST_FRAMES)
        return n;
    place.function = NULL;
    frames[n] = place;
    return n + 1;
}

/* --- without debug information --- */

static const char *vdso_symbol(Elf *elf, uint64_t address)
{
    const char *best = NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        GElf_Sym symbol;
        if (gelf_getshdr(section, &header) == NULL || header.sh_type != SHT_DYNSYM || header.sh_entsize == 0)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (size_t i = 0; data != NULL && i < header.sh_size / header.sh_entsize; i++)
            if (gelf_getsym(data, (int)i, &symbol) != NULL && GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
                address >= symbol.st_value && address - symbol.st_value < symbol.st_size) {
                const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);
                /* Of two names the one without underscores. */
                if (name != NULL && (best == NULL || name[0] != '_'))
                    best = name;
            }
    }
    return best;
}

/* The innermost one: functions in assembly language may contain others, and of two at one place the name may
 * be that of the shorter one. */
static struct symbol *find_symbol(struct symbols_image *image, uint64_t address)
{
    find_symbols(image);
    for (size_t i = ARRAY_UP_TO(image->symbols, image->nsymbols, low, address);
         i > 0 && image->symbols[i - 1].reach > address; i--)
        if (address < image->symbols[i - 1].high)
            return &image->symbols[i - 1];
    return NULL;
}

static const char *shown_name(struct symbols_image *image, struct symbol *symbol)
{
    if (symbol->shown == NULL)
        symbol->shown = demangle(image, symbol->name);
    return symbol->shown;
}

static const char *symbol_of(struct symbols_image *image, uint64_t address)
{
    if (image->module == NULL)
        return vdso_symbol(image->elf, address);
    struct symbol *symbol = find_symbol(image, address);
    return symbol != NULL ? shown_name(image, symbol) : NULL;
}

/* Debug information has no linkage name of a lambda, nor of members of a local class or a template of one.
 * All lambdas are "operator()" there. NULL: there is no such symbol. */
static const char *linkage_name(struct symbols_image *image, uint64_t address)
{
    struct symbol *symbol = image->module != NULL ? find_symbol(image, address) : NULL;
    return symbol != NULL && strncmp(symbol->name, "_Z", 2) == 0 ? shown_name(image, symbol) : NULL;
}

/* "memcpy@plt". */
static const char *plt_entry(struct symbols_image *image, uint64_t address)
{
    const char *name =
        symbols_plt_name(dwfl_module_getelf(image->module, &image->bias), address - image->bias);
    const char *shown = name != NULL ? demangle(image, name) : NULL;
    char *text = NULL;
    return shown != NULL && asprintf(&text, "%s@plt", shown) >= 0 ? keep(image, text) : NULL;
}

/*
 * "file+0x1139", after where its function begins. Functions in assembly language often have no unwind table:
 * "file+0x1xxx", after the page. A library's decoders for all of its formats are not one function.
 */
static const char *place_of(struct symbols_image *image, uint64_t address)
{
    Dwarf_Addr bias = 0, start = 0, end = 0;
    Dwarf_Frame *frame = NULL;
    char text[sizeof image->base + 32];
    if (image->module == NULL)
        return NULL;
    const char *entry = plt_entry(image, address);
    if (entry != NULL)
        return entry;
    Dwarf_CFI *cfi = dwfl_module_eh_cfi(image->module, &bias);
    int known = cfi != NULL && dwarf_cfi_addrframe(cfi, address - bias, &frame) == 0 &&
                dwarf_frame_info(frame, &start, &end, NULL) >= 0;
    free(frame);
    if (known)
        snprintf(text, sizeof text, "%s+0x%llx", image->base,
                 (unsigned long long)(start + bias - image->bias));
    else
        snprintf(text, sizeof text, "%s+0x%llxxxx", image->base,
                 (unsigned long long)(address - image->bias) >> 12);
    return keep(image, strdup(text));
}

struct jit_entries *symbols_image_jit(const struct symbols_image *image)
{
    return image->jit;
}

unsigned symbols_image_frames_made(struct symbols_image *image, uint32_t made, uint64_t address, int lines,
                                   struct symbols_frame frames[SYMBOLS_MOST_FRAMES])
{
    static const char url[] = "file://";
    const uint32_t *list;
    const char *file = NULL;
    if (image->jit == NULL)
        return 0;
    size_t n = made == 0 ? jit_entries_at(image->jit, address, &list) : 1;
    if (n == 0)
        return 0;
    uint32_t entry = made != 0 ? made - 1 : jit_entries_during(image->jit, list, n, UINT64_MAX, UINT64_MAX);
    frames[0] = (struct symbols_frame){.function = jit_entries_name(image->jit, entry)};
    if (lines && (frames[0].line = jit_entries_line(image->jit, entry, address, &file)) != 0)
        frames[0].file = strncmp(file, url, sizeof url - 1) == 0 ? file + sizeof url - 1 : file;
    return frames[0].function != NULL;
}

unsigned symbols_image_frames(struct symbols_image *image, uint64_t offset, int lines,
                              struct symbols_frame frames[SYMBOLS_MOST_FRAMES])
{
    uint64_t address;
    if (lines)
        find_units(image);
    if (image->jit != NULL)
        return symbols_image_frames_made(image, 0, offset, lines, frames);
    Elf *elf = image->module != NULL ? dwfl_module_getelf(image->module, &image->bias) : image->elf;
    if (address_of(elf, offset, &address) != 0)
        return 0;
    address += image->bias;
    int simple = 0;
    unsigned n =
        lines && image->nunits > 0 ? debug_frames(image, address - image->debug_bias, &simple, frames) : 0;
    if (n > 0 && frames[n - 1].function != NULL) {
        const char *full = simple ? linkage_name(image, address) : NULL;
        if (full != NULL)
            frames[n - 1].function = full;
        return n;
    }
    if (n == 0)
        frames[n++] = (struct symbols_frame){0};
    struct symbols_frame *outer = &frames[n - 1];
    outer->function = symbol_of(image, address);
    if (outer->function == NULL)
        outer->function = place_of(image, address);
    return outer->function != NULL || n > 1 ? n : 0;
}

Dwfl_Module *symbols_image_module(struct symbols_image *image)
{
    find_units(image);
    return image->nunits > 0 ? image->module : NULL;
}

const char *symbols_image_name(struct symbols_image *image, Dwarf_Die *die)
{
    int simple;
    return name_of(image, die, &simple);
}

struct definitions *symbols_image_definitions(struct symbols_image *image)
{
    return image != NULL ? image->definitions : NULL;
}

const struct scopes *symbols_image_scopes(struct symbols_image *image, uint64_t offset, uint64_t *address)
{
    Elf *elf = image->module != NULL ? dwfl_module_getelf(image->module, &image->bias) : image->elf;
    find_units(image);
    if (image->nunits == 0 || address_of(elf, offset, address) != 0)
        return NULL;
    *address += image->bias - image->debug_bias;
    const struct unit *unit = find_unit(image, *address);
    return unit != NULL ? unit->scopes : NULL;
}

int symbols_image_function(struct symbols_image *image, uint64_t offset, uint64_t *low, uint64_t *high)
{
    uint64_t address;
    Elf *elf = image->module != NULL ? dwfl_module_getelf(image->module, &image->bias) : image->elf;
    if (image->module == NULL || address_of(elf, offset, &address) != 0)
        return 0;
    address += image->bias;
    find_symbols(image);
    for (size_t i = 0; i < image->nsymbols; i++) {
        const struct symbol *s = &image->symbols[i];
        if (s->low > address)
            break;
        /* In one segment both ends are as far away in the file. A size may be wrong: nothing but tools reads
         * it. */
        Dwarf_Addr last;
        if (address < s->high && offset >= address - s->low &&
            address_of(elf, offset + (s->high - 1 - address), &last) == 0 &&
            last + image->bias == s->high - 1) {
            *low = offset - (address - s->low);
            *high = offset + (s->high - address);
            return 1;
        }
    }
    return 0;
}
