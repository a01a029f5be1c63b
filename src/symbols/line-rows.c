/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line-rows.c - libdw sorts the rows of all sequences by address, and does not say which sequence a row is
 * of. So in units that have rows at address 0 the line program is run once more, for the sequences that begin
 * there: their rows are removed from libdw's.
 *
 * Example, a function of 0x34b0 bytes at 0, left out, and one at 0x1159: rows 0x1167 line 148, which is
 * removed, and 0x1166 line 407, which holds up to the next one of line 409, at 0x116b.
 */
#include "symbols/line-rows.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/leb128.h"

/* Rows that were left out; more are corrupt. */
#define MOST_ROWS (1u << 24)

struct row {
    uint64_t address;
    int line, column;
    int ends; /* the sequence */
    int used; /* libdw's was removed */
};

struct rows {
    struct row *list;
    size_t n, capacity;
};

struct bytes {
    const uint8_t *at, *end;
    int failed;
};

struct header {
    unsigned least, base_code, range; /* minimum_instruction_length, opcode_base, line_range */
    int line_base;
    const uint8_t *operands; /* numbers of operands of the standard codes, from code 1 on */
};

static uint64_t take(struct bytes *b, size_t n)
{
    uint64_t value = 0;
    if (n > sizeof value || (size_t)(b->end - b->at) < n) {
        b->failed = 1;
        b->at = b->end;
        return 0;
    }
    memcpy(&value, b->at, n); /* little endian, as this machine */
    b->at += n;
    return value;
}

static uint64_t take_leb(struct bytes *b)
{
    uint64_t value = 0;
    if (leb128_take(&b->at, b->end, &value) != 0) {
        b->failed = 1;
        b->at = b->end;
    }
    return value;
}

static int64_t take_signed_leb(struct bytes *b)
{
    uint64_t value = 0, byte = 0x80;
    unsigned shift = 0;
    for (; (byte & 0x80) != 0 && shift < 64 && !b->failed; shift += 7) {
        byte = take(b, 1);
        value |= (byte & 0x7f) << shift;
    }
    if (shift < 64 && (byte & 0x40) != 0)
        value |= ~UINT64_C(0) << shift;
    return (int64_t)value;
}

/* --- the line program --- */

/* The unit's part of .debug_line. 0, or -1. */
static int find_program(Dwarf_Die *unit, struct bytes *program)
{
    Dwarf_Attribute attribute;
    Dwarf_Word offset;
    Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(unit->cu));
    size_t names;
    if (dwarf_attr(unit, DW_AT_stmt_list, &attribute) == NULL || dwarf_formudata(&attribute, &offset) != 0 ||
        elf == NULL || elf_getshdrstrndx(elf, &names) != 0)
        return -1;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr h;
        const char *name = gelf_getshdr(section, &h) != NULL ? elf_strptr(elf, names, h.sh_name) : NULL;
        if (name == NULL || strcmp(name, ".debug_line") != 0)
            continue;
        Elf_Data *data = elf_getdata(section, NULL); /* libdw has decompressed it in place */
        if ((h.sh_flags & SHF_COMPRESSED) != 0 || data == NULL || data->d_buf == NULL ||
            offset > data->d_size)
            return -1;
        program->at = (const uint8_t *)data->d_buf + offset;
        program->end = (const uint8_t *)data->d_buf + data->d_size;
        return 0;
    }
    return -1;
}

/* Goes on to the first code of the program. 0, or -1. */
static int read_header(struct bytes *b, struct header *h)
{
    size_t wide = 4;
    uint64_t bytes = take(b, 4);
    if (bytes == UINT32_MAX) {
        wide = 8;
        bytes = take(b, 8);
    }
    if (bytes > (uint64_t)(b->end - b->at))
        return -1;
    b->end = b->at + bytes;
    unsigned version = (unsigned)take(b, 2);
    if (version >= 5)
        take(b, 2); /* sizes of addresses and of segment selectors */
    uint64_t rest = take(b, wide);
    if (version < 2 || version > 5 || b->failed || rest > (uint64_t)(b->end - b->at))
        return -1;
    const uint8_t *program = b->at + rest;
    h->least = (unsigned)take(b, 1);
    if (version >= 4)
        take(b, 1); /* operations of an instruction: of other processors */
    take(b, 1);
    h->line_base = (int8_t)take(b, 1);
    h->range = (unsigned)take(b, 1);
    h->base_code = (unsigned)take(b, 1);
    h->operands = b->at;
    if (b->failed || h->range == 0 || h->base_code == 0 || h->base_code - 1 > (size_t)(program - b->at))
        return -1;
    b->at = program;
    return 0;
}

/* Of a code other than those of one byte that make a row. 1: it makes one, too. */
static int standard_code(struct bytes *b, const struct header *h, unsigned code, struct row *row)
{
    switch (code) {
    case DW_LNS_copy:
        return 1;
    case DW_LNS_advance_pc:
        row->address += take_leb(b) * h->least;
        break;
    case DW_LNS_advance_line:
        row->line = (int)((unsigned)row->line + (unsigned)take_signed_leb(b));
        break;
    case DW_LNS_set_column:
        row->column = (int)take_leb(b);
        break;
    case DW_LNS_const_add_pc:
        row->address += (uint64_t)(255 - h->base_code) / h->range * h->least;
        break;
    case DW_LNS_fixed_advance_pc:
        row->address += take(b, 2);
        break;
    default:
        for (unsigned i = h->operands[code - 1]; i > 0; i--)
            take_leb(b);
    }
    return 0;
}

static int extended_code(struct bytes *b, struct row *row)
{
    uint64_t length = take_leb(b);
    if (length == 0 || length > (uint64_t)(b->end - b->at)) {
        b->failed = 1;
        return 0;
    }
    const uint8_t *next = b->at + length;
    unsigned code = (unsigned)take(b, 1);
    if (code == DW_LNE_set_address)
        row->address = take(b, length - 1);
    b->at = next;
    row->ends = code == DW_LNE_end_sequence;
    return row->ends;
}

/* Adds the rows of sequences that begin at address 0. 0, or -1. */
static int run_program(struct bytes *b, const struct header *h, struct rows *rows)
{
    const struct row first = {.line = 1};
    struct row row = first;
    int begins = 1, left_out = 0;
    while (b->at < b->end && !b->failed) {
        unsigned code = (unsigned)take(b, 1);
        int is_row = 1;
        if (code >= h->base_code) {
            row.address += (uint64_t)(code - h->base_code) / h->range * h->least;
            row.line = (int)((unsigned)row.line + (unsigned)h->line_base + (code - h->base_code) % h->range);
        } else {
            is_row = code == 0 ? extended_code(b, &row) : standard_code(b, h, code, &row);
        }
        if (!is_row || b->failed)
            continue;
        left_out = begins ? row.address == 0 : left_out;
        begins = 0;
        if (left_out && (rows->n == MOST_ROWS || ARRAY_GROW(rows->list, rows->n, rows->capacity) < 0))
            return -1;
        if (left_out)
            rows->list[rows->n++] = row;
        if (row.ends) {
            row = first;
            begins = 1;
        }
    }
    return b->failed ? -1 : 0;
}

/* --- libdw's rows --- */

static int compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Whether it is one of those at its address, of which each counts once. */
static int is_left_out(const struct rows *rows, size_t at, Dwarf_Line *line, uint64_t address)
{
    int number = 0, column = 0;
    bool ends = false;
    dwarf_lineno(line, &number);
    dwarf_linecol(line, &column);
    dwarf_lineendsequence(line, &ends);
    for (; at < rows->n && rows->list[at].address == address; at++) {
        struct row *row = &rows->list[at];
        if (!row->used && row->line == number && row->column == column && row->ends == ends) {
            row->used = 1;
            return 1;
        }
    }
    return 0;
}

static void list_left_out(Dwarf_Die *unit, struct rows *rows)
{
    struct bytes program = {0};
    struct header header;
    if (find_program(unit, &program) != 0 || read_header(&program, &header) != 0 ||
        run_program(&program, &header, rows) != 0)
        rows->n = 0; /* then all stay */
    if (rows->n > 0)
        qsort(rows->list, rows->n, sizeof *rows->list, compare);
}

Dwarf_Line **line_rows_new(Dwarf_Die *unit, size_t *n)
{
    Dwarf_Lines *lines;
    struct rows rows = {0};
    Dwarf_Addr address = 0;
    size_t all;
    *n = 0;
    if (dwarf_getsrclines(unit, &lines, &all) != 0 || all == 0)
        return NULL;
    Dwarf_Line **list = calloc(all, sizeof *list);
    if (list != NULL && dwarf_lineaddr(dwarf_onesrcline(lines, 0), &address) == 0 && address == 0)
        list_left_out(unit, &rows);
    for (size_t i = 0, at = 0; i < all && list != NULL; i++) {
        Dwarf_Line *line = dwarf_onesrcline(lines, i);
        if (dwarf_lineaddr(line, &address) != 0)
            continue;
        while (at < rows.n && rows.list[at].address < address)
            at++;
        if (!is_left_out(&rows, at, line, address))
            list[(*n)++] = line;
    }
    free(rows.list);
    return list;
}
