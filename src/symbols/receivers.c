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
#include "symbols/library.h"
#include "symbols/members.h"
#include "symbols/places.h"
#include "symbols/pointees.h"
#include "symbols/scopes.h"
#include "symbols/targets.h"

#define RAX 0u
#define RDI 5u
#define MOST_INSTRUCTIONS 24u
/* Registers on the way to the origin of one. */
#define MOST_STEPS 4u
/* Bytes of a call to an address that the instruction has. */
#define NEAR_CALL 5u
#define MOST_NAME 512u

struct search {
    struct symbols_files *files;
    const char *path;
    struct symbols_image *image;
    const struct scopes *scopes;
    uint64_t offset;  /* of the file: an instruction after the call, or the call's end */
    uint64_t address; /* the same */
    int stored;       /* variables of functions are left out */
    int is_pointer;   /* only what is a pointer, not a container that begins with one */
    uint64_t only_of; /* if not 0, only variables of the function, perhaps inlined, that has this address:
                       * those of others may have the same place in the frame at other times */
    /* What is found so far. */
    char *name;
    uint32_t depth; /* of the scope that has it */
    Dwarf_Die type;
};

/* Of the name of a field in the program's structures, what is inside of a library's container ("._M_start" in
 * C++,
 * ".buf" of a vector of Rust), and "[]" of an array of pointers. */
static void cut_implementation(char *name)
{
    static const char *const beginnings[] = {"._", ".buf"};
    size_t length = strlen(name);
    while (length > 2 && strcmp(name + length - 2, "[]") == 0)
        name[length -= 2] = '\0';
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        char *at = strstr(name, beginnings[i]);
        if (at != NULL)
            *at = '\0';
    }
}

/* "function::variable" or "function::variable.member", of the compiled function or of one that is inlined
 * there, so many levels deep. */
static char *name_local(struct search *s, const char *variable, unsigned levels,
                        const struct symbols_place *place, Dwarf_Die *type)
{
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    struct symbols_field field;
    unsigned n = symbols_image_frames(s->image, s->offset - 1, 1, frames);
    char name[MOST_NAME];
    if (place->where != SYMBOLS_PLACE_FRAME || symbols_library_declares(type) ||
        symbols_members_find(scopes_definitions(s->scopes), type, (uint64_t)place->inside, &field) != 0)
        field.name[0] = '\0';
    cut_implementation(field.name);
    if (n <= levels || frames[n - 1 - levels].function == NULL)
        snprintf(name, sizeof name, "%s%s", variable, field.name);
    else
        snprintf(name, sizeof name, "%s::%s%s", frames[n - 1 - levels].function, variable, field.name);
    return strdup(name);
}

/* Whether the search accepts what is so many bytes from where something of a type begins. */
static int may_be(const struct search *s, Dwarf_Die *type, uint64_t inside)
{
    return !s->is_pointer || symbols_members_is_pointer(scopes_definitions(s->scopes), type, inside);
}

/* The enclosing functions' variables; what an outer one has replaces what was found before. */
static void find_local(struct search *s, struct symbols_place *place)
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
        if (s->only_of != 0 && scope != scopes_find(s->scopes, s->only_of))
            continue;
        const char *variable =
            s->name == NULL || scope->depth < s->depth
                ? symbols_places_variable(scopes_definitions(s->scopes), &die, s->address, place, &type)
                : NULL;
        if (variable == NULL || !may_be(s, &type, (uint64_t)place->inside))
            continue;
        free(s->name);
        s->name = name_local(s, variable, outer, place, &type);
        s->depth = scope->depth;
        s->type = type;
    }
}

/* "variable", of a structure "variable.member". */
static char *name_static(const struct search *s, uint64_t address, Dwarf_Die *type)
{
    struct symbols_types *types = symbols_files_types(s->files, s->path);
    struct definitions *d = types != NULL ? symbols_types_definitions(types) : NULL;
    struct symbols_field field = {.name = ""};
    Dwarf_Die variable;
    Dwarf_Attribute linkage;
    uint64_t offset = 0;
    char *name, *result = NULL;
    int is_pointer = types != NULL && symbols_types_variable(types, address, &variable) == 0 &&
                     symbols_members_type(d, &variable, type) == 0 &&
                     (dwarf_tag(type) == DW_TAG_pointer_type || symbols_members_is_descriptor(type));
    if (types == NULL || (!is_pointer && (symbols_types_around(types, address, &variable, &offset) != 0 ||
                                          symbols_library_declares(&variable) ||
                                          symbols_members_type(d, &variable, type) != 0 ||
                                          !symbols_members_is_structure(type))))
        return NULL;
    if (!is_pointer && !symbols_library_declares(type)) {
        if (symbols_members_find(d, type, offset, &field) != 0)
            return NULL;
        cut_implementation(field.name);
    }
    const char *mangled = dwarf_formstring(dwarf_attr_integrate(&variable, DW_AT_linkage_name, &linkage)),
               *plain = dwarf_diename(&variable);
    name = mangled != NULL ? symbols_demangle(mangled) : plain != NULL ? strdup(plain) : NULL;
    if (name != NULL && asprintf(&result, "%s%s", name, field.name) < 0)
        result = NULL;
    free(name);
    return result;
}

/* The structure that memory is in, and where in it. 0, or -1: not known. */
static int find_around(const struct search *s, const struct disassembler_address *at, Dwarf_Die *around,
                       uint64_t *displacement)
{
    const struct symbols_access access = {s->path, symbols_files_disassembler(s->files, s->path), s->scopes,
                                          s->offset, s->address};
    struct symbols_target t = {0};
    uint64_t bytes;
    int found = at->n == 1 && !at->is_indexed &&
                symbols_pointees_any(s->scopes, s->address, at->registers[0], &t.type) == 0;
    for (unsigned i = 0; i < at->n && !found; i++)
        found = symbols_target(s->files, &access, at->registers[i], &t) == 0 &&
                symbols_members_is_structure(&t.type);
    if (!found)
        return -1;
    t.displacement += at->displacement;
    *around = t.type;
    *displacement = (uint64_t)t.displacement;
    return t.displacement >= 0 && symbols_members_size(scopes_definitions(s->scopes), around, &bytes) == 0 &&
                   *displacement < bytes
               ? 0
               : -1;
}

/* "structure::member". NULL: not known, or of a library. Of a container in a structure, that is the member.
 */
static char *name_member(const struct search *s, const struct disassembler_address *at)
{
    struct definitions *d = scopes_definitions(s->scopes);
    struct symbols_field field;
    Dwarf_Die around;
    uint64_t displacement;
    char name[MOST_NAME];
    /* The address of the first member is that of the structure, as realloc gets it. */
    if (s->is_pointer && at->displacement == 0)
        return NULL;
    if (find_around(s, at, &around, &displacement) != 0 || symbols_library_declares(&around) ||
        !may_be(s, &around, displacement) || symbols_members_find(d, &around, displacement, &field) != 0)
        return NULL;
    const char *structure = dwarf_diename(&around), *member = field.name + (*field.name == '.');
    cut_implementation(field.name);
    if (structure == NULL || *field.name != '.' || *member == '\0' || *member == '_')
        return NULL;
    snprintf(name, sizeof name, "%s::%s", structure, member);
    return strdup(name);
}

/* The value is stored. Nonzero: the search is over. */
static int find_stored(struct search *s, const struct disassembler_copy *copy)
{
    struct symbols_place place;
    char *name = NULL;
    Dwarf_Die type = {0};
    if (copy->to == DISASSEMBLER_STATIC) {
        name = name_static(s, copy->static_address, &type);
    } else if (copy->to == DISASSEMBLER_MEMORY) {
        if (symbols_places_in_frame(s->image, s->scopes, s->address, &copy->address, &place) == 0) {
            find_local(s, &place);
            return 0;
        }
        if (copy->address.n == 1 && !copy->address.is_indexed && copy->address.displacement == 0) {
            place = (struct symbols_place){.where = SYMBOLS_PLACE_BY_REGISTER,
                                           .number = copy->address.registers[0]};
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

/* Where the value of these registers is copied to. */
static void find(struct search *s, struct disassembler *d, uint32_t held)
{
    struct symbols_place place = {.held = held};
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

/* Where the object is that a method was called for, which is inlined: its parameter `this`. 0, or -1: it has
 * none, or its place is not known. */
static int find_this(Dwarf_Die *method, uint64_t address, Dwarf_Op *place)
{
    Dwarf_Die die;
    Dwarf_Attribute location;
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_tag(method) != DW_TAG_inlined_subroutine || dwarf_child(method, &die) != 0)
        return -1;
    do {
        const char *name = dwarf_tag(&die) == DW_TAG_formal_parameter ? dwarf_diename(&die) : NULL;
        if (name == NULL || (strcmp(name, "this") != 0 && strcmp(name, "self") != 0) ||
            dwarf_attr(&die, DW_AT_location, &location) == NULL ||
            dwarf_getlocation_addr(&location, address, &ops, &n, 1) != 1 || n == 0)
            continue;
        *place = ops[0];
        int is_value = n == 2 && ops[1].atom == DW_OP_stack_value,
            is_register = n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31;
        return is_value || is_register ? 0 : -1;
    } while (dwarf_siblingof(&die, &die) == 0);
    return -1;
}

/* What is so many bytes from where a register points to, at the instruction of the search. frame: set if that
 * is in the frame, whether or not a variable is there. */
static void find_object(struct search *s, struct disassembler *d, unsigned number, int64_t displacement,
                        struct symbols_place *frame)
{
    struct disassembler_address at = {.displacement = displacement};
    const struct search call = *s;
    uint64_t low, high;
    for (unsigned steps = 0; steps < MOST_STEPS && s->name == NULL; steps++) {
        struct disassembler_origin o;
        if (!symbols_image_function(s->image, s->offset, &low, &high) || high - low > SYMBOLS_MOST_FUNCTION ||
            disassembler_origin(d, low, high, s->offset, number, &o) != 0 || o.offset >= s->offset)
            return;
        s->address -= s->offset - o.offset;
        s->offset = o.offset;
        if (o.how == DISASSEMBLER_STATIC_VALUE)
            s->name = name_static(s, o.static_address + (uint64_t)at.displacement, &s->type);
        if (o.how != DISASSEMBLER_ADDED || o.address.n != 1 || o.address.is_indexed)
            return;
        at = (struct disassembler_address){.registers = {o.address.registers[0]},
                                           .n = 1,
                                           .displacement = at.displacement + o.address.displacement};
        if (symbols_places_in_frame(s->image, s->scopes, s->address, &at, frame) == 0) {
            /* Of the variables in scope at the call: blocks of rustc do not contain what prepares it. */
            s->offset = call.offset + 1;
            s->address = call.address + 1;
            find_local(s, frame);
            return;
        }
        s->name = name_member(s, &at);
        number = at.registers[0];
    }
}

/* The next instructions in memory, whichever are executed: optimized code loads a pointer that a call stored
 * in the frame to where its variable is. */
static void find_loaded(struct search *s, struct disassembler *d, const struct symbols_place *frame)
{
    uint64_t low, high;
    if (!symbols_image_function(s->image, s->offset, &low, &high))
        return;
    for (unsigned i = 0; i < MOST_INSTRUCTIONS && s->offset < high; i++) {
        struct disassembler_address at;
        struct symbols_place from;
        int number;
        unsigned length = disassembler_load(d, s->offset, &at, &number);
        if (length == 0)
            return;
        int is_it = number >= 0 &&
                    symbols_places_in_frame(s->image, s->scopes, s->address, &at, &from) == 0 &&
                    from.displacement == frame->displacement;
        s->offset += length;
        s->address += length;
        if (is_it) {
            find(s, d, 1u << number);
            return;
        }
    }
}

/* The call's first argument is the address of a pointer, where the call stores what it allocates, as
 * posix_memalign does: lea rdi,[rsp+0x18]; call posix_memalign; mov rbx,[rsp+0x18]. */
static void find_argument(struct search *s, struct disassembler *d)
{
    struct search before = *s;
    struct symbols_place frame = {.where = SYMBOLS_PLACE_REGISTERS};
    if (!disassembler_is_near_call(d, s->offset - NEAR_CALL))
        return;
    before.is_pointer = 1;
    before.only_of = s->address - 1;
    before.offset -= NEAR_CALL;
    before.address -= NEAR_CALL;
    find_object(&before, d, RDI, 0, &frame);
    s->name = before.name;
    s->type = before.type;
    s->depth = before.depth;
    if (frame.where == SYMBOLS_PLACE_FRAME)
        find_loaded(s, d, &frame);
}

/* The container that the code before the call's end works on. */
static void find_container(struct search *s, struct disassembler *d)
{
    Dwarf_Op op;
    const struct scope *scope = scopes_find(s->scopes, s->address - 1);
    while (scope != NULL && find_this((Dwarf_Die[]){scope->die}, s->address - 1, &op) != 0)
        scope = scopes_outer(s->scopes, scope);
    if (scope == NULL)
        return;
    struct symbols_place place = {.where = SYMBOLS_PLACE_FRAME,
                                  .number = SYMBOLS_PLACE_NO_REGISTER,
                                  .displacement = (int64_t)op.number};
    struct disassembler_address at = {.n = 1};
    if (op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31) {
        at.registers[0] = (unsigned)(op.atom - DW_OP_reg0);
    } else if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) {
        at.registers[0] = (unsigned)(op.atom - DW_OP_breg0);
        at.displacement = (int64_t)op.number;
    } else if (op.atom == DW_OP_fbreg) {
        find_local(s, &place);
        return;
    } else {
        return;
    }
    if (symbols_places_in_frame(s->image, s->scopes, s->address, &at, &place) == 0) {
        find_local(s, &place);
    } else if ((s->name = name_member(s, &at)) == NULL) {
        s->offset--; /* into the call */
        s->address--;
        find_object(s, d, at.registers[0], at.displacement, &place);
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
    const struct search before = s;
    find(&s, d, 1u << RAX);
    if (s.name == NULL && !stored) {
        s = before;
        find_container(&s, d);
    }
    if (s.name == NULL) {
        s = before;
        find_argument(&s, d);
    }
    if (s.name == NULL)
        return -1;
    receiver->name = s.name;
    if (s.type.addr == NULL || !symbols_members_is_descriptor(&s.type) ||
        symbols_members_type(symbols_image_definitions(s.image), &s.type, &receiver->elements) != 0)
        receiver->elements = (Dwarf_Die){0};
    return 0;
}

int symbols_receiver_object(struct symbols_files *files, const char *path, uint64_t end_of_call,
                            struct symbols_receiver *receiver)
{
    struct search s = {.files = files, .path = path, .image = symbols_files_image(files, path)};
    struct disassembler *d = symbols_files_disassembler(files, path);
    *receiver = (struct symbols_receiver){.name = NULL};
    if (d == NULL || s.image == NULL || !disassembler_is_near_call(d, end_of_call - NEAR_CALL))
        return -1;
    s.offset = end_of_call - NEAR_CALL;
    s.scopes = symbols_image_scopes(s.image, s.offset, &s.address);
    if (s.scopes == NULL)
        return -1;
    struct symbols_place frame = {.where = SYMBOLS_PLACE_REGISTERS};
    find_object(&s, d, RDI, 0, &frame);
    receiver->name = s.name;
    return s.name != NULL ? 0 : -1;
}
