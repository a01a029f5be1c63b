/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assigned.c - the result of an allocation is in rax. Its copies are followed through the next instructions:
 * to a register that a variable is in (optimized code), to static memory, to a member of a structure or an
 * element of an array of pointers to which a variable in a register points, or to a variable in the frame
 * (code that is not optimized).
 *
 * Example: table = calloc(n, sizeof *table), with `struct row *table` outside of functions, is
 *     call calloc; test rax,rax; je failed; mov [rip+0x2ee2],rax
 */
#include "symbols/assigned.h"

#include <dwarf.h>

#include "symbols/disassemble.h"
#include "symbols/members.h"
#include "symbols/pointees.h"

#define RAX 0u
#define RBP 6u
#define MOST_INSTRUCTIONS 16u
/* A last member that is an array of so many elements is a placeholder for more. */
#define PLACEHOLDER 1u

static int has_open_end(struct definitions *d, Dwarf_Die *type)
{
    Dwarf_Die member, last, array, element;
    Dwarf_Word bytes, size;
    int found = 0;
    if (dwarf_child(type, &member) != 0)
        return 0;
    do {
        if (dwarf_tag(&member) == DW_TAG_member) {
            last = member;
            found = 1;
        }
    } while (dwarf_siblingof(&member, &member) == 0);
    if (!found || symbols_members_type(d, &last, &array) != 0 || dwarf_tag(&array) != DW_TAG_array_type)
        return 0;
    return symbols_members_size(d, &array, &bytes) != 0 || symbols_members_type(d, &array, &element) != 0 ||
           symbols_members_size(d, &element, &size) != 0 || bytes <= PLACEHOLDER * size;
}

static int fits(const struct scopes *scopes, Dwarf_Die *type, uint64_t bytes)
{
    Dwarf_Word size;
    return bytes == 0 || (symbols_members_size(scopes_definitions(scopes), type, &size) == 0 && size > 0 &&
                          bytes % size == 0);
}

static int in_registers(const struct scopes *scopes, uint64_t address, uint32_t held, uint64_t bytes,
                        Dwarf_Die *type)
{
    for (unsigned number = 0; number < 32; number++)
        if ((held & 1u << number) != 0 && symbols_pointees_register(scopes, address, number, type) == 0 &&
            fits(scopes, type, bytes))
            return 0;
    return -1;
}

static int in_memory(const struct scopes *scopes, uint64_t address, const struct disassembler_address *at,
                     Dwarf_Die *type)
{
    for (unsigned i = 0; i < at->n; i++) {
        Dwarf_Die around;
        if (symbols_pointees_any(scopes, address, at->registers[i], &around) == 0 &&
            symbols_pointees_stored(scopes_definitions(scopes), &around, at->displacement, type) == 0 &&
            symbols_members_is_structure(type))
            return 0;
    }
    return at->n == 1 && at->registers[0] == RBP && !at->is_indexed
               ? symbols_pointees_frame(scopes, address, at->displacement, type)
               : -1;
}

static int find(struct symbols_files *files, const char *path, uint64_t offset, uint64_t bytes,
                Dwarf_Die *type)
{
    struct disassembler *d = symbols_files_disassembler(files, path);
    struct symbols_image *image = symbols_files_image(files, path);
    uint64_t address;
    /* Right before the call's end: the next instruction may be another function's. */
    const struct scopes *scopes =
        d != NULL && image != NULL ? symbols_image_scopes(image, offset - 1, &address) : NULL;
    if (scopes == NULL)
        return -1;
    address++;
    uint32_t held = 1u << RAX;
    for (unsigned i = 0; i < MOST_INSTRUCTIONS; i++) {
        struct disassembler_copy copy;
        if (in_registers(scopes, address, held, bytes, type) == 0)
            return 0;
        unsigned length = disassembler_follow(d, offset, &held, &copy);
        struct symbols_types *types =
            copy.to == DISASSEMBLER_STATIC ? symbols_files_types(files, path) : NULL;
        if (types != NULL)
            return symbols_types_pointee(types, copy.static_address, type) == 0 && fits(scopes, type, bytes)
                       ? 0
                       : -1;
        if (copy.to == DISASSEMBLER_MEMORY && in_memory(scopes, address, &copy.address, type) == 0 &&
            fits(scopes, type, bytes))
            return 0;
        if (length == 0)
            return -1;
        offset += length;
        address += length;
    }
    return -1;
}

int symbols_assigned(struct symbols_files *files, const char *path, uint64_t end_of_call, uint64_t bytes,
                     Dwarf_Die *type)
{
    struct symbols_image *image = symbols_files_image(files, path);
    return find(files, path, end_of_call, bytes, type) == 0 &&
                   !has_open_end(symbols_image_definitions(image), type)
               ? 0
               : -1;
}
