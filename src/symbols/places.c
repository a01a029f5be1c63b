/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/places.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>

#include "symbols/library.h"
#include "symbols/members.h"

#define RBP 6u
#define RSP 7u
/* Deeper nesting is corrupt. */
#define MOST_DEPTH 64u
#define ADDRESS_BYTES 8u

static int is_register(const Dwarf_Op *op, uint32_t held)
{
    return op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31 && (held >> (op->atom - DW_OP_reg0) & 1) != 0;
}

/* In memory from `from` on: a pointer, or anything that contains the place. */
static int contains(struct definitions *d, Dwarf_Die *type, int64_t from, int64_t displacement)
{
    uint64_t bytes;
    if (dwarf_tag(type) == DW_TAG_pointer_type || symbols_members_is_descriptor(type))
        return from == displacement;
    return from <= displacement && symbols_members_size(d, type, &bytes) == 0 &&
           (uint64_t)(displacement - from) < bytes;
}

static int is_based(const Dwarf_Op *op, unsigned number)
{
    return op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31 &&
           (unsigned)(op->atom - DW_OP_breg0) == number;
}

/* gcc has variables of the frame by what DW_OP_fbreg counts from, clang in optimized code by the register. */
static int is_in_frame(struct definitions *d, Dwarf_Die *type, const Dwarf_Op *op,
                       struct symbols_place *place)
{
    int64_t from = (int64_t)op->number;
    if (op->atom != DW_OP_fbreg && !is_based(op, place->number))
        return 0;
    int64_t displacement = op->atom == DW_OP_fbreg ? place->displacement : place->from_register;
    place->inside = displacement - from;
    return contains(d, type, from, displacement);
}

static int is_there(struct definitions *d, Dwarf_Die *variable, Dwarf_Die *type, uint64_t address,
                    struct symbols_place *place)
{
    Dwarf_Attribute location;
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_attr(variable, DW_AT_location, &location) == NULL ||
        dwarf_getlocation_addr(&location, address, &ops, &n, 1) != 1 || n < 1)
        return 0;
    if (place->where == SYMBOLS_PLACE_FRAME)
        return n == 1 && is_in_frame(d, type, &ops[0], place);
    if (place->where == SYMBOLS_PLACE_BY_REGISTER)
        return symbols_members_is_descriptor(type) && n == 1 && is_based(&ops[0], place->number) &&
               ops[0].number == 0;
    if (symbols_members_is_descriptor(type))
        return n > 1 && is_register(&ops[0], place->held) && ops[1].atom == DW_OP_piece &&
               ops[1].number == ADDRESS_BYTES;
    return dwarf_tag(type) == DW_TAG_pointer_type && n == 1 && is_register(&ops[0], place->held);
}

static const char *find_in_scope(struct definitions *d, Dwarf_Die *scope, uint64_t address,
                                 struct symbols_place *place, unsigned depth, Dwarf_Die *type)
{
    Dwarf_Die die;
    const char *name = NULL;
    if (depth > MOST_DEPTH || dwarf_child(scope, &die) != 0)
        return NULL;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) {
            if (symbols_members_type(d, &die, type) == 0 && is_there(d, &die, type, address, place) &&
                (tag == DW_TAG_variable || symbols_members_is_descriptor(type)) &&
                !symbols_library_declares(&die))
                name = dwarf_diename(&die);
        } else if (tag == DW_TAG_lexical_block && dwarf_haspc(&die, address) == 1) {
            name = find_in_scope(d, &die, address, place, depth + 1, type);
        }
    } while (name == NULL && dwarf_siblingof(&die, &die) == 0);
    return name;
}

const char *symbols_places_variable(struct definitions *d, Dwarf_Die *scope, uint64_t address,
                                    struct symbols_place *place, Dwarf_Die *type)
{
    return find_in_scope(d, scope, address, place, 0, type);
}

int symbols_places_in_frame(struct symbols_image *image, const struct scopes *scopes, uint64_t address,
                            const struct disassembler_address *at, struct symbols_place *place)
{
    const struct scope *scope = scopes_find(scopes, address - 1);
    while (scope != NULL && dwarf_tag((Dwarf_Die[]){scope->die}) != DW_TAG_subprogram)
        scope = scopes_outer(scopes, scope);
    Dwarf_Die function = scope != NULL ? scope->die : (Dwarf_Die){0};
    Dwarf_Attribute base;
    Dwarf_Op *ops;
    size_t n;
    if (scope == NULL || at->n != 1 || at->is_indexed ||
        dwarf_attr_integrate(&function, DW_AT_frame_base, &base) == NULL ||
        dwarf_getlocation(&base, &ops, &n) != 0 || n != 1)
        return -1;
    *place = (struct symbols_place){.where = SYMBOLS_PLACE_FRAME,
                                    .number = at->registers[0],
                                    .displacement = at->displacement,
                                    .from_register = at->displacement};
    if (ops[0].atom != DW_OP_call_frame_cfa)
        return (ops[0].atom == DW_OP_reg6 && at->registers[0] == RBP) ||
                       (ops[0].atom == DW_OP_reg7 && at->registers[0] == RSP)
                   ? 0
                   : -1;
    Dwfl_Module *module = symbols_image_module(image);
    Dwarf_Addr bias = 0;
    Dwarf_CFI *cfi = module != NULL ? dwfl_module_eh_cfi(module, &bias) : NULL;
    Dwarf_Frame *frame = NULL;
    if (cfi == NULL || dwarf_cfi_addrframe(cfi, address, &frame) != 0)
        return -1;
    int found = dwarf_frame_cfa(frame, &ops, &n) == 0 && n == 1 && ops[0].atom == DW_OP_bregx &&
                ops[0].number == at->registers[0];
    if (found)
        place->displacement -= (int64_t)ops[0].number2;
    free(frame);
    return found ? 0 : -1;
}
