/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receivers.c - after a call that allocates, the result in rax is followed through the next instructions.
 * Static memory, where a variable is, says most: mov [rip+0x2aa7],rax.
 * Otherwise it may be in a function's variable, by preference one of the compiled function, and not of a
 * function that is inlined there:
 * - in the register that a pointer is in (optimized code): mov rbx,rax;
 * - in the frame, in a pointer, or in a variable that contains one: mov [rsp+0x40],rax, where the call frame
 *   information says where the frame begins.
 * If it is in none, it may be stored to a member of the structure that a variable in a register points to:
 * mov [rbx+8],rax.
 *
 * A pointer of Fortran, or an allocatable array, is a descriptor that begins with the address of the
 * elements. In debug information its type is an array with DW_AT_data_location. In optimized code its first 8
 * bytes may be in a register (DW_OP_reg14, DW_OP_piece 8); a register may also have its address, if it was
 * passed to the function: mov [rbx],rax.
 */
#include "symbols/receivers.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"
#include "symbols/disassemble.h"
#include "symbols/members.h"
#include "symbols/pointees.h"
#include "symbols/scopes.h"

#define RAX 0u
#define RBP 6u
#define RSP 7u
#define MOST_INSTRUCTIONS 24u
/* Deeper nesting is corrupt. */
#define MOST_DEPTH 64u
#define ADDRESS_BYTES 8u
#define MOST_NAME 512u

/* Where the address may be, or the variable that begins with it. */
struct place {
    uint32_t held; /* in one of these registers, */
    int in_frame;  /* so many bytes from what DW_OP_fbreg counts from, */
    int64_t displacement;
    int is_base; /* or where a register points to */
    unsigned number;
};

struct search {
    struct symbols_files *files;
    const char *path;
    struct symbols_image *image;
    const struct scopes *scopes;
    uint64_t offset;  /* of the file: an instruction after the call, or the call's end */
    uint64_t address; /* the same */
    int stored;       /* variables of functions are left out */
    /* What is found so far. */
    char *name;
    uint32_t depth; /* of the scope that has it */
    Dwarf_Die type;
};

static int is_descriptor(Dwarf_Die *type)
{
    return dwarf_tag(type) == DW_TAG_array_type && dwarf_hasattr(type, DW_AT_data_location);
}

/* Whether it is declared in a header of the system's, which has the names of its implementation. */
static int is_library(Dwarf_Die *die)
{
    static const char *const beginnings[] = {"/usr/include/", "/usr/lib/", "/rustc/", "/usr/src/rustc"};
    const char *file = dwarf_decl_file(die);
    for (size_t i = 0; file != NULL && i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(file, beginnings[i], strlen(beginnings[i])) == 0)
            return 1;
    return 0;
}

static int is_register(const Dwarf_Op *op, uint32_t held)
{
    return op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31 && (held >> (op->atom - DW_OP_reg0) & 1) != 0;
}

/* In memory from `from` on: a pointer, or anything that contains the place. */
static int contains(struct definitions *d, Dwarf_Die *type, int64_t from, int64_t displacement)
{
    uint64_t bytes;
    if (dwarf_tag(type) == DW_TAG_pointer_type || is_descriptor(type))
        return from == displacement;
    return from <= displacement && symbols_members_size(d, type, &bytes) == 0 &&
           (uint64_t)(displacement - from) < bytes;
}

static int is_there(struct definitions *d, Dwarf_Die *variable, Dwarf_Die *type, uint64_t address,
                    const struct place *place)
{
    Dwarf_Attribute location;
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_attr(variable, DW_AT_location, &location) == NULL ||
        dwarf_getlocation_addr(&location, address, &ops, &n, 1) != 1 || n < 1)
        return 0;
    if (place->in_frame)
        return n == 1 && ops[0].atom == DW_OP_fbreg &&
               contains(d, type, (int64_t)ops[0].number, place->displacement);
    if (place->is_base)
        return is_descriptor(type) && n == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31 &&
               (unsigned)(ops[0].atom - DW_OP_breg0) == place->number && ops[0].number == 0;
    if (is_descriptor(type))
        return n > 1 && is_register(&ops[0], place->held) && ops[1].atom == DW_OP_piece &&
               ops[1].number == ADDRESS_BYTES;
    return dwarf_tag(type) == DW_TAG_pointer_type && n == 1 && is_register(&ops[0], place->held);
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
            if (symbols_members_type(d, &die, type) == 0 && is_there(d, &die, type, address, place) &&
                (tag == DW_TAG_variable || is_descriptor(type)) && !is_library(&die))
                name = dwarf_diename(&die);
        } else if (tag == DW_TAG_lexical_block && dwarf_haspc(&die, address) == 1) {
            name = find_in_scope(d, &die, address, place, depth + 1, type);
        }
    } while (name == NULL && dwarf_siblingof(&die, &die) == 0);
    return name;
}

/* "function::variable", of the compiled function or of one that is inlined there, so many levels deep. */
static char *name_local(struct search *s, const char *variable, unsigned levels)
{
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    unsigned n = symbols_image_frames(s->image, s->offset - 1, 1, frames);
    char name[MOST_NAME];
    if (n <= levels || frames[n - 1 - levels].function == NULL)
        return strdup(variable);
    snprintf(name, sizeof name, "%s::%s", frames[n - 1 - levels].function, variable);
    return strdup(name);
}

/* The enclosing functions' variables; what an outer one has replaces what was found before. */
static void find_local(struct search *s, const struct place *place)
{
    unsigned outer = 0;
    if (s->stored)
        return;
    for (const struct scope *scope = scopes_find(s->scopes, s->address - 1); scope != NULL;
         scope = scopes_outer(s->scopes, scope))
        outer++;
    for (const struct scope *scope = scopes_find(s->scopes, s->address - 1); scope != NULL;
         scope = scopes_outer(s->scopes, scope)) {
        Dwarf_Die die = scope->die, type;
        outer--;
        const char *variable =
            s->name == NULL || scope->depth < s->depth
                ? find_in_scope(scopes_definitions(s->scopes), &die, s->address, place, 0, &type)
                : NULL;
        if (variable == NULL)
            continue;
        free(s->name);
        s->name = name_local(s, variable, outer);
        s->depth = scope->depth;
        s->type = type;
    }
}

/* Where memory is from what DW_OP_fbreg counts from. 0, or -1: not in the frame, or not known. */
static int find_in_frame(const struct search *s, const struct disassembler_address *at, int64_t *displacement)
{
    const struct scope *scope = scopes_find(s->scopes, s->address - 1);
    while (scope != NULL && dwarf_tag((Dwarf_Die[]){scope->die}) != DW_TAG_subprogram)
        scope = scopes_outer(s->scopes, scope);
    Dwarf_Die function = scope != NULL ? scope->die : (Dwarf_Die){0};
    Dwarf_Attribute base;
    Dwarf_Op *ops;
    size_t n;
    if (scope == NULL || at->n != 1 || at->is_indexed ||
        dwarf_attr_integrate(&function, DW_AT_frame_base, &base) == NULL ||
        dwarf_getlocation(&base, &ops, &n) != 0 || n != 1)
        return -1;
    *displacement = at->displacement;
    if (ops[0].atom != DW_OP_call_frame_cfa)
        return (ops[0].atom == DW_OP_reg6 && at->registers[0] == RBP) ||
                       (ops[0].atom == DW_OP_reg7 && at->registers[0] == RSP)
                   ? 0
                   : -1;
    Dwfl_Module *module = symbols_image_module(s->image);
    Dwarf_Addr bias = 0;
    Dwarf_CFI *cfi = module != NULL ? dwfl_module_eh_cfi(module, &bias) : NULL;
    Dwarf_Frame *frame = NULL;
    if (cfi == NULL || dwarf_cfi_addrframe(cfi, s->address, &frame) != 0)
        return -1;
    int found = dwarf_frame_cfa(frame, &ops, &n) == 0 && n == 1 && ops[0].atom == DW_OP_bregx &&
                ops[0].number == at->registers[0];
    if (found)
        *displacement -= (int64_t)ops[0].number2;
    free(frame);
    return found ? 0 : -1;
}

static char *name_static(const struct search *s, uint64_t address, Dwarf_Die *type)
{
    struct symbols_types *types = symbols_files_types(s->files, s->path);
    Dwarf_Die variable;
    Dwarf_Attribute linkage;
    if (types == NULL || symbols_types_variable(types, address, &variable) != 0 ||
        symbols_members_type(symbols_types_definitions(types), &variable, type) != 0 ||
        (dwarf_tag(type) != DW_TAG_pointer_type && !is_descriptor(type)))
        return NULL;
    const char *mangled = dwarf_formstring(dwarf_attr_integrate(&variable, DW_AT_linkage_name, &linkage)),
               *name = dwarf_diename(&variable);
    return mangled != NULL ? symbols_demangle(mangled) : name != NULL ? strdup(name) : NULL;
}

/* "structure::member". NULL: not known, or of a library. Of a container in a structure, that is the member.
 */
static char *name_member(const struct search *s, const struct disassembler_address *at)
{
    struct definitions *d = scopes_definitions(s->scopes);
    struct symbols_field field;
    Dwarf_Die around;
    char name[MOST_NAME];
    if (at->n != 1 || at->is_indexed || at->displacement < 0 ||
        symbols_pointees_any(s->scopes, s->address, at->registers[0], &around) != 0 || is_library(&around) ||
        symbols_members_find(d, &around, (uint64_t)at->displacement, &field) != 0)
        return NULL;
    const char *structure = dwarf_diename(&around), *member = field.name + (*field.name == '.');
    char *implementation = strstr(field.name, "._");
    if (implementation != NULL)
        *implementation = '\0';
    if (structure == NULL || *field.name != '.' || *member == '\0' || *member == '_')
        return NULL;
    snprintf(name, sizeof name, "%s::%s", structure, member);
    return strdup(name);
}

/* The value is stored. Nonzero: the search is over. */
static int find_stored(struct search *s, const struct disassembler_copy *copy)
{
    struct place place = {.in_frame = 1};
    char *name = NULL;
    Dwarf_Die type = {0};
    if (copy->to == DISASSEMBLER_STATIC) {
        name = name_static(s, copy->static_address, &type);
    } else if (copy->to == DISASSEMBLER_MEMORY) {
        if (find_in_frame(s, &copy->address, &place.displacement) == 0) {
            find_local(s, &place);
            return 0;
        }
        if (copy->address.n == 1 && !copy->address.is_indexed && copy->address.displacement == 0) {
            place = (struct place){.is_base = 1, .number = copy->address.registers[0]};
            find_local(s, &place);
        }
        name = s->name == NULL ? name_member(s, &copy->address) : NULL;
    }
    if (name == NULL)
        return 0;
    free(s->name);
    s->name = name;
    s->type = type;
    return 1;
}

static void find(struct search *s, struct disassembler *d)
{
    struct place place = {.held = 1u << RAX};
    for (unsigned i = 0; i < MOST_INSTRUCTIONS; i++) {
        struct disassembler_copy copy;
        find_local(s, &place);
        unsigned length = disassembler_follow(d, s->offset, &place.held, &copy);
        if (find_stored(s, &copy) || length == 0)
            return;
        s->offset += length;
        s->address += length;
    }
}

int symbols_receiver(struct symbols_files *files, const char *path, uint64_t end_of_call, int stored,
                     struct symbols_receiver *receiver)
{
    struct search s = {.files = files,
                       .path = path,
                       .image = symbols_files_image(files, path),
                       .offset = end_of_call,
                       .stored = stored};
    struct disassembler *d = symbols_files_disassembler(files, path);
    *receiver = (struct symbols_receiver){.name = NULL};
    /* Right before the call's end: the next instruction may be another function's. */
    if (d != NULL && s.image != NULL)
        s.scopes = symbols_image_scopes(s.image, end_of_call - 1, &s.address);
    if (s.scopes == NULL)
        return -1;
    s.address++;
    find(&s, d);
    if (s.name == NULL)
        return -1;
    receiver->name = s.name;
    if (s.type.addr == NULL || !is_descriptor(&s.type) ||
        symbols_members_type(symbols_image_definitions(s.image), &s.type, &receiver->elements) != 0)
        receiver->elements = (Dwarf_Die){0};
    return 0;
}
