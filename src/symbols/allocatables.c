/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocatables.c - an allocatable array of gfortran is a descriptor, which begins with the address of the
 * elements. In debug information its type is an array with DW_AT_data_location. After the call, the result in
 * rax is followed until it is stored at the descriptor's beginning:
 * - in static memory, of a module or the main program: mov [rip+0x2aa7],rax;
 * - in the frame: mov [rsp+0x40],rax, where the call frame information says where the frame begins;
 * - by an address that was passed to the function: mov [rbx],rax;
 * or until it is in the register that the first 8 bytes of the descriptor are in (optimized code):
 * DW_OP_reg14, DW_OP_piece 8.
 */
#include "symbols/allocatables.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"
#include "symbols/disassemble.h"
#include "symbols/members.h"
#include "symbols/scopes.h"

#define RAX 0u
#define MOST_INSTRUCTIONS 24u
/* Deeper nesting is corrupt. */
#define MOST_DEPTH 64u
#define ADDRESS_BYTES 8u

/* Where the address of the elements may be, or the variable that begins with it. */
struct place {
    uint32_t held;         /* in one of these registers */
    int in_frame, is_base; /* the variable is so many bytes from the CFA, or where a register points to */
    int64_t from_cfa;
    unsigned number; /* of that register */
};

/* The type of the array whose descriptor the variable is. 0, or -1: it is no descriptor. */
static int type_of(struct definitions *d, Dwarf_Die *variable, Dwarf_Die *type)
{
    return symbols_members_type(d, variable, type) == 0 && dwarf_tag(type) == DW_TAG_array_type &&
                   dwarf_hasattr(type, DW_AT_data_location)
               ? 0
               : -1;
}

static int is_register(const Dwarf_Op *op, uint32_t held)
{
    return op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31 && (held >> (op->atom - DW_OP_reg0) & 1) != 0;
}

static int is_there(Dwarf_Die *variable, uint64_t address, const struct place *place)
{
    Dwarf_Attribute location;
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_attr(variable, DW_AT_location, &location) == NULL ||
        dwarf_getlocation_addr(&location, address, &ops, &n, 1) != 1 || n < 1)
        return 0;
    if (place->in_frame)
        return n == 1 && ops[0].atom == DW_OP_fbreg && (int64_t)ops[0].number == place->from_cfa;
    if (place->is_base)
        return n == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31 &&
               (unsigned)(ops[0].atom - DW_OP_breg0) == place->number && ops[0].number == 0;
    return n > 1 && is_register(&ops[0], place->held) && ops[1].atom == DW_OP_piece &&
           ops[1].number == ADDRESS_BYTES;
}

/* The variable of a scope, or of the blocks in it, that is at the place. NULL: there is none. */
static const char *find_in_scope(struct definitions *d, Dwarf_Die *scope, uint64_t address,
                                 const struct place *place, unsigned depth, Dwarf_Die *type)
{
    Dwarf_Die die;
    const char *name = NULL;
    if (depth > MOST_DEPTH || dwarf_child(scope, &die) != 0)
        return NULL;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) {
            if (is_there(&die, address, place) && type_of(d, &die, type) == 0)
                name = dwarf_diename(&die);
        } else if (tag == DW_TAG_lexical_block && dwarf_haspc(&die, address) == 1) {
            name = find_in_scope(d, &die, address, place, depth + 1, type);
        }
    } while (name == NULL && dwarf_siblingof(&die, &die) == 0);
    return name;
}

static const char *find_local(const struct scopes *scopes, uint64_t address, const struct place *place,
                              Dwarf_Die *type)
{
    const char *name = NULL;
    for (const struct scope *scope = scopes_find(scopes, address); scope != NULL && name == NULL;
         scope = scopes_outer(scopes, scope)) {
        Dwarf_Die die = scope->die;
        name = find_in_scope(scopes_definitions(scopes), &die, address, place, 0, type);
    }
    return name;
}

/* Where memory is from the CFA, which DW_OP_fbreg counts from in what gfortran compiles. 0, or -1. */
static int find_from_cfa(struct symbols_image *image, uint64_t address, const struct disassembler_address *at,
                         int64_t *from_cfa)
{
    Dwfl_Module *module = symbols_image_module(image);
    Dwarf_Addr bias = 0;
    Dwarf_CFI *cfi =
        module != NULL && at->n == 1 && !at->is_indexed ? dwfl_module_eh_cfi(module, &bias) : NULL;
    Dwarf_Frame *frame = NULL;
    Dwarf_Op *ops;
    size_t n;
    if (cfi == NULL || dwarf_cfi_addrframe(cfi, address, &frame) != 0)
        return -1;
    int found = dwarf_frame_cfa(frame, &ops, &n) == 0 && n == 1 && ops[0].atom == DW_OP_bregx &&
                ops[0].number == at->registers[0];
    if (found)
        *from_cfa = at->displacement - (int64_t)ops[0].number2;
    free(frame);
    return found ? 0 : -1;
}

static char *name_static(struct symbols_types *types, uint64_t address, Dwarf_Die *type)
{
    Dwarf_Die variable;
    Dwarf_Attribute linkage;
    if (types == NULL || symbols_types_variable(types, address, &variable) != 0 ||
        type_of(symbols_types_definitions(types), &variable, type) != 0)
        return NULL;
    const char *mangled = dwarf_formstring(dwarf_attr_integrate(&variable, DW_AT_linkage_name, &linkage)),
               *name = dwarf_diename(&variable);
    return mangled != NULL ? symbols_demangle(mangled) : name != NULL ? strdup(name) : NULL;
}

static const char *name_stored(struct symbols_image *image, const struct scopes *scopes, uint64_t address,
                               const struct disassembler_address *at, Dwarf_Die *type)
{
    struct place place = {.in_frame = 1};
    if (find_from_cfa(image, address, at, &place.from_cfa) == 0)
        return find_local(scopes, address, &place, type);
    if (at->n != 1 || at->is_indexed || at->displacement != 0)
        return NULL;
    place = (struct place){.is_base = 1, .number = at->registers[0]};
    return find_local(scopes, address, &place, type);
}

/* The name, and the array's type. */
static char *find(struct symbols_files *files, const char *path, uint64_t offset, Dwarf_Die *type)
{
    struct disassembler *d = symbols_files_disassembler(files, path);
    struct symbols_image *image = symbols_files_image(files, path);
    uint64_t address;
    /* Right before the call's end: the next instruction may be another function's. */
    const struct scopes *scopes =
        d != NULL && image != NULL ? symbols_image_scopes(image, offset - 1, &address) : NULL;
    if (scopes == NULL)
        return NULL;
    address++;
    struct place place = {.held = 1u << RAX};
    for (unsigned i = 0; i < MOST_INSTRUCTIONS; i++) {
        struct disassembler_copy copy;
        const char *local = find_local(scopes, address, &place, type);
        if (local != NULL)
            return strdup(local);
        unsigned length = disassembler_follow(d, offset, &place.held, &copy);
        if (copy.to == DISASSEMBLER_STATIC) {
            char *name = name_static(symbols_files_types(files, path), copy.static_address, type);
            if (name != NULL)
                return name;
        }
        if (copy.to == DISASSEMBLER_MEMORY)
            local = name_stored(image, scopes, address, &copy.address, type);
        if (local != NULL)
            return strdup(local);
        if (length == 0)
            return NULL;
        offset += length;
        address += length;
    }
    return NULL;
}

int symbols_allocatable(struct symbols_files *files, const char *path, uint64_t end_of_call,
                        struct symbols_allocatable *array)
{
    Dwarf_Die type;
    *array = (struct symbols_allocatable){.name = find(files, path, end_of_call, &type)};
    if (array->name == NULL)
        return -1;
    if (symbols_members_type(symbols_image_definitions(symbols_files_image(files, path)), &type,
                             &array->elements) != 0)
        array->elements = (Dwarf_Die){0};
    return 0;
}
