/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plt.c - an entry jumps to the address that is in a slot of the global offset table: FF 25 and the distance
 * to the slot, in 4 bytes. The dynamic linker puts the function's address there, for which there is a
 * relocation that says which function it is. Sections are .plt (16 bytes an entry), .plt.got (8 or 16),
 * .plt.sec (16).
 */
#include "symbols/plt.h"

#include <string.h>

#define JUMP_BYTES 6u
#define LEAST_ENTRY 8u
#define MOST_ENTRY 16u

/* The bytes of the entry, and its address. NULL: there is none. */
static const uint8_t *entry_at(Elf *elf, uint64_t address, uint64_t *start, size_t *bytes)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL || header.sh_type != SHT_PROGBITS ||
            address < header.sh_addr || address - header.sh_addr >= header.sh_size)
            continue;
        const char *name = elf_strptr(elf, names, header.sh_name);
        if (name == NULL || strncmp(name, ".plt", 4) != 0 || header.sh_entsize < LEAST_ENTRY ||
            header.sh_entsize > MOST_ENTRY)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        uint64_t offset = (address - header.sh_addr) / header.sh_entsize * header.sh_entsize;
        if (data == NULL || data->d_buf == NULL || offset + header.sh_entsize > data->d_size)
            return NULL;
        *start = header.sh_addr + offset;
        *bytes = header.sh_entsize;
        return (const uint8_t *)data->d_buf + offset;
    }
    return NULL;
}

/* The function whose address a relocation of that section puts into the slot. */
static const char *name_of_slot(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint64_t slot)
{
    Elf_Scn *symbols = elf_getscn(elf, header->sh_link);
    GElf_Shdr of_symbols;
    Elf_Data *data = elf_getdata(section, NULL), *list = symbols != NULL ? elf_getdata(symbols, NULL) : NULL;
    if (data == NULL || list == NULL || header->sh_entsize == 0 || gelf_getshdr(symbols, &of_symbols) == NULL)
        return NULL;
    for (size_t i = 0; i < header->sh_size / header->sh_entsize; i++) {
        GElf_Rela relocation;
        GElf_Sym symbol;
        if (gelf_getrela(data, (int)i, &relocation) == NULL || relocation.r_offset != slot)
            continue;
        size_t number = GELF_R_SYM(relocation.r_info);
        return number != 0 && gelf_getsym(list, (int)number, &symbol) != NULL
                   ? elf_strptr(elf, of_symbols.sh_link, symbol.st_name)
                   : NULL;
    }
    return NULL;
}

const char *symbols_plt_name(Elf *elf, uint64_t address)
{
    uint64_t start;
    size_t bytes;
    int32_t distance;
    const char *name = NULL;
    const uint8_t *code = entry_at(elf, address, &start, &bytes);
    for (size_t i = 0; code != NULL && name == NULL && i + JUMP_BYTES <= bytes; i++) {
        if (code[i] != 0xFF || code[i + 1] != 0x25)
            continue;
        memcpy(&distance, code + i + 2, sizeof distance);
        uint64_t slot = start + i + JUMP_BYTES + (uint64_t)(int64_t)distance;
        for (Elf_Scn *section = NULL; name == NULL && (section = elf_nextscn(elf, section)) != NULL;) {
            GElf_Shdr header;
            if (gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_RELA)
                name = name_of_slot(elf, section, &header, slot);
        }
    }
    return name != NULL && *name != '\0' ? name : NULL;
}
